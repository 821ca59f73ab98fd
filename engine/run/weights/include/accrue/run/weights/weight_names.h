// SPDX-License-Identifier: Apache-2.0
// Names and places of a model's parameters in the weights of others. Pure: importing, exporting and the checks before a
// run use the same table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// Whose names a folder of weights has.
enum class WeightNames {
  accrue,  ///< ours: the final folder of a run
  gpt2,    ///< Hugging Face's GPT2LMHeadModel, whose matrices are [inputs, outputs]
  llama    ///< Hugging Face's Llama, Mistral and Qwen2
};

/// Rows [row, row + rows) of one of our parameters, which are rows [from, from + rows) of one of their tensors, or its
/// columns if it is transposed.
struct WeightPiece {
  std::string tensor;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t from = 0;
  bool transposed = false;
  bool operator==(const WeightPiece&) const = default;
};

/// The pieces of one of parameter_shapes(), in the order of its rows.
std::vector<WeightPiece> weight_pieces(WeightNames names, const ModelSpec& model, const ParameterShape& parameter);

/// One of their tensors, as the model needs it.
struct NeededTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  bool more_rows = false;  ///< a longer table is cut: learned positions beyond model.context
  bool by_token = false;   ///< its rows are those of the vocabulary, which a checkpoint may have padded
};
std::vector<NeededTensor> needed_tensors(WeightNames names, const ModelSpec& model);

/// What a rank reads of one of their tensors: rows [from, from + rows) and columns [column, column + columns), which
/// become rows [to, to + rows) of its parameter. Vectors have one column.
struct WeightRead {
  std::string tensor;
  bool transposed = false;
  std::int64_t from = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 1;
  std::int64_t to = 0;
  bool operator==(const WeightRead&) const = default;
};
/// The reads of a rank's share of a parameter.
std::vector<WeightRead> weight_reads(WeightNames names, const ModelSpec& model, const ParameterShape& parameter,
                                     const ParameterShare& share);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Bytes that the forwards of the models keep for their backwards, counted tensor by tensor. Counts are doubles, because
// a form may multiply any large numbers.
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"

namespace accrue {

inline double number(std::int64_t value) {
  return static_cast<double>(value);
}

/// Sizes that determine the counts: one micro-batch on one rank of a divided model.
struct MicroBatchShape {
  explicit MicroBatchShape(const RunSpec& spec) : MicroBatchShape(spec, spec.model.context) {}
  /// For sequences of `context` positions.
  MicroBatchShape(const RunSpec& spec, std::int64_t context);
  double tensor;    ///< t
  double tokens;    ///< positions of all sequences
  double rows;      ///< of them between divided layers on this rank: all, or 1 / t under sequence parallelism
  double width;     ///< D
  double hidden;    ///< rows x D: exchanged between layers and stages
  double element;   ///< bytes of a number
  double sum;       ///< bytes of a number in which losses are summed
  double classes;   ///< classes whose logits this rank computes
  bool fused_head;  ///< the head uses the fused functions
  bool fused;       ///< the blocks use the fused functions
};

/// Full recomputation: number of a chunk's blocks that run again in backward, and the inputs that are kept for it.
struct RecomputedBlocks {
  double blocks = 0;
  double inputs = 0;
  bool shared = false;  ///< tensor-parallel ranks keep equal parts of an input
};
RecomputedBlocks recomputed_of_chunk(const ParallelSpec& parallel, double blocks);

/// Bytes kept from forward to backward of one micro-step on one chunk; for an undivided model, on the whole model.
struct KeptByChunk {
  double blocks = 0;  ///< input, blocks and output
  double first = 0;   ///< in addition, if the chunk has the embeddings
  double last = 0;    ///< in addition, if it has the loss
};
KeptByChunk kept_by_chunk(const RunSpec& spec, std::int64_t blocks);
/// Returns the total of a T5's stage.
double kept_by_t5_stage(const RunSpec& spec, std::int64_t stage);
/// Fraction of a block's activations that the spec's recomputation saves, from 0 to 1.
double spared_of_a_block(RunSpec spec);
/// Numbers that a T5 stage sends to the next: the encoder's rows, and after the split the decoder's too.
double t5_message(const RunSpec& spec, std::int64_t stage);

/// Maximum working memory of one operation, apart from kept tensors and its result.
double working_bytes(const RunSpec& spec);

}  // namespace accrue

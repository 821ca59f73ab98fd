// SPDX-License-Identifier: Apache-2.0
// Samples that are rows of a table in memory: inline x and y, CSV, the linear teacher; and ragged sequences, padded per
// batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "accrue/data/data_source.h"

namespace accrue {

/// Shapes: x [S, I]; y [S, O]. Double precision until a source converts it.
struct Table {
  at::Tensor x;
  at::Tensor y;
};

/// Returns the index of the largest output of each row, as a label. Shapes: y [S, O] -> [S, 1].
at::Tensor largest_output(const at::Tensor& y);

/// Returns the spec's inline x and y. Errors (data): rows of unequal length, unequal numbers of rows, widths that
/// differ from the model's.
Result<Table> inline_table(const RunSpec& spec);

/// Serves rows as batches in the model's dtype. For cross-entropy y is one column of labels: batches are inputs [B, 1,
/// I] and targets [B, 1] int64. Errors (data): fewer rows than the plan's samples, widths that differ from the model's,
/// labels that are not integers or are outside the outputs.
Result<std::unique_ptr<DataSource>> make_table_source(Table table, const ModelSpec& model, const DataFacts& facts);

/// Serves inline ragged sequences: inputs [B, T, 1], targets [B, T]; padded with 0 and -100 to the longest of the
/// batch. Errors (data): a sequence and its labels differ in length, labels outside the outputs.
Result<std::unique_ptr<DataSource>> make_ragged_source(const RunSpec& spec, const DataFacts& facts);

}  // namespace accrue

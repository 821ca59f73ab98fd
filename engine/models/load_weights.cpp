// SPDX-License-Identifier: Apache-2.0
#include "models/load_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/weights/start_weights.h"
#include "checkpoint/archive_types.h"

namespace accrue {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{64} << 20;

void checked(const Result<void>& read) {
  if (!read) throw std::runtime_error(read.error().text());
}

/// Their tensor as rows of equally many numbers; a vector has one number a row.
struct Rows {
  const ArchiveFile& file;
  const ArchiveEntry& entry;
  std::int64_t width = entry.shape.size() > 1 ? entry.shape[1] : 1;
  at::ScalarType type = archive_scalar_type(entry.dtype);
  std::int64_t bytes = static_cast<std::int64_t>(archive_dtype_bytes(entry.dtype));

  /// Reads rows [row, row + rows) and columns [column, column + columns) -> [rows, columns].
  at::Tensor read(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) const {
    at::Tensor part = at::empty({rows, columns}, type);
    auto* to = static_cast<std::byte*>(part.mutable_data_ptr());
    const bool whole = columns == width;
    const std::int64_t runs = whole ? 1 : rows, numbers = whole ? rows * width : columns;
    for (std::int64_t run = 0; run < runs; ++run) {
      const std::int64_t first = (row + run) * width + column;
      checked(file.read_bytes(entry.begin + static_cast<std::uint64_t>(first * bytes), to + run * numbers * bytes,
                              static_cast<std::uint64_t>(numbers * bytes)));
    }
    return part;
  }
};

/// Copies what one read names into `parameter`, viewed as [rows, columns].
void copy_part(const Rows& theirs, const WeightRead& read, const at::Tensor& parameter) {
  // What is theirs is read by rows, which are our columns if it is transposed.
  const std::int64_t first = read.transposed ? read.column : read.from,
                     count = read.transposed ? read.columns : read.rows;
  const std::int64_t column = read.transposed ? read.from : read.column,
                     columns = read.transposed ? read.rows : read.columns;
  const std::int64_t at_once = std::max<std::int64_t>(1, most_bytes / (columns * theirs.bytes));
  for (std::int64_t done = 0; done < count; done += at_once) {
    const std::int64_t rows = std::min(at_once, count - done);
    const at::Tensor part = theirs.read(first + done, rows, column, columns);
    if (read.transposed)
      parameter.narrow(0, read.to, read.rows).narrow(1, done, rows).copy_(part.t());
    else
      parameter.narrow(0, read.to + done, rows).copy_(part);
  }
}

}  // namespace

void load_weights(const ModelSpec& model, const ModelShare& share, std::vector<at::Tensor> parameters) {
  const auto weights = StartWeights::open(model.weights);
  if (!weights) throw std::runtime_error(weights.error().text());
  const at::NoGradGuard no_grad;
  const auto shares = parameter_shares(model, share);
  std::size_t own = 0;
  for (const ParameterShape& shape : parameter_shapes(model, share.tensor_ranks)) {
    if (own == shares.size() || shares[own].name != shape.name) continue;
    // A view [rows, columns]; a vector has one column. Rows that pad a table stay zero.
    const at::Tensor rows = parameters[own].view({parameters[own].size(0), -1});
    rows.zero_();
    for (const WeightRead& read : weight_reads(weights->names, model, shape, shares[own])) {
      const WeightsFolder::Place* place = weights->find(read.tensor);
      if (place == nullptr)
        throw std::runtime_error(model.weights + " changed: tensor " + read.tensor + " is gone; start the run again");
      const ArchiveFile& file = weights->folder.files[place->file];
      copy_part({.file = file, .entry = file.header.entries[place->entry]}, read, rows);
    }
    ++own;
  }
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "models/load_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>

#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/weights/start_weights.h"
#include "checkpoint/archive_types.h"
#include "checkpoint/checkpoint_reader.h"

namespace accrue {

namespace {

namespace fs = std::filesystem;

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

/// A parameter, this rank's share of it, and the share in memory, which is zero so far: rows that pad a table stay so.
struct Target {
  const ParameterShape& shape;
  const ParameterShare& share;
  at::Tensor values;
};

template <typename Fill>
void for_each_target(const ModelSpec& model, const ModelShare& share, const std::vector<at::Tensor>& parameters,
                     const Fill& fill) {
  const auto shares = parameter_shares(model, share);
  std::size_t own = 0;
  for (const ParameterShape& shape : parameter_shapes(model, share.tensor_ranks)) {
    if (own == shares.size() || shares[own].name != shape.name) continue;
    fill(Target{shape, shares[own], at::Tensor(parameters[own]).zero_()});
    ++own;
  }
}

void read_pieces(const StartWeights& weights, const ModelSpec& model, const Target& target) {
  // A view [rows, columns]; a vector has one column.
  const at::Tensor rows = target.values.view({target.values.size(0), -1});
  for (const WeightRead& read : weight_reads(weights.names, model, target.shape, target.share)) {
    const WeightsFolder::Place* place = weights.find(read.tensor);
    if (place == nullptr)
      throw std::runtime_error(model.weights + " changed: tensor " + read.tensor + " is gone; start the run again");
    const ArchiveFile& file = weights.folder.files[place->file];
    copy_part({.file = file, .entry = file.header.entries[place->entry]}, read, rows);
  }
}

/// The share as a slice of the tensor of `stored` shape, which may have more rows of positions, and more or fewer of
/// tokens, which are padded otherwise.
TensorSlice stored_slice(const Target& target, const std::vector<std::int64_t>& stored) {
  TensorSlice slice = slice_of(target.share);
  const bool table = target.shape.by_token || target.shape.name == "position_embedding.weight";
  if (!table || stored.size() != slice.shape.size()) return slice;
  if (!target.shape.by_token && stored.front() < slice.shape.front()) return slice;
  slice.shape.front() = stored.front();
  slice.offset.front() = std::min(slice.offset.front(), stored.front());
  slice.extent.front() = std::min(slice.extent.front(), stored.front() - slice.offset.front());
  slice.range.size = std::accumulate(slice.extent.begin(), slice.extent.end(), std::int64_t{1}, std::multiplies<>());
  return slice;
}

void read_slice(const CheckpointReader& checkpoint, const std::string& folder, const Target& target) {
  const std::string name = "parameters." + target.shape.name;
  const CheckpointReader::Stored* stored = checkpoint.find(name);
  if (stored == nullptr)
    throw std::runtime_error(folder + " changed: tensor " + name + " is gone; start the run again");
  const TensorSlice slice = stored_slice(target, stored->shape);
  const at::Tensor own = target.values.view({-1}).narrow(0, 0, slice.range.size);
  const at::Tensor values = own.scalar_type() == stored->dtype ? own : at::empty(own.sizes(), stored->dtype);
  if (auto read = checkpoint.read({name, slice, values}); !read)
    throw std::runtime_error(folder + ": " + read.error().text());
  if (!values.is_same(own)) own.copy_(values);
}

}  // namespace

void verify_weights(const ModelSpec& model, std::int64_t rank, std::int64_t ranks) {
  if (model.init != WeightInit::checkpoint) return;
  const auto weights = StartWeights::open(model.weights);
  if (!weights || !weights->checkpoint) return;  // load_weights() says why they cannot be read
  const fs::path& folder = weights->folder.folder;
  if (const auto same = verify_share(folder, rank, ranks); !same)
    throw ResultError({ErrorCode::data, same.error().message, (folder / same.error().where).string(),
                       "The checkpoint is damaged: start from another one."});
}

void load_weights(const ModelSpec& model, const ModelShare& share, std::vector<at::Tensor> parameters) {
  const auto weights = StartWeights::open(model.weights);
  if (!weights) throw std::runtime_error(weights.error().text());
  const at::NoGradGuard no_grad;
  if (!weights->checkpoint)
    return for_each_target(model, share, parameters,
                           [&](const Target& target) { read_pieces(*weights, model, target); });
  const fs::path& folder = weights->folder.folder;
  const auto checkpoint = open_reader(folder, folder.filename().string());
  if (!checkpoint) throw std::runtime_error(folder.string() + ": " + checkpoint.error().text());
  for_each_target(model, share, parameters,
                  [&](const Target& target) { read_slice(*checkpoint, folder.string(), target); });
}

}  // namespace accrue

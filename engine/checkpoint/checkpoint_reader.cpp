// SPDX-License-Identifier: Apache-2.0
// Descriptions of tensors in files are accepted only if they are consistent: the parts of a tensor agree on its shape
// and type, do not overlap and leave nothing out. So no read can fail for missing data later, when the model is half
// loaded.
#include "checkpoint/checkpoint_reader.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include "accrue/run/base/number_text.h"
#include "accrue/run/weights/archive_file.h"
#include "checkpoint/archive_types.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard_file.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

constexpr auto max_parts = static_cast<std::size_t>(most_tensor_parts);

struct Part {
  std::size_t file = 0;
  std::size_t entry = 0;
  TensorSlice slice;
};

struct StoredTensor {
  CheckpointReader::Stored stored;
  std::vector<Part> parts;
};

using Tensors = std::map<std::string, StoredTensor>;

std::string tensor_text(const std::string& name) {
  return "tensor \"" + printable_name(name) + "\"";
}

/// Adds the entries of one file.
Result<void> add_entries(Tensors& tensors, std::size_t file, const ArchiveHeader& header) {
  for (std::size_t i = 0; i < header.entries.size(); ++i) {
    auto part = stored_part(header.entries[i], header.metadata);
    if (!part) return tl::unexpected(part.error());
    const at::ScalarType dtype = archive_scalar_type(header.entries[i].dtype);
    StoredTensor& tensor = tensors[part->name];
    if (tensor.parts.empty()) tensor.stored = {part->slice.shape, dtype};
    if (tensor.stored.shape != part->slice.shape || tensor.stored.dtype != dtype)
      return fail(ErrorCode::protocol, "its parts are of different tensors", tensor_text(part->name));
    if (tensor.parts.size() == max_parts)
      return fail(ErrorCode::protocol, "it has more than " + std::to_string(max_parts) + " parts",
                  tensor_text(part->name));
    tensor.parts.push_back({file, i, std::move(part->slice)});
  }
  return {};
}

/// Checks that the parts make up the whole tensor, each element once.
Result<void> check_tiling(const std::string& name, const StoredTensor& tensor) {
  if (tensor.parts.size() == 1 && tensor.parts.front().slice.is_whole()) return {};
  const auto whole = element_count(tensor.stored.shape);
  if (!whole) return tl::unexpected(whole.error());
  std::int64_t held = 0;
  for (std::size_t i = 0; i < tensor.parts.size(); ++i) {
    if (__builtin_add_overflow(held, tensor.parts[i].slice.range.size, &held) || held > *whole)
      return fail(ErrorCode::protocol, "its parts overlap", tensor_text(name));
    for (std::size_t j = 0; j < i; ++j)
      if (common_elements(tensor.parts[i].slice, tensor.parts[j].slice) > 0)
        return fail(ErrorCode::protocol, "its parts overlap", tensor_text(name));
  }
  if (held == *whole) return {};
  return fail(ErrorCode::protocol,
              "its parts hold " + std::to_string(held) + " of its " + std::to_string(*whole) + " elements",
              tensor_text(name));
}

}  // namespace

struct CheckpointReader::Index {
  std::string name;
  Manifest manifest;
  std::vector<ArchiveFile> files;
  Tensors tensors;
};

namespace {

Result<void> fill_index(CheckpointReader::Index& index, const fs::path& folder) {
  for (const ManifestFile& file : index.manifest.files) {
    auto archive = ArchiveFile::open(folder / file.name);
    if (!archive) return tl::unexpected(archive.error());
    if (auto added = add_entries(index.tensors, index.files.size(), archive->header); !added)
      return fail(added.error().code, added.error().message, file.name + ", " + added.error().where);
    index.files.push_back(std::move(*archive));
  }
  for (const auto& [name, tensor] : index.tensors)
    if (auto tiled = check_tiling(name, tensor); !tiled) return tiled;
  return {};
}

/// Copies the elements that a part and the wanted slice share, through a copy of the part.
Result<void> read_common(const ArchiveFile& file, const Part& part, TensorSlice wanted, std::int64_t element,
                         char* to) {
  TensorSlice held = part.slice;
  if (!bring_into_one_shape(held, wanted))
    return fail(ErrorCode::protocol, "it is divided in another shape than what it is read into");
  if (common_elements(held, wanted) == 0) return {};
  std::vector<char> values(static_cast<std::size_t>(part.slice.range.size * element));
  if (auto read = file.read(file.header.entries[part.entry], values.data()); !read) return read;
  for_each_common_run(held, wanted, [&](std::int64_t from, std::int64_t at, std::int64_t size) {
    std::memcpy(to + at * element, values.data() + from * element, static_cast<std::size_t>(size * element));
  });
  return {};
}

}  // namespace

PlacedTensor whole_tensor(std::string name, at::Tensor values) {
  TensorSlice slice = whole_slice(values.sizes().vec());
  return {std::move(name), std::move(slice), std::move(values)};
}

PlacedTensor text_tensor(std::string name, std::string_view text) {
  at::Tensor bytes = at::empty({std::ssize(text)}, at::kByte);
  std::ranges::copy(text, bytes.mutable_data_ptr<std::uint8_t>());
  return whole_tensor(std::move(name), std::move(bytes));
}

std::optional<PlacedTensor> placed_stretch(std::string name, TensorSlice slice, const FlatRange& stretch,
                                           const at::Tensor& values) {
  const std::int64_t stored = std::min(stretch.size, slice.range.size - stretch.offset);
  if (stored <= 0) return std::nullopt;
  slice.range = {stretch.offset, stored};
  at::Tensor kept = values.view({-1}).narrow(0, 0, stored);
  if (slice.is_box()) kept = kept.view(slice.extent);
  return PlacedTensor{std::move(name), std::move(slice), std::move(kept)};
}

std::string CheckpointReader::Stored::text() const {
  return std::string(c10::toString(dtype)) + " [" + joined(shape) + "]";
}

CheckpointReader::CheckpointReader(std::shared_ptr<const Index> index) : index_(std::move(index)) {}

const std::string& CheckpointReader::name() const {
  return index_->name;
}

const TrainingCursor& CheckpointReader::cursor() const {
  return index_->manifest.cursor;
}

const CheckpointIdentity& CheckpointReader::identity() const {
  return index_->manifest.identity;
}

std::vector<std::string> CheckpointReader::tensor_names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : index_->tensors) names.push_back(name);
  return names;
}

const CheckpointReader::Stored* CheckpointReader::find(const std::string& tensor) const {
  const auto found = index_->tensors.find(tensor);
  return found == index_->tensors.end() ? nullptr : &found->second.stored;
}

std::string CheckpointReader::mismatch(const PlacedTensor& live) const {
  const Stored* const stored = find(live.name);
  if (!stored) return live.name + " is not in the checkpoint";
  if (same_tensor(stored->shape, live.slice.shape) && stored->dtype == live.values.scalar_type()) return {};
  return live.name + " is " + stored->text() + " there and " +
         Stored{live.slice.shape, live.values.scalar_type()}.text() + " here";
}

Result<void> CheckpointReader::read(const PlacedTensor& into) const {
  const auto found = index_->tensors.find(into.name);
  if (found == index_->tensors.end())
    return fail(ErrorCode::protocol, "it is not in the checkpoint", tensor_text(into.name));
  const StoredTensor& tensor = found->second;
  if (!same_tensor(tensor.stored.shape, into.slice.shape) || tensor.stored.dtype != into.values.scalar_type() ||
      into.values.numel() != into.slice.range.size)
    return fail(ErrorCode::protocol, "it is of another shape or type than what it is read into",
                tensor_text(into.name));
  const at::NoGradGuard no_grad;
  const bool direct = into.values.is_cpu() && into.values.is_contiguous();
  at::Tensor target =
      direct ? into.values : at::empty({into.values.numel()}, at::TensorOptions(into.values.scalar_type()));
  char* const to = static_cast<char*>(target.mutable_data_ptr());
  for (const Part& part : tensor.parts) {
    const ArchiveFile& file = index_->files[part.file];
    auto read = part.slice == into.slice
                    ? file.read(file.header.entries[part.entry], to)
                    : read_common(file, part, into.slice, static_cast<std::int64_t>(target.element_size()), to);
    if (!read) return read;
  }
  if (!direct) into.values.copy_(target.view(into.values.sizes()));
  return {};
}

Result<at::Tensor> CheckpointReader::read(const std::string& tensor) const {
  const Stored* const stored = find(tensor);
  if (!stored) return fail(ErrorCode::protocol, "it is not in the checkpoint", tensor_text(tensor));
  at::Tensor values = at::empty(stored->shape, at::TensorOptions(stored->dtype));
  if (auto filled = read(whole_tensor(tensor, values)); !filled) return tl::unexpected(filled.error());
  return values;
}

Result<std::string> CheckpointReader::read_text(const std::string& tensor) const {
  const auto bytes = read(tensor);
  if (!bytes) return tl::unexpected(bytes.error());
  if (bytes->scalar_type() != at::kByte) return fail(ErrorCode::protocol, "it is no text", tensor_text(tensor));
  return std::string(static_cast<const char*>(bytes->const_data_ptr()), static_cast<std::size_t>(bytes->numel()));
}

Result<CheckpointReader> open_reader(const fs::path& folder, const std::string& name) {
  auto manifest = read_manifest(folder);
  if (!manifest) return tl::unexpected(manifest.error());
  if (manifest->cursor.mark() != checkpoint_mark(name))
    return fail(ErrorCode::protocol, "it holds " + checkpoint_name(manifest->cursor.mark()), "manifest.json");
  auto index = std::make_shared<CheckpointReader::Index>();
  index->name = name;
  index->manifest = std::move(*manifest);
  if (auto filled = fill_index(*index, folder); !filled) return tl::unexpected(filled.error());
  return CheckpointReader(std::move(index));
}

Result<void> verify_share(const fs::path& folder, std::int64_t rank, std::int64_t ranks) {
  const auto manifest = read_manifest(folder);
  if (!manifest) return tl::unexpected(manifest.error());
  std::vector<ManifestFile> share;
  for (auto i = static_cast<std::size_t>(rank); i < manifest->files.size(); i += static_cast<std::size_t>(ranks))
    share.push_back(manifest->files[i]);
  return verify_files(folder, share);
}

Result<void> verify_checkpoint(const fs::path& folder, const std::string& name) {
  if (const auto reader = open_reader(folder, name); !reader) return tl::unexpected(reader.error());
  return verify_share(folder, 0, 1);
}

}  // namespace accrue

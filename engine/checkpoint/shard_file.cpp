// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/shard_file.h"

#include <utility>

#include "run/base/json_text.h"

namespace accrue {
namespace {

constexpr std::size_t max_dims = 64;

std::string part_text(const PlacedTensor& part) {
  return json_text({{"name", part.name},
                    {"shape", part.slice.shape},
                    {"offset", part.slice.offset},
                    {"extent", part.slice.extent},
                    {"first", part.slice.range.offset}});
}

bool read_sizes(const Json& json, const char* key, std::vector<std::int64_t>& to) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array() || found->size() > max_dims) return false;
  for (const Json& size : *found) {
    if (!size.is_number_integer()) return false;
    to.push_back(size.get<std::int64_t>());
  }
  return true;
}

tl::unexpected<Error> refuse(const ArchiveEntry& entry, const std::string& what) {
  return fail(ErrorCode::protocol, what, "tensor \"" + printable_name(entry.name) + "\"");
}

}  // namespace

Result<WrittenArchive> write_shard(const std::filesystem::path& file, const std::vector<PlacedTensor>& tensors) {
  NamedTensors entries;
  std::map<std::string, std::string> metadata;
  for (const PlacedTensor& part : tensors) {
    if (auto sound = check_slice(part.slice); !sound) return tl::unexpected(sound.error());
    if (part.values.numel() != part.slice.range.size)
      return fail(ErrorCode::internal,
                  "a part holds " + std::to_string(part.values.numel()) + " elements where " +
                      std::to_string(part.slice.range.size) + " belong",
                  "tensor \"" + printable_name(part.name) + "\"");
    const bool whole = part.slice.is_whole();
    std::string key = whole ? part.name : part.name + "#" + std::to_string(entries.size());
    if (!whole) metadata.emplace(key, part_text(part));
    // A shard that is all of its box is stored as that box, whatever its shape in memory.
    entries.emplace_back(std::move(key),
                         part.slice.is_box() ? part.values.detach().reshape(part.slice.extent) : part.values);
  }
  return write_archive(file, entries, metadata);
}

Result<StoredPart> stored_part(const ArchiveEntry& entry, const std::map<std::string, std::string>& metadata) {
  const auto said = metadata.find(entry.name);
  if (said == metadata.end()) return StoredPart{entry.name, whole_slice(entry.shape)};
  if (json_depth(said->second) > 2) return refuse(entry, "what its metadata says is nested too deep");
  const Json json = parse_json(said->second);
  StoredPart part;
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string() || !json.contains("first") ||
      !json["first"].is_number_integer() || !read_sizes(json, "shape", part.slice.shape) ||
      !read_sizes(json, "offset", part.slice.offset) || !read_sizes(json, "extent", part.slice.extent))
    return refuse(entry, "its metadata does not say which part of a tensor it is");
  part.name = json["name"].get<std::string>();
  const auto elements = element_count(entry.shape);
  if (!elements) return tl::unexpected(elements.error());
  part.slice.range = {json["first"].get<std::int64_t>(), *elements};
  if (auto sound = check_slice(part.slice); !sound) return refuse(entry, sound.error().message);
  return part;
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/weights/weights_folder.h"

#include <set>
#include <system_error>
#include <utility>

#include "json_text.h"
#include "posix_file.h"

namespace accrue {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_config_bytes = 1 << 20;
constexpr std::size_t max_index_bytes = 64 << 20;
constexpr std::size_t max_files = 4096;

tl::unexpected<Error> refused(std::string message, const fs::path& where, std::string hint = {}) {
  return fail(ErrorCode::data, std::move(message), where.string(), std::move(hint));
}

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

/// Names of the files of an index, which maps each tensor to its file.
Result<std::vector<std::string>> listed_files(const fs::path& index) {
  const auto text = read_file(index, max_index_bytes);
  if (!text) return tl::unexpected(text.error());
  const Json json = parse_json(*text);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return refused("it has no weight_map, which says the file of each tensor", index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    const auto name = file.is_string() ? file.get<std::string>() : std::string();
    // A name alone: an index must not lead out of its folder.
    if (name.empty() || name == "." || name == ".." || fs::path(name).filename() != name)
      return refused("weight_map has no file name for tensor \"" + printable_name(tensor) + "\"", index);
    names.insert(name);
    if (names.size() > max_files) return refused("weight_map names more than 4096 files", index);
  }
  if (names.empty()) return refused("weight_map is empty", index);
  return std::vector(names.begin(), names.end());
}

/// The names of PyTorch's pickled files, which can run any code when they are read.
Result<std::vector<std::string>> file_names(const fs::path& folder) {
  if (is_there(folder / "model.safetensors")) return std::vector<std::string>{"model.safetensors"};
  if (const fs::path index = folder / "model.safetensors.index.json"; is_there(index)) return listed_files(index);
  for (const char* pickled : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (is_there(folder / pickled))
      return refused("the weights are pickled, and reading a pickle can run any code", folder / pickled,
                     "Convert them where you trust them: python3 -c \"from transformers import AutoModel as M; "
                     "M.from_pretrained('" +
                         folder.string() + "').save_pretrained('" + folder.string() + "-safe')\"");
  return refused("there is neither model.safetensors nor model.safetensors.index.json", folder,
                 "Name a folder in Hugging Face's layout, or the folder of a run or of a checkpoint.");
}

}  // namespace

Result<WeightsFolder> WeightsFolder::open(const fs::path& folder) {
  if (!is_there(folder)) return refused("there is no such folder", folder, "model.weights names a folder.");
  const auto names = file_names(folder);
  if (!names) return tl::unexpected(names.error());
  WeightsFolder weights{.folder = folder, .config = {}, .files = {}, .tensors = {}};
  for (const std::string& name : *names) {
    auto file = ArchiveFile::open(folder / name);
    if (!file) {
      file.error().code = ErrorCode::data;
      return tl::unexpected(file.error());
    }
    for (std::size_t i = 0; i < file->header.entries.size(); ++i)
      if (!weights.tensors.try_emplace(file->header.entries[i].name, Place{weights.files.size(), i}).second)
        return refused("tensor \"" + printable_name(file->header.entries[i].name) + "\" is in another file too",
                       folder / name);
    weights.files.push_back(std::move(*file));
  }
  if (const fs::path config = folder / "config.json"; is_there(config)) {
    auto text = read_file(config, max_config_bytes);
    if (!text) return tl::unexpected(text.error());
    weights.config = std::move(*text);
  }
  return weights;
}

const ArchiveEntry* WeightsFolder::find(const std::string& tensor) const {
  const auto found = tensors.find(tensor);
  return found == tensors.end() ? nullptr : &files[found->second.file].header.entries[found->second.entry];
}

}  // namespace accrue

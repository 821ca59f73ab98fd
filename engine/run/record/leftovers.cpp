// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/leftovers.h"

#include <system_error>

namespace accrue {

namespace fs = std::filesystem;

bool is_leftover(std::string_view name) {
  return name.starts_with(".trash-") || (name.starts_with(".") && name.ends_with(".part"));
}

void clear_leftovers_in(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is_leftover(at->path().filename().string())) found.push_back(at->path());
  std::error_code ignored;
  for (const fs::path& path : found) fs::remove_all(path, ignored);
}

Result<std::string> set_aside(const fs::path& checkpoint, std::string_view reason) {
  const std::string wanted = std::string(reason) + "-" + checkpoint.filename().string();
  std::string name = wanted;
  std::error_code error;
  for (int copy = 2; fs::exists(checkpoint.parent_path() / name, error); ++copy)
    name = wanted + "." + std::to_string(copy);
  fs::rename(checkpoint, checkpoint.parent_path() / name, error);
  if (!error) return name;
  return fail(ErrorCode::disk, "the checkpoint cannot be set aside as " + name + ": " + error.message(),
              checkpoint.string(), "Make the folder writable");
}

Result<std::vector<std::string>> set_aside_after(const fs::path& run_dir, const CheckpointMark& mark,
                                                 std::string_view reason) {
  const fs::path folder = run_dir / "checkpoints";
  std::vector<fs::path> later;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (checkpoint_mark(at->path().filename().string()) > mark) later.push_back(at->path());
  if (error && error != std::errc::no_such_file_or_directory)
    return fail(ErrorCode::disk, "the folder cannot be read: " + error.message(), folder.string());
  std::vector<std::string> names;
  for (const fs::path& checkpoint : later) {
    auto name = set_aside(checkpoint, reason);
    if (!name) return tl::unexpected(name.error());
    names.push_back(std::move(*name));
  }
  return names;
}

}  // namespace accrue

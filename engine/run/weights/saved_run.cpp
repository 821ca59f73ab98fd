// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/weights/saved_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <system_error>

#include "accrue/run/window/checkpoint_mark.h"
#include "json_text.h"
#include "posix_file.h"

namespace accrue {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_manifest_bytes = 1 << 20;
constexpr const char* other_hint = "Name another folder step-N beside it, or the run's folder.";

tl::unexpected<Error> incomplete(const std::string& message, const fs::path& where) {
  return fail(ErrorCode::data, "the checkpoint is incomplete: " + message, where.string(), other_hint);
}

/// Marks of a run's checkpoints, whether complete or not, the newest first.
std::vector<CheckpointMark> marks_in(const fs::path& checkpoints) {
  std::vector<CheckpointMark> marks;
  std::error_code error;
  for (fs::directory_iterator at(checkpoints, error), end; !error && at != end; at.increment(error))
    if (const auto mark = checkpoint_mark(at->path().filename().string()); mark.valid()) marks.push_back(mark);
  std::ranges::sort(marks, std::ranges::greater());
  return marks;
}

}  // namespace

fs::path run_of(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "config.json", ignored)) return {};
  const fs::path above = is_checkpoint_folder(folder) ? folder.parent_path().parent_path() : folder.parent_path();
  for (const fs::path& each : {folder, above})
    if (fs::exists(each / "spec.toml", ignored)) return each;
  return {};
}

bool is_checkpoint_folder(const fs::path& folder) {
  return folder.parent_path().filename() == "checkpoints" && checkpoint_mark(folder.filename().string()).valid();
}

Result<std::vector<fs::path>> checkpoint_files(const fs::path& checkpoint) {
  std::error_code ignored;
  if (!fs::exists(checkpoint, ignored))
    return fail(ErrorCode::data, "there is no such checkpoint", checkpoint.string(), other_hint);
  const fs::path manifest = checkpoint / "manifest.json";
  const auto text = read_file(manifest, max_manifest_bytes);
  if (!text) return incomplete("it has no manifest.json that can be read", checkpoint);
  const Json json = parse_json(*text);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array())
    return incomplete("manifest.json lists no files", checkpoint);
  std::vector<fs::path> files;
  for (std::size_t rank = 0; rank < json["files"].size(); ++rank) {
    const Json& said = json["files"][rank];
    // The only possible name: a manifest must not lead out of its folder.
    files.push_back(checkpoint / fmt::format("shard-{}.safetensors", rank));
    std::error_code error;
    const auto bytes = fs::file_size(files.back(), error);
    if (error || !said.is_object() || said.value("bytes", Json()) != bytes)
      return incomplete("it lacks a file, or a part of one, that manifest.json lists", files.back());
  }
  return files;
}

Result<fs::path> weights_of_run(const fs::path& run_dir) {
  std::error_code ignored;
  if (fs::exists(run_dir / "final" / "model.safetensors", ignored)) return run_dir / "final";
  const fs::path checkpoints = run_dir / "checkpoints";
  for (const CheckpointMark& mark : marks_in(checkpoints))
    if (checkpoint_files(checkpoints / checkpoint_name(mark))) return checkpoints / checkpoint_name(mark);
  return fail(ErrorCode::data, "the run has neither final weights nor a complete checkpoint", run_dir.string(),
              "Resume it to its end.");
}

Result<void> check_ended(const fs::path& run_dir) {
  if (!is_file_locked(run_dir / "run.lock")) return {};
  return fail(ErrorCode::data, "the run is still training, so its checkpoints come and go", run_dir.string(),
              "Wait until it has ended, or stop it.");
}

}  // namespace accrue

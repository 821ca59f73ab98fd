// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/best_checkpoint.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "json_number.h"
#include "json_text.h"
#include "posix_file.h"
#include "run_folder.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t max_manifest_bytes = 1 << 20;

/// The part of a manifest that says what the run is in; the ranks decide whether the checkpoint verifies.
Json cursor_of(const fs::path& checkpoint) {
  const auto text = read_file(checkpoint / "manifest.json", max_manifest_bytes);
  const Json json = text ? parse_json(*text) : Json();
  return json.is_object() && json.contains("cursor") && json["cursor"].is_object() ? json["cursor"] : Json::object();
}

}  // namespace

std::optional<BestCheckpoint> best_checkpoint(const fs::path& run_dir) {
  for (const CheckpointMark& mark : checkpoints_of(run_dir)) {
    const Json cursor = cursor_of(run_dir / "checkpoints" / checkpoint_name(mark));
    if (cursor.value("best_update", Json()) == 0) return std::nullopt;  // so have those before it
    if (cursor.value("best", Json()) != true || !cursor.contains("best_loss")) continue;
    if (const auto loss = read_json_number(cursor["best_loss"])) return BestCheckpoint{mark, *loss};
  }
  return std::nullopt;
}

CheckpointMark named_checkpoint(const fs::path& run_dir, std::string_view name) {
  if (name != "best") return checkpoint_mark(name);
  const auto best = best_checkpoint(run_dir);
  return best ? best->mark : CheckpointMark();
}

}  // namespace accrue

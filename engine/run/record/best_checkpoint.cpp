// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/best_checkpoint.h"

#include <vector>

#include "accrue/run/preflight/run_order.h"
#include "json_number.h"
#include "json_text.h"
#include "posix_file.h"
#include "run_folder.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t max_manifest_bytes = 1 << 20;

/// The part of a manifest that says what the run is in; the ranks decide whether the checkpoint verifies.
Json cursor_of(const fs::path& run_dir, const CheckpointMark& mark) {
  const auto text = read_file(run_dir / "checkpoints" / checkpoint_name(mark) / "manifest.json", max_manifest_bytes);
  const Json json = text ? parse_json(*text) : Json();
  return json.is_object() && json.contains("cursor") && json["cursor"].is_object() ? json["cursor"] : Json::object();
}

/// Whether it is the one from which this run branched: it was kept by another run.
bool is_copied(const fs::path& run_dir, const CheckpointMark& mark) {
  const auto text = read_file(run_dir / "plan.json", max_plan_bytes);
  const Json plan = text ? parse_json(*text) : Json();
  return plan.is_object() && plan.value("branched_at", Json()) == mark.update;
}

}  // namespace

std::optional<BestCheckpoint> best_checkpoint(const fs::path& run_dir) {
  const std::vector<CheckpointMark> marks = checkpoints_of(run_dir);
  for (const CheckpointMark& mark : marks) {  // the first that can be read knows
    const Json kept = cursor_of(run_dir, mark).value("kept_update", Json());
    if (!kept.is_number_integer()) continue;
    if (kept == 0 || (mark == marks.back() && is_copied(run_dir, mark))) return std::nullopt;
    const CheckpointMark best{kept.get<std::int64_t>()};
    if (const auto loss = read_json_number(cursor_of(run_dir, best).value("best_loss", Json())))
      return BestCheckpoint{best, *loss};
  }
  return std::nullopt;
}

CheckpointMark named_checkpoint(const fs::path& run_dir, std::string_view name) {
  if (name != "best") return checkpoint_mark(name);
  const auto best = best_checkpoint(run_dir);
  return best ? best->mark : CheckpointMark();
}

}  // namespace accrue

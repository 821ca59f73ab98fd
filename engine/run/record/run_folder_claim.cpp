// SPDX-License-Identifier: Apache-2.0
// The folder of ranks without a supervisor. A launcher restarts the same ranks after a failure, so a folder with the
// same run is continued; any other contents are left alone.
#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/weights/start_weights.h"
#include "posix_file.h"
#include "run_folder.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> taken(const fs::path& dir, std::string message, std::string hint) {
  return fail(ErrorCode::config, std::move(message), dir.string(), std::move(hint));
}

std::string differing_keys(const std::vector<SpecDifference>& differences) {
  constexpr std::size_t shown = 3;
  return joined_up_to(shown, differences, [](const SpecDifference& each) {
    return fmt::format("{} is {} there and {} here", each.key, each.left.empty() ? "left out" : each.left,
                       each.right.empty() ? "left out" : each.right);
  });
}

/// Continues the recorded run if the order describes it. Reads only.
Result<void> continue_record(RunOrder& order) {
  const fs::path& dir = order.run_dir;
  if (auto own = check_not_imported(dir); !own) return own;
  auto recorded = read_run_order(dir / "plan.json");
  if (!recorded) return tl::unexpected(recorded.error());
  const auto differences = diff_specs(located_spec(recorded->plan), located_spec(order.plan));
  if (!differences.empty())
    return taken(dir, "the folder holds another run: " + differing_keys(differences),
                 "Choose another folder, or give the spec that the run was started with");
  if (recorded->plan.data.fingerprint != order.plan.data.fingerprint)
    return fail(ErrorCode::data, "the training data changed since the run began",
                data_path(order.plan.spec.data, order.plan.base_dir).string(),
                "Put the file back as it was, or start a new run in another folder");
  if (auto same =
          check_same_weights(order.plan.spec.model, recorded->plan.weights_fingerprint, order.plan.weights_fingerprint);
      !same)
    return same;
  std::vector<PluginRecord> recorded_plugins = recorded->plugins;
  for (std::size_t i = 0; i < order.plugins.size() && i < recorded_plugins.size(); ++i)
    recorded_plugins[i].file = order.plugins[i].file;
  if (auto same = check_unchanged(recorded_plugins); !same) return same;
  if (recorded_plugins.size() != order.plugins.size())
    return taken(dir, "the folder holds a run with other plug-in libraries",
                 "Choose another folder, or give the libraries that the run was started with");
  order.plan = std::move(recorded->plan);
  order.run_id = std::move(recorded->run_id);
  order.branched_from = std::move(recorded->branched_from);
  order.changed_keys = std::move(recorded->changed_keys);
  order.branched_at = recorded->branched_at;
  order.recounts_at = recorded->recounts_at;
  if (newest_checkpoint(dir).valid()) order.resume_from = "newest";
  return {};
}

Result<RunWriter> begin_record(const RunOrder& order) {
  auto writer = RunWriter::create(order.run_dir, spec_as_run(order.plan));
  if (!writer) return writer;
  if (auto written = writer->write_plan(to_json(order)); !written) {
    writer->give_up();
    return tl::unexpected(written.error());
  }
  return writer;
}

/// Whether there is a record to continue; an error if the folder contains something else.
Result<bool> holds_record(const fs::path& dir) {
  std::error_code error;
  if (fs::exists(dir / "plan.json", error)) return true;
  const auto free = is_free_folder(dir);
  if (!free) return tl::unexpected(free.error());
  if (*free) return false;
  return fail(ErrorCode::config, "the folder is not empty and holds no run", dir.string(),
              "Choose a new or an empty folder");
}

}  // namespace

RunSpec located_spec(const RunPlan& plan) {
  RunSpec spec = plan.spec;
  const auto locate = [&plan](std::string& path) {
    if (!path.empty()) path = fs::absolute(plan.base_dir / path).string();
  };
  locate(spec.data.path);
  locate(spec.data.validation_path);
  locate(spec.data.cache);
  for (auto* paths : {&spec.data.paths, &spec.data.validation_paths}) std::ranges::for_each(*paths, locate);
  return spec;
}

std::string spec_as_run(const RunPlan& plan) {
  return write_spec(located_spec(plan));
}

namespace {

/// Makes the folder absolute, and the order that of a run that begins in it.
Result<void> settle_in(RunOrder& order) {
  auto dir = absolute_folder(order.run_dir);
  if (!dir) return tl::unexpected(dir.error());
  order.run_dir = std::move(*dir);
  order.first_seq.assign(static_cast<std::size_t>(order.plan.grid.world()), 0);
  order.origin_ns = monotonic_ns();
  return make_own_folder(order.run_dir);
}

/// Continues the record's clock from its last event, because the time in between is not training time; also its
/// numbers.
ClaimedFolder go_on(RunOrder& order, RunWriter writer) {
  order.origin_ns -= writer.last_time_ns();
  for (const auto& [rank, seq] : writer.next_seq())
    if (rank >= 0 && rank < order.plan.grid.world()) order.first_seq[static_cast<std::size_t>(rank)] = seq;
  const bool continues = !writer.next_seq().empty();
  return {std::move(writer), continues};
}

}  // namespace

Result<ClaimedFolder> claim_run_folder(RunOrder& order) {
  if (auto settled = settle_in(order); !settled) return tl::unexpected(settled.error());
  const auto continues = holds_record(order.run_dir);
  if (!continues) return tl::unexpected(continues.error());
  if (*continues)
    if (auto same = continue_record(order); !same) return tl::unexpected(same.error());
  auto writer = *continues ? RunWriter::reopen(order.run_dir) : begin_record(order);
  if (!writer) return tl::unexpected(writer.error());
  // Ranks that were still saving when the record was read have released the folder by now.
  if (*continues && newest_checkpoint(order.run_dir).valid()) order.resume_from = "newest";
  return go_on(order, std::move(*writer));
}

Result<ClaimedFolder> claim_loop_folder(RunOrder& order) {
  if (auto settled = settle_in(order); !settled) return tl::unexpected(settled.error());
  const fs::path& dir = order.run_dir;
  std::error_code error;
  if (fs::exists(dir / "plan.json", error))
    return taken(dir, "the folder holds a run of a spec", "Choose another folder for the program's own loop");
  if (auto own = check_not_imported(dir); !own) return tl::unexpected(own.error());
  order.run_id = new_run_id();
  if (!fs::exists(dir / "events.jsonl", error)) {
    auto writer = RunWriter::create(dir, spec_as_run(order.plan));
    if (!writer) return tl::unexpected(writer.error());
    return go_on(order, std::move(*writer));
  }
  if (const auto before = read_run(dir); before && !before->run_id.empty()) order.run_id = before->run_id;
  auto writer = RunWriter::reopen(dir);
  if (!writer) return tl::unexpected(writer.error());
  if (auto written = write_file(dir / "spec.toml", spec_as_run(order.plan)); !written)
    return tl::unexpected(written.error());
  return go_on(order, std::move(*writer));
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// verify: trains the first windows of a spec in a temporary folder, and compares each window's gradient with that of
// the same samples in one batch.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "accrue/run/base/counted.h"
#include "accrue/run/events/event_reader.h"
#include "accrue/run/host/engine_host.h"
#include "print.h"
#include "run_follower.h"
#include "scratch_folder.h"
#include "spec_input.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t default_updates = 16;

/// The user's number of windows; else all of the first epoch, which may end with a short window, within bounds.
std::int64_t updates_to_check(const RunPlan& plan, std::int64_t asked) {
  if (asked > 0) return std::min(asked, plan.totals.updates);
  AccumulationWindow window(plan.window);
  window.seek(first_epoch_end(plan.window));
  const std::int64_t begun = window.updates_done() + (window.open_micro_steps() > 0 ? 1 : 0);
  const std::int64_t epoch = begun > 0 ? begun : plan.totals.updates;
  return std::min(plan.totals.updates,
                  epoch <= 4 * default_updates ? std::max(epoch, default_updates) : default_updates);
}

std::vector<ExactnessCheck> checks_of(const fs::path& run_dir) {
  std::vector<ExactnessCheck> checks;
  if (const auto history = read_events(run_dir / "events.jsonl"))
    for (const RunEvent& event : history->events)
      if (const auto* check = std::get_if<ExactnessCheck>(&event.body)) checks.push_back(*check);
  return checks;
}

/// Whether the gradient is right, but there is a fault that it does not show.
bool has_hidden_cost(const ExactnessCheck& check) {
  return check.verdict != "not" && (check.reason == "wasted_reductions" || check.reason == "schedule_clock");
}

bool is_well(const ExactnessCheck& check) {
  return check.verdict != "not" && !has_hidden_cost(check);
}

void print_table(const std::vector<ExactnessCheck>& checks) {
  std::string out = fmt::format("{:>7}  {:>9}  {:>9}  {:>12}  {:>8}  {:<7} {}\n", "update", "max abs", "relative",
                                "cosine", "ratio", "verdict", "why");
  for (const ExactnessCheck& check : checks)
    out += fmt::format("{:>7}  {:>9.2e}  {:>9.2e}  {:>12.9f}  {:>8.5f}  {:<7} {}\n", check.update, check.max_abs,
                       check.relative, check.cosine, check.ratio, check.verdict,
                       check.reason.empty() ? "" : check.reason + ": " + check.message);
  const auto wrong = std::ranges::count(checks, "not", &ExactnessCheck::verdict);
  const auto close = std::ranges::count(checks, "close", &ExactnessCheck::verdict);
  const std::string size =
      fmt::format("by up to {:.2g} of its length", std::ranges::max(checks, {}, &ExactnessCheck::relative).relative);
  const auto costly = std::ranges::count_if(checks, has_hidden_cost);
  if (wrong > 0)
    out += fmt::format("{} of {} {} from one batch of the same samples, {}\n", wrong,
                       counted(static_cast<std::int64_t>(checks.size()), "window"), wrong == 1 ? "differs" : "differ",
                       size);
  if (costly > 0)
    out += fmt::format("{} of {} {} the right gradient, and something else is wrong (see why)\n", costly,
                       counted(static_cast<std::int64_t>(checks.size()), "window"), costly == 1 ? "has" : "have");
  if (wrong == 0 && costly == 0)
    out += fmt::format("{}, {}\n", counted(static_cast<std::int64_t>(checks.size()), "window"),
                       close == 0 ? fmt::format("each within {:.0e} of one batch", checks.front().tolerance)
                                  : fmt::format("{} of them different for the reason above, {}", close, size));
  put(out);
}

void print_json(const std::vector<ExactnessCheck>& checks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ExactnessCheck& check : checks)
    list.push_back({{"update", check.update},
                    {"max_abs", check.max_abs},
                    {"relative", check.relative},
                    {"cosine", check.cosine},
                    {"ratio", check.ratio},
                    {"tolerance", check.tolerance},
                    {"verdict", check.verdict},
                    {"reason", check.reason},
                    {"message", check.message},
                    {"reductions", check.reductions},
                    {"needed", check.needed},
                    {"seconds", check.seconds}});
  put_data(list.dump(2) + "\n");
}

}  // namespace

/// A window is compared with one batch in one process, which must have the whole model and the whole sum.
bool can_be_checked(const RunSpec& spec) {
  if (has_second_loss(spec.model)) {
    say("accrue-run: verify needs a loss of one sum and one count, and the order of sentences adds another\n  (set "
        "model.binary_head to false)\n");
    return false;
  }
  const ParallelSpec& parallel = spec.parallel;
  if (parallel.tensor == 1 && parallel.pipeline == 1 && parallel.zero == 0) return true;
  say("accrue-run: verify needs an undivided model and an unsharded optimizer: on each rank it computes the gradient "
      "of "
      "the whole\n  model (set parallel.tensor and parallel.pipeline to 1, parallel.zero to 0)\n");
  return false;
}

int verify_spec(const VerifyOptions& options) {
  block_handled_signals();
  auto whole = plan_from(options.input);
  if (!whole || !can_be_checked(whole->spec)) return status_refused;
  whole->spec.evaluate.exactness_every = 1;
  if (whole->totals.updates == 0) {
    say("accrue-run: there is no update to check\n");
    return status_refused;
  }
  // The plan stays that of the whole run, whose windows are checked; only the run is shorter.
  auto plan = limited_plan(*whole, updates_to_check(*whole, options.updates));
  if (!plan) return status_refused;
  const ScratchFolder scratch("verify");
  if (scratch.path().empty()) return report({ErrorCode::disk, "no temporary folder can be made", "", ""});
  const fs::path run_dir = scratch.path() / "run";
  EngineHost host({});
  if (const auto started = host.start({.plan = *plan, .run_dir = run_dir, .plugins = records_of(plan->libraries)});
      !started)
    return report(started.error());
  FollowOptions follow_options;
  follow_options.style = ProgressView::Style::quiet;
  if (const int status = follow(host, follow_options); status != status_done) return status;
  const auto checks = checks_of(run_dir);
  if (checks.empty()) return report({ErrorCode::internal, "no window was checked", run_dir.string(), ""});
  options.json ? print_json(checks) : print_table(checks);
  return std::ranges::all_of(checks, is_well) ? status_done : exit_status(ErrorCode::numerics);
}

}  // namespace accrue::cli

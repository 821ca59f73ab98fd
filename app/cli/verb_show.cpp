// SPDX-License-Identifier: Apache-2.0
// show: a run's summary and its losses.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/non_finite.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/record/compare.h"
#include "accrue/run/record/run_store.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(non_finite_name(value));
}

Json number(std::int64_t value) {
  return value;
}

std::vector<std::string> problems_of(const RunSummary& run, const RunCourse& history) {
  return record_problems(run, history.problems, history.updates.empty() ? 0 : history.updates.rbegin()->first);
}

/// Names of loss parts, or of a program's scalars, in any update.
std::set<std::string> names_in(const RunCourse& history, NamedNumbers Update::*numbers) {
  std::set<std::string> names;
  for (const auto& [number_of_update, update] : history.updates)
    for (const auto& [name, number] : update.*numbers) names.insert(name);
  return names;
}

void print_json(const RunSummary& run, const RunCourse& history) {
  Json json = Json::parse(to_json(run));
  json["dir"] = run.dir.string();
  json["problems"] = problems_of(run, history);
  Json curve;
  for (const char* key : {"update", "samples", "loss", "lr"}) curve[key] = Json::array();
  for (const auto& [number_of_update, update] : history.updates) {
    curve["update"].push_back(number_of_update);
    curve["samples"].push_back(update.samples);
    curve["loss"].push_back(update.outcome == StepOutcome::skipped_empty ? Json(nullptr) : number(update.loss));
    curve["lr"].push_back(update.lr ? number(*update.lr) : Json(nullptr));
  }
  // Optional measurements are null for updates without them.
  const auto add = [&](const char* key, const auto& value_of) {
    Json values = Json::array();
    bool any = false;
    for (const auto& [number_of_update, update] : history.updates) {
      const auto value = value_of(update);
      values.push_back(value ? number(*value) : Json(nullptr));
      any |= value.has_value();
    }
    if (any) curve[key] = std::move(values);
  };
  add("loss_scale", [](const Update& update) { return update.loss_scale; });
  add("update_norm", [](const Update& update) { return update.update_norm; });
  add("parameter_norm", [](const Update& update) { return update.parameter_norm; });
  add("gradient_zeros", [](const Update& update) { return update.gradient_zeros; });
  const auto add_named = [&](const char* key, NamedNumbers Update::*numbers) {
    for (const std::string& name : names_in(history, numbers)) {
      Json values = Json::array();
      for (const auto& [number_of_update, update] : history.updates) {
        const auto found = (update.*numbers).find(name);
        values.push_back(found == (update.*numbers).end() ? Json(nullptr) : number(found->second));
      }
      curve[key][name] = std::move(values);
    }
  };
  add_named("losses", &Update::losses);
  add_named("scalars", &Update::scalars);
  json["curve"] = std::move(curve);
  json["steps_set"] = Json::array();
  for (const LengthChange& each : history.steps_set)
    json["steps_set"].push_back({{"after_update", each.from}, {"steps", each.steps}});
  put_data(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_table(const RunCourse& history) {
  constexpr std::size_t rows = 12;
  const std::size_t count = history.updates.size();
  if (count == 0) return;
  constexpr NamedNumbers Update::*named[] = {&Update::losses, &Update::scalars};
  put("\n%10s %12s %12s", "update", "samples", "loss");
  for (const auto numbers : named)
    for (const std::string& name : names_in(history, numbers)) put(" %12s", name.c_str());
  put(" %12s %12s\n", "rate", "evaluation");
  std::size_t index = 0;
  std::size_t next_row = 0;
  for (const auto& [number_of_update, update] : history.updates) {
    const bool is_spread = index * (std::min(rows, count) - 1) >= next_row * (count - 1) || index + 1 == count;
    const auto evaluation = history.evaluations.find(number_of_update);
    // All evaluations are shown if there are few; else those beside the selected rows.
    const bool is_evaluated = history.evaluations.size() <= rows && evaluation != history.evaluations.end();
    if (is_spread) ++next_row;
    if (is_spread || is_evaluated) {
      const bool empty = update.outcome == StepOutcome::skipped_empty;
      put("%10lld %12lld %12s", static_cast<long long>(number_of_update), static_cast<long long>(update.samples),
          empty ? "no label" : fmt::format("{:.6g}", update.loss).c_str());
      for (const auto numbers : named)
        for (const std::string& name : names_in(history, numbers)) {
          const auto found = (update.*numbers).find(name);
          put(" %12s", found == (update.*numbers).end() ? "" : fmt::format("{:.6g}", found->second).c_str());
        }
      put(" %12s %12s\n", update.lr ? fmt::format("{:.4g}", *update.lr).c_str() : "",
          evaluation == history.evaluations.end() ? "" : fmt::format("{:.6g}", evaluation->second.loss).c_str());
    }
    ++index;
  }
}

/// Returns "3 updates, whose loss or gradients were not finite; loss scale 4096"; empty if there were none.
std::string skipped_text(const RunCourse& history) {
  std::int64_t skipped = 0;
  for (const auto& [number_of_update, update] : history.updates)
    skipped += update.outcome == StepOutcome::skipped_overflow ? 1 : 0;
  if (skipped == 0) return {};
  std::string text = fmt::format("{}, whose loss or gradients were not finite", counted(skipped, "update"));
  if (const auto scale = history.updates.rbegin()->second.loss_scale) text += fmt::format("; loss scale {:g}", *scale);
  return text;
}

void print_text(const RunSummary& run, const RunCourse& history) {
  const auto line = [](const char* name, const std::string& value) {
    if (!value.empty()) put("%-12s %s\n", name, value.c_str());
  };
  line("run", run.name);
  line("folder", run.dir.string());
  if (run.spec.teaching.bug != Bug::none)
    line("bug", std::string(to_name(run.spec.teaching.bug)) + " (teaching.bug: a deliberate bug)");
  line("state", run.state);
  line("started", run.started_at);
  line("branched", run.branched_from.empty() ? "" : "from " + run.branched_from);
  line("why", run.message);
  line("updates", run.planned_updates > 0 ? fmt::format("{} of {}", run.updates, run.planned_updates)
                                          : fmt::format("{}", run.updates));
  line("samples", fmt::format("{}", run.samples));
  line("tokens", fmt::format("{}", run.tokens));
  if (run.has_loss()) line("loss", fmt::format("{:.6g}", run.loss));
  line("skipped", skipped_text(history));
  if (run.empty_windows > 0) line("empty", counted(run.empty_windows, "window") + " without a label");
  line("seconds", fmt::format("{:.1f}", run.seconds));
  line("checkpoint", run.last_checkpoint);
  if (const auto& best = run.best)
    line("best", fmt::format("{}, validation loss {:.6g}", checkpoint_name(best->mark), best->loss));
  line("weights", run.weights_sha256);
  for (const LengthChange& each : history.steps_set)
    line("N set", fmt::format("{} after update {}", each.steps, each.from));
  print_table(history);
  if (const std::string table = plan_check_table(run.plan_check); !table.empty()) put("\n%s", table.c_str());
}

}  // namespace

int show_run(const ShowOptions& options) {
  const auto run = read_run(options.dir);
  if (!run) return report(run.error());
  const auto history = read_course(run->dir);
  if (!history) return report(history.error());
  warn_of(problems_of(*run, *history));
  if (options.json)
    print_json(*run, *history);
  else
    print_text(*run, *history);
  return status_done;
}

}  // namespace accrue::cli

// SPDX-License-Identifier: Apache-2.0
// A comparison of dialects as text for people and as JSON for programs.
#include <fmt/format.h>

#include "accrue/run/base/name_of.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/whatif/dialect_comparison.h"
#include "json_text.h"

namespace accrue {

namespace {

constexpr std::size_t most_listed = 10;

/// Updates before the first gap in the shown list: beyond it the list would only look complete.
std::size_t listed_updates(const DialectPlan& answer) {
  std::int64_t end = 0;
  for (const ComparedMicroStep& step : answer.steps) {
    if (step.plan.micro_step != end + 1) break;
    end = step.plan.micro_step;
  }
  const auto past =
      std::ranges::find_if(answer.updates, [end](const ComparedUpdate& update) { return update.micro_step > end; });
  return std::min(static_cast<std::size_t>(past - answer.updates.begin()), most_listed);
}

/// Returns "4, 8, 10"; a long list ends with the number of further ones.
template <typename Text>
std::string listed(const DialectPlan& answer, Text text_of) {
  std::string text;
  const auto all = static_cast<std::size_t>(answer.plan->totals.updates);
  const std::size_t shown = std::min(all, listed_updates(answer));
  for (std::size_t i = 0; i < shown; ++i) text += (i ? ", " : "") + text_of(answer.updates[i]);
  if (all > shown) text += fmt::format(" and {} more", all - shown);
  return text;
}

void row(std::string& text, std::string_view label, const std::string& value) {
  text += fmt::format("  {:<15} {}\n", label, value);
}

std::string_view clock_movement(ScheduleClock clock) {
  return name_of<ScheduleClock::external>(
      clock, {"moves with each update", "moves with each update, once per rank", "moves with each micro-step",
              "moves with each epoch", "moves on every Nth call", "moves on every call"});
}

}  // namespace

std::string schedule_text(const DialectPlan& answer) {
  if (!answer.plan) return {};
  const auto all = static_cast<std::size_t>(answer.plan->totals.updates);
  std::string text(clock_movement(answer.plan->knobs.schedule_clock));
  if (all > 0)
    text += "; updates use position " +
            listed(answer, [](const ComparedUpdate& at) { return std::to_string(at.lr_position); });
  return text + fmt::format("; {} at the end", answer.plan->totals.schedule_ticks);
}

std::string updates_text(const DialectPlan& answer) {
  if (!answer.plan) return {};
  const auto all = static_cast<std::size_t>(answer.plan->totals.updates);
  if (all == 0) return "none";
  return fmt::format("{}, after micro-step{} {}", all, all == 1 ? "" : "s",
                     listed(answer, [](const ComparedUpdate& at) { return std::to_string(at.micro_step); }));
}

namespace {

std::string error_text(const DialectPlan& answer) {
  for (const Finding& finding : answer.findings)
    if (finding.severity == Severity::error) return finding.text();
  return {};
}

Json divisor_json(const Division& division) {
  const auto number = division.number();
  return number ? Json(*number) : Json();
}

Json step_json(const ComparedMicroStep& step) {
  Json json = {{"micro_step", step.plan.micro_step},
               {"epoch", step.plan.epoch},
               {"batch", step.plan.batch},
               {"window", step.plan.window},
               {"position", step.plan.position},
               {"letters", step.letters},
               {"divisor", divisor_json(step.plan.division)},
               {"sync", step.plan.sync},
               {"update", step.plan.update}};
  json["reason"] = std::string(to_string(step.plan.reason));
  json["schedule_position"] = step.plan.schedule_position;
  json["lr"] = step.lr;
  json["skipped_batches"] = step.plan.dropped_after;
  return json;
}

Json last_json(const LastBatches& last) {
  return {{"fate", std::string(to_string(last.fate))},
          {"epoch", last.epoch},
          {"first_batch", last.first_batch},
          {"batches", last.batches},
          {"window_size", last.window_size},
          {"divisor", last.division ? divisor_json(*last.division) : Json()},
          {"ends_run", last.ends_run},
          {"text", last.text}};
}

void add_plan(Json& json, const DialectPlan& answer) {
  const WindowTotals& totals = answer.plan->totals;
  json["letters"] = answer.letters;
  json["micro_steps"] = totals.micro_steps;
  json["updates"] = totals.updates;
  json["schedule_ticks"] = totals.schedule_ticks;
  json["dropped_batches"] = totals.dropped_batches;
  json["left_over_micro_steps"] = totals.left_over_micro_steps;
  json["divisors"] = answer.divisors();
  for (const char* key : {"shown_updates", "last_batches", "steps"}) json[key] = Json::array();
  for (const ComparedUpdate& update : answer.updates)
    json["shown_updates"].push_back({{"micro_step", update.micro_step},
                                     {"window_size", update.window_size},
                                     {"reason", std::string(to_string(update.reason))},
                                     {"lr_position", update.lr_position},
                                     {"lr", update.lr}});
  for (const LastBatches& last : answer.last_batches) json["last_batches"].push_back(last_json(last));
  for (const ComparedMicroStep& step : answer.steps) json["steps"].push_back(step_json(step));
}

}  // namespace

std::string dialect_text(const DialectPlan& answer) {
  std::string text;
  if (answer.plan) {
    const bool cut = answer.plan->totals.micro_steps > static_cast<std::int64_t>(answer.steps.size());
    row(text, "plan", answer.letters + (cut ? " ..." : ""));
    row(text, "updates", updates_text(answer));
    row(text, "loss divided", answer.divisors());
    row(text, "schedule", schedule_text(answer));
    if (!answer.last_batches.empty()) row(text, "last batches", answer.fate());
  } else {
    row(text, "refused", error_text(answer));
  }
  for (const std::string& note : answer.notes) row(text, "note", note);
  return text;
}

std::string dialect_report(const DialectComparison& comparison) {
  std::string text = "b backward, B backward that reduces, S step, L schedule, Z zero, | end of an epoch\n";
  for (const DialectPlan& answer : comparison.dialects)
    text += fmt::format("\n{} ({}){}\n{}", system_name(answer.dialect), to_name(answer.dialect),
                        answer.chosen ? ", the spec's own" : "", dialect_text(answer));
  return text;
}

std::string dialect_json(const DialectComparison& comparison) {
  Json dialects = Json::array();
  for (const DialectPlan& answer : comparison.dialects) {
    Json json = {{"dialect", std::string(to_name(answer.dialect))},
                 {"system", std::string(system_name(answer.dialect))},
                 {"chosen", answer.chosen},
                 {"notes", answer.notes},
                 {"refused", nullptr}};
    if (answer.plan)
      add_plan(json, answer);
    else
      json["refused"] = error_text(answer);
    dialects.push_back(std::move(json));
  }
  return json_text(Json{{"dialects", std::move(dialects)}}, 2);
}

}  // namespace accrue

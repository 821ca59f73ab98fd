// SPDX-License-Identifier: Apache-2.0
// A comparison is five preflights of one spec, and for each plan the micro-steps in which dialects differ: the first
// ones, those around the end of an epoch, and the last. They are found by seeking, so a long run costs no more than a
// short one. Nothing here knows a dialect's rules; the window does.
#include "accrue/run/whatif/dialect_comparison.h"

#include <algorithm>

#include "accrue/run/base/name_of.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_fields.h"

namespace accrue {

namespace {

/// The length of a window (K1) is an input of a dialect, not a rule of it.
bool is_length_key(std::string_view key) {
  constexpr std::string_view length_keys[] = {"accumulation.group_length", "accumulation.length_schedule",
                                              "accumulation.global_batch", "accumulation.batch_rounding",
                                              "accumulation.memory_limit"};
  return std::ranges::find(length_keys, key) != std::end(length_keys);
}

std::string drop_note(const SpecField& field, const RunSpec& spec, Dialect from, Dialect to) {
  const std::string set = std::string(field.name()) + " = " + format_value(field.get(spec));
  if (field.dialect) return set + " is left out: it is " + std::string(system_name(*field.dialect)) + "'s own";
  return set + " is left out: it changes " + std::string(system_name(from)) + "'s rule, and " +
         std::string(system_name(to)) + " has its own";
}

/// Keeps the spec's reproduced defects that the other original has too.
void keep_own_defects(RunSpec& spec, Dialect from, Dialect to, std::vector<std::string>* notes) {
  std::erase_if(spec.accumulation.replay, [&](const std::string& name) {
    const auto defect = from_name<Replay>(name);
    if (defect && has_defect(to, *defect)) return false;
    if (notes)
      notes->push_back("replay of " + name + " is left out: it is a defect of " + std::string(system_name(from)) +
                       ", which " + std::string(system_name(to)) + " does not have");
    return true;
  });
}

struct Interval {
  std::int64_t begin;  // micro-steps, from 1
  std::int64_t end;    // inclusive
};

/// Micro-steps to show, ascending and without overlap.
std::vector<Interval> shown_intervals(std::int64_t all, std::int64_t epoch_end, std::int64_t most) {
  if (all <= most) return {{1, all}};
  std::vector<Interval> wanted = {{1, most / 2}};
  const std::int64_t quarter = std::max<std::int64_t>(most / 4, 2);
  if (epoch_end > 0 && epoch_end < all) wanted.push_back({epoch_end - quarter * 2 / 3, epoch_end + quarter / 3});
  wanted.push_back({all - quarter + 1, all});
  std::vector<Interval> merged;
  for (Interval next : wanted) {
    next.begin = std::max<std::int64_t>(next.begin, 1);
    next.end = std::min(next.end, all);
    if (!merged.empty() && next.begin <= merged.back().end + 1)
      merged.back().end = std::max(merged.back().end, next.end);
    else
      merged.push_back(next);
  }
  return merged;
}

ComparedMicroStep compared(const MicroPlan& micro, const RunPlan& plan) {
  return {micro, micro_step_letters(plan.spec.accumulation.dialect, micro), lr_at(plan.curve, micro.schedule_position)};
}

void fill_steps(DialectPlan& answer, std::int64_t epoch_end, std::int64_t most) {
  const RunPlan& plan = *answer.plan;
  AccumulationWindow window(plan.window);
  for (const Interval& interval : shown_intervals(plan.totals.micro_steps, epoch_end, most)) {
    if (interval.begin > window.micro_steps_done() + 1) window.seek(interval.begin - 1);
    while (window.micro_steps_done() < interval.end) {
      const auto micro = window.next();
      if (!micro) break;
      answer.steps.push_back(compared(*micro, plan));
      if (!micro->update) continue;
      const std::int64_t position = micro->schedule_position - micro->schedule_ticks;
      answer.updates.push_back(
          {micro->micro_step, micro->position + 1, micro->reason, position, lr_at(plan.curve, position)});
    }
  }
}

DialectPlan answer_of(const RunSpec& spec, Dialect dialect, const HostFacts& host, const DataFacts& data,
                      const std::filesystem::path& base_dir, std::int64_t most_steps,
                      std::span<const PluginFacts> libraries) {
  DialectPlan answer;
  answer.dialect = dialect;
  answer.chosen = spec.accumulation.dialect == dialect;
  answer.spec = under_dialect(spec, dialect, &answer.notes);
  Preflight checked = preflight(answer.spec, host, data, base_dir, libraries);
  answer.findings = std::move(checked.findings);
  answer.plan = std::move(checked.plan);
  if (!answer.plan) return answer;
  answer.last_batches = find_last_batches(*answer.plan);
  fill_steps(answer, first_epoch_end(answer.plan->window), most_steps);
  answer.letters = window_letters(dialect, answer.plan->window, most_steps);
  return answer;
}

/// Returns "by 4"; samples or items if those divide.
std::string divided_by(const ComparedMicroStep& step) {
  return division_text(step.plan.division, "the") + (step.plan.division.counts() ? " of its window" : "");
}

}  // namespace

std::string_view system_name(Dialect dialect) {
  return name_of<Dialect::mmengine>(dialect, {"Accrue", "llm-pytorch", "Colossal-AI", "Accelerate", "MMEngine"});
}

const DialectPlan* DialectComparison::of(Dialect dialect) const {
  const auto at = std::ranges::find(dialects, dialect, &DialectPlan::dialect);
  return at == dialects.end() ? nullptr : &*at;
}

std::string DialectPlan::fate() const {
  return joined(last_batches, " ", &LastBatches::text);
}

std::string DialectPlan::divisors() const {
  if (!plan) return {};
  if (steps.empty()) return "never, as no micro-step is trained";
  std::string text;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t end = i + 1;
    while (end < steps.size() && steps[end].plan.division == steps[i].plan.division) ++end;
    if (i == 0 && end == steps.size()) {
      text = "every micro-step " + divided_by(steps[i]);
    } else {
      const std::int64_t first = steps[i].plan.micro_step, last = steps[end - 1].plan.micro_step;
      text += (text.empty() ? "micro-steps " : ", ") + std::to_string(first) +
              (first == last ? "" : (last == first + 1 ? " and " : " to ") + std::to_string(last)) + " " +
              divided_by(steps[i]);
    }
    i = end;
  }
  if (steps.front().plan.division.when == NormalizeWhen::deferred) text += ", at the boundary";
  return text;
}

RunSpec under_dialect(const RunSpec& spec, Dialect dialect, std::vector<std::string>* notes) {
  RunSpec other = spec;
  other.accumulation.dialect = dialect;
  if (other.teaching != TeachingSpec{} && dialect != spec.accumulation.dialect) {
    other.teaching = {};  // a user's bug is not a rule of the other system
    if (notes) notes->push_back("the deliberate fault (teaching) is left out");
  }
  if (dialect == spec.accumulation.dialect) return other;
  for (const SpecField& field : spec_fields()) {
    if (field.section() != "accumulation" || !field.optional || is_length_key(field.key)) continue;
    if (std::holds_alternative<std::monostate>(field.get(spec)) || field.dialect == dialect) continue;
    field.set(other, std::monostate{});
    if (notes) notes->push_back(drop_note(field, spec, spec.accumulation.dialect, dialect));
  }
  keep_own_defects(other, spec.accumulation.dialect, dialect, notes);
  return other;
}

DialectComparison compare_dialects(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                   const std::filesystem::path& base_dir, std::int64_t most_steps,
                                   std::span<const PluginFacts> libraries) {
  DialectComparison comparison;
  for (const Dialect dialect : all_dialects)
    comparison.dialects.push_back(
        answer_of(spec, dialect, host, data, base_dir, std::max<std::int64_t>(most_steps, 8), libraries));
  return comparison;
}

}  // namespace accrue

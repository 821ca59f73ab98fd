// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "accrue/run/base/number_text.h"
#include "accrue/run/plan/forecast.h"

namespace accrue {
namespace {

constexpr std::int64_t page_bytes = 4096;

/// Bytes that a rank sent along an axis per counted window; rounded, since full windows are alike.
std::int64_t sent_per_update(const Measured& measured, std::string_view axis) {
  const auto found = std::ranges::find(measured.axis, axis);
  const auto index = static_cast<std::size_t>(found - measured.axis.begin());
  if (measured.updates == 0 || index >= measured.sent_bytes.size()) return 0;
  return (measured.sent_bytes[index] + measured.updates / 2) / measured.updates;
}

class StageFigures {
 public:
  StageFigures(const RunPlan& plan, std::int64_t stage)
      : cost_(plan.stages[static_cast<std::size_t>(stage)]),
        known_(cost_is_known(plan.spec)),
        first_(stage * plan.grid.data * plan.grid.tensor),
        last_(first_ + plan.grid.data * plan.grid.tensor - 1) {}

  void add(const Measured& measured) {
    compare("parameters", cost_.parameters, measured.parameter_bytes);
    compare("gradients", cost_.gradients, measured.gradient_bytes);
    compare("optimizer", cost_.optimizer, measured.optimizer_bytes);
    if (measured.updates == 0) return;  // it has not kept the memory of a full window either
    compare("activations", cost_.activations, measured.activation_bytes);
    for (std::size_t i = 0; i < cost_.wire.size(); ++i) {
      const auto axis = to_string(static_cast<Axis>(i));
      compare("sent " + std::string(axis), cost_.wire[i], sent_per_update(measured, axis));
    }
  }

  std::int64_t first() const { return first_; }
  std::int64_t last() const { return last_; }
  std::vector<PlanFigure> figures;

 private:
  /// Keeps the figure of the rank with the largest deviation from the plan.
  void compare(const std::string& name, std::int64_t planned, std::int64_t measured) {
    if (!known_) planned = 0;
    if (planned == 0 && measured == 0) return;
    const auto known = std::ranges::find(figures, name, &PlanFigure::figure);
    if (known == figures.end())
      figures.push_back({first_, last_, name, planned, measured, known_});
    else if (std::abs(measured - planned) > std::abs(known->measured - planned))
      known->measured = measured;
  }

  const RankCost& cost_;
  bool known_;
  std::int64_t first_;
  std::int64_t last_;
};

}  // namespace

double PlanFigure::deviation_percent() const {
  if (planned == 0) return measured == 0 ? 0 : 100;
  return 100 * static_cast<double>(measured - planned) / static_cast<double>(planned);
}

bool PlanFigure::off() const {
  const double allowed = figure == "activations" ? 25 : 10;
  return known && std::abs(measured - planned) > page_bytes && std::abs(deviation_percent()) > allowed;
}

std::vector<PlanFigure> check_plan(const RunPlan& plan, const std::map<std::int64_t, Measured>& by_rank) {
  std::vector<PlanFigure> all;
  for (std::int64_t stage = 0; stage < std::ssize(plan.stages); ++stage) {
    StageFigures of_stage(plan, stage);
    for (auto each = by_rank.lower_bound(of_stage.first()); each != by_rank.upper_bound(of_stage.last()); ++each)
      of_stage.add(each->second);
    all.insert(all.end(), of_stage.figures.begin(), of_stage.figures.end());
  }
  return all;
}

std::string plan_check_table(const std::vector<PlanFigure>& figures) {
  if (figures.empty()) return {};
  std::string text =
      fmt::format("{:<10} {:<18} {:>12} {:>12} {:>10}\n", "ranks", "bytes", "planned", "measured", "deviation");
  for (const PlanFigure& each : figures) {
    const std::string ranks = each.first_rank == each.last_rank
                                  ? fmt::format("{}", each.first_rank)
                                  : fmt::format("{} to {}", each.first_rank, each.last_rank);
    const std::string measured = format_bytes(each.measured);
    text += each.known ? fmt::format("{:<10} {:<18} {:>12} {:>12} {:>+8.1f} %{}\n", ranks, each.figure,
                                     format_bytes(each.planned), measured, each.deviation_percent(),
                                     each.off() ? "  the plan was off" : "")
                       : fmt::format("{:<10} {:<18} {:>12} {:>12}\n", ranks, each.figure, "not known", measured);
  }
  return text;
}

}  // namespace accrue

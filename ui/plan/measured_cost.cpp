// SPDX-License-Identifier: GPL-3.0-or-later
#include "measured_cost.h"

namespace accrue::ui {

std::int64_t heldBytes(const RankCost& cost) {
  return cost.total() - cost.process;
}

std::optional<RankCost> measuredCost(const std::vector<PlanFigure>& figures) {
  std::optional<RankCost> most;
  RankCost stage;
  // Figures of equal ranks follow one another.
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const PlanFigure& figure = figures[i];
    if (i > 0 && figure.first_rank != figures[i - 1].first_rank) stage = {};
    if (figure.figure == "parameters") stage.parameters = figure.measured;
    if (figure.figure == "gradients") stage.gradients = figure.measured;
    if (figure.figure == "optimizer") stage.optimizer = figure.measured;
    if (figure.figure == "activations") stage.activations = figure.measured;
    if (!most || heldBytes(stage) > heldBytes(*most)) most = stage;
  }
  return most;
}

}  // namespace accrue::ui

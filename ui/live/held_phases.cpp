// SPDX-License-Identifier: GPL-3.0-or-later
#include "held_phases.h"

#include <cmath>

#include "kit/number_text.h"
#include "kit/text.h"

namespace accrue::ui {

namespace {

QString times(double factor) {
  return std::isnan(factor) ? QString() : tr("\u00d7 %1").arg(valueText(factor, 4));
}

QString change(double from, double to) {
  return tr("%1 \u2192 %2").arg(valueText(from, 4), valueText(to, 4));
}

}  // namespace

QString phaseHelp(StepPhase phase) {
  switch (phase) {
    case StepPhase::forward:
      return tr("The model computes the loss of this micro-batch.");
    case StepPhase::scale:
      return tr(
          "The loss is multiplied by its part of the window, so that the sum of the gradients becomes their mean.");
    case StepPhase::backward:
      return tr("The micro-batch's gradients are added to those of the window; the norm is that of the sum.");
    case StepPhase::reduce:
      return tr("The ranks exchange their sums: now all hold the same.");
    case StepPhase::unscale:
      return tr("What the sum is still multiplied by: what is left of the division, and the loss scale.");
    case StepPhase::clip:
      return tr("What the gradient is multiplied by because its norm exceeds clip_norm.");
    case StepPhase::step:
      return tr("The optimizer moves the weights; shown is the first one.");
    case StepPhase::schedule:
      return tr("The schedule moves on: the learning rate of this update and of the next.");
    case StepPhase::zero:
      return tr("The gradients are cleared; the next window begins from nothing.");
    case StepPhase::none:
      break;
  }
  return {};
}

void HeldPhases::take(const std::vector<RunEvent>& events) {
  for (const RunEvent& event : events) {
    const auto* held = std::get_if<Held>(&event.body);
    if (held == nullptr || event.rank < 0) continue;
    OfRank& rank = ranks_[event.rank];
    if (!rank.last || rank.last->micro_step != held->micro_step) {
      rank.phases.clear();
      // Between two micro-steps the weights are those that the previous one left.
      rank.before = rank.last && held->phase != StepPhase::none && rank.last->micro_step == held->micro_step - 1
                        ? rank.last->weights
                        : held->weights;
    }
    rank.last = *held;
    if (held->phase != StepPhase::none) rank.phases[held->phase] = *held;
  }
}

const Held* HeldPhases::newest() const {
  return ranks_.empty() || !ranks_.begin()->second.last ? nullptr : &*ranks_.begin()->second.last;
}

QString HeldPhases::valueText(std::int64_t rank, StepPhase phase) const {
  const auto of_rank = ranks_.find(rank);
  if (of_rank == ranks_.end()) return {};
  const auto found = of_rank->second.phases.find(phase);
  if (found == of_rank->second.phases.end()) return {};
  const Held& held = found->second;
  const auto number = [](double value) { return accrue::ui::valueText(value, 4); };
  switch (phase) {
    case StepPhase::forward:
      return std::isnan(held.loss) ? tr("no batch") : tr("loss %1").arg(number(held.loss));
    case StepPhase::scale:
      return times(held.weight);
    case StepPhase::backward:
    case StepPhase::reduce:
    case StepPhase::zero:
      return std::isnan(held.gradient_norm) ? tr("being reduced") : tr("norm %1").arg(number(held.gradient_norm));
    case StepPhase::unscale:
      return times(held.factor);
    case StepPhase::clip:
      return std::isnan(held.clip) ? tr("nothing to clip") : times(held.clip);
    case StepPhase::step:
      return held.weights.empty() || of_rank->second.before.empty()
                 ? tr("moved")
                 : change(of_rank->second.before.front(), held.weights.front());
    case StepPhase::schedule:
      return change(held.lr, held.next_lr);
    case StepPhase::none:
      break;
  }
  return {};
}

}  // namespace accrue::ui

// SPDX-License-Identifier: Apache-2.0
#include "train/inspection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "accrue/run/plan/overlap.h"
#include "accrue/run/window/inside_windows.h"
#include "accrue/run/window/lr_curve.h"

namespace accrue {
namespace {

constexpr std::int64_t shown_elements = 8;

std::vector<double> first_elements(const at::Tensor& flat, const FlatRange& range) {
  const at::Tensor shown = flat.narrow(0, range.offset, std::min(range.size, shown_elements))
                               .detach()
                               .to(at::kCPU, at::kDouble)
                               .contiguous();
  const double* const begin = shown.const_data_ptr<double>();
  return {begin, begin + shown.numel()};
}

/// Buckets that were launched during the backward are sums of some ranks or of all; which is unknown.
bool are_being_reduced(const Training& training, const MicroPlan& plan) {
  return training.mesh.data().size() > 1 && training.faults.reduces(plan) && reduces_during_backward(training.plan());
}

Held held_at(Training& training, StepPhase phase, const MicroPlan& plan, const PhaseFacts& facts) {
  Held held{.update = plan.window + 1,
            .micro_step = plan.micro_step,
            .phase = phase,
            .position = plan.position + 1,
            .size = plan.window_size,
            .loss = facts.loss,
            .weight = facts.weight,
            .factor = facts.factor,
            .clip = facts.clip};
  const at::Tensor gradients = training.reducer.flat_gradients();
  const bool reducing = phase == StepPhase::backward && are_being_reduced(training, plan);
  held.gradient_norm = reducing ? PhaseFacts::unknown : flat_norm(gradients);
  const LrCurve& curve = training.plan().curve;
  // The rate before this micro-step's ticks of the schedule, and the one after them.
  held.lr = lr_at(curve, plan.schedule_position - plan.schedule_ticks);
  held.next_lr = lr_at(curve, plan.schedule_position);
  if (training.cursor.frozen_lr >= 0.0) held.lr = held.next_lr = training.cursor.frozen_lr;
  if (training.model.names().empty()) return held;
  const FlatRange& range = training.model.layout().parameters.front();
  held.parameter = training.model.names().front();
  held.elements = range.size;
  training.await_parameters();
  held.weights = first_elements(training.model.flat(), range);
  if (!reducing) held.gradient = first_elements(gradients, range);
  return held;
}

}  // namespace

void pass_phase(Training& training, StepPhase phase, const MicroPlan& plan,
                const std::function<PhaseFacts()>& catch_up) {
  if (!stops_inside_windows(training.spec())) return;
  training.channel.after_phase(phase, [&] {
    const PhaseFacts facts = catch_up();
    training.channel.send(held_at(training, phase, plan, facts));
  });
}

void report_held_before(Training& training, const MicroPlan& plan) {
  Held held = held_at(training, StepPhase::none, plan, {});
  --held.micro_step;
  --held.position;
  training.channel.send(std::move(held));
}

}  // namespace accrue

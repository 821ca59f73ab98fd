// SPDX-License-Identifier: Apache-2.0
// Schedulers as BaseScheduler. Problem: LibTorch's schedulers expose neither their rates nor their state, and have only
// a step. Solution: the adapter reads the rates from the optimizer, and the position through a pointer to the protected
// member; LambdaLR and its relatives are pure functions of a position. Cost: two virtual calls per step. Source:
// torch::optim::LRScheduler; torch.optim.lr_scheduler.LambdaLR.
#include "accrue/accumulation/base_scheduler.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "accrue/accumulation/any_optimizer.h"

namespace accrue {
namespace {

at::Tensor rates_tensor(const std::vector<double>& rates) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(rates.size())}, at::kDouble);
  std::copy(rates.begin(), rates.end(), tensor.mutable_data_ptr<double>());
  return tensor;
}

/// Returns one number per group under `name`, or an error with the number of groups.
std::vector<double> rates_of(const StateDict& state, const std::string& name, std::size_t groups) {
  const at::Tensor& saved = tensor_of(state, name);
  if (saved.numel() != static_cast<std::int64_t>(groups))
    throw std::invalid_argument("the scheduler's state has " + std::to_string(saved.numel()) + " rates under \"" +
                                name + "\"; the optimizer has " + std::to_string(groups) + " parameter groups");
  const at::Tensor rates = saved.to(at::kDouble).contiguous();
  const double* first = rates.const_data_ptr<double>();
  return {first, first + groups};
}

/// step_count_ is protected in LRScheduler; a pointer to the member, taken in a derived class, gives access.
struct StepCount : torch::optim::LRScheduler {
  static unsigned& of(torch::optim::LRScheduler& scheduler) { return scheduler.*(&StepCount::step_count_); }
};

class TorchScheduler final : public BaseScheduler {
 public:
  TorchScheduler(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer,
                 std::optional<std::int64_t> total_steps)
      : scheduler_(scheduler), optimizer_(optimizer), total_steps_(total_steps), last_(learning_rates(optimizer)) {}

  void step(std::optional<std::int64_t> epoch) override {
    if (epoch)
      throw std::invalid_argument(
          "step(epoch): LibTorch's schedulers cannot go to a position; take accrue::LambdaLR or accrue::StepLR");
    scheduler_.step();
    last_ = learning_rates(optimizer_);
  }
  std::vector<double> get_last_lr() const override { return last_; }
  std::optional<std::int64_t> total_steps() const override { return total_steps_; }

  StateDict state_dict() const override {
    return {{"position", state_number(std::int64_t{StepCount::of(scheduler_)})}, {"last_lr", rates_tensor(last_)}};
  }
  void load_state_dict(const StateDict& state) override {
    auto rates = rates_of(state, "last_lr", optimizer_.param_groups().size());
    StepCount::of(scheduler_) = static_cast<unsigned>(count_of(state, "position"));
    set_learning_rates(optimizer_, rates);
    last_ = std::move(rates);
  }

 private:
  torch::optim::LRScheduler& scheduler_;
  torch::optim::Optimizer& optimizer_;
  std::optional<std::int64_t> total_steps_;
  std::vector<double> last_;
};

/// Ratios of the groups' rates to the first one's; if that is zero, all ratios are one.
std::vector<double> proportions_of(std::vector<double> rates) {
  const double first = rates.empty() ? 0.0 : rates.front();
  for (double& rate : rates) rate = first == 0.0 ? 1.0 : rate / first;
  return rates;
}

/// gamma^floor(position / step_size).
LambdaLR::Factor step_factor(std::int64_t step_size, double gamma) {
  if (step_size < 1)
    throw std::invalid_argument("StepLR: step_size is " + std::to_string(step_size) + "; it is at least 1");
  return [step_size, gamma](std::int64_t position) {
    const std::int64_t steps = position / step_size;
    return std::pow(gamma, static_cast<double>(steps));
  };
}

}  // namespace

std::shared_ptr<BaseScheduler> wrap(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer,
                                    std::optional<std::int64_t> total_steps) {
  return std::make_shared<TorchScheduler>(scheduler, optimizer, total_steps);
}

LambdaLR::LambdaLR(torch::optim::Optimizer& optimizer, Factor factor, std::optional<std::int64_t> total_steps)
    : LambdaLR(optimizer, std::move(factor), total_steps, learning_rates(optimizer)) {}

LambdaLR::LambdaLR(torch::optim::Optimizer& optimizer, Factor factor, std::optional<std::int64_t> total_steps,
                   std::vector<double> base)
    : optimizer_(optimizer), factor_(std::move(factor)), total_steps_(total_steps), base_(std::move(base)) {
  if (!factor_) throw std::invalid_argument("LambdaLR: the factor is empty; give a function of the position");
  apply();
}

void LambdaLR::step(std::optional<std::int64_t> epoch) {
  position_ = epoch.value_or(position_ + 1);
  apply();
}

std::vector<double> LambdaLR::get_last_lr() const {
  std::vector<double> rates = base_;
  const double factor = factor_(position_);
  for (double& rate : rates) rate *= factor;
  return rates;
}

StateDict LambdaLR::state_dict() const {
  return {{"position", state_number(position_)}, {"base_lr", rates_tensor(base_)}};
}

void LambdaLR::load_state_dict(const StateDict& state) {
  auto base = rates_of(state, "base_lr", base_.size());
  position_ = count_of(state, "position");
  base_ = std::move(base);
  apply();
}

void LambdaLR::apply() {
  set_learning_rates(optimizer_, get_last_lr());
}

StepLR::StepLR(torch::optim::Optimizer& optimizer, std::int64_t step_size, double gamma)
    : LambdaLR(optimizer, step_factor(step_size, gamma)) {}

std::string BaseScheduler::text() const {
  const auto rates = get_last_lr();
  std::ostringstream text;
  for (std::size_t i = 0; i < rates.size(); ++i)
    text << (i == 0 ? "" : "\n") << "learning rate of parameter group " << i << ": " << rates[i];
  return text.str();
}

std::ostream& operator<<(std::ostream& out, const BaseScheduler& scheduler) {
  return out << scheduler.text();
}

void SchedulerWrapper::print_lr(std::ostream& out) const {
  out << BaseScheduler::text() << '\n';
}

void warn_of_schedule_before_step() {
  TORCH_WARN(
      "the schedule has moved before the optimizer's first step, so its first value is never used; call step() of the "
      "optimizer before step() of the schedule");
}

// lr_g(p) = lr_at(p) * lr_g / lr_0: the curve gives rates, not factors, so the bases are the groups' ratios to the
// first.
std::shared_ptr<BaseScheduler> make_curve_lr(torch::optim::Optimizer& optimizer, const LrCurve& curve) {
  return std::make_shared<LambdaLR>(
      optimizer, [curve](std::int64_t position) { return lr_at(curve, position); },
      has_end(curve.kind) ? std::optional(curve.total) : std::nullopt, proportions_of(learning_rates(optimizer)));
}

std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates) {
  auto& groups = optimizer.param_groups();
  if (rates.size() != groups.size())
    throw std::invalid_argument("set_learning_rates: " + std::to_string(rates.size()) + " rates for " +
                                std::to_string(groups.size()) +
                                " parameter groups; a schedule knows the groups that were there when it was made: add "
                                "groups first, or make the schedule anew after add_param_group()");
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates[i]);
}

}  // namespace accrue

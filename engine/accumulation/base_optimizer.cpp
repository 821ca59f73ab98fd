// SPDX-License-Identifier: Apache-2.0
// A LibTorch optimizer as a BaseOptimizer, and helpers for its state.
#include "accrue/accumulation/base_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/optim/lbfgs.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <string>

#include "optimizer_state.h"

namespace accrue {
namespace {

constexpr const char* optimizer_entry = "optimizer";
constexpr std::int64_t largest_count = std::int64_t{1} << 53;

const at::Tensor& number_of(const StateDict& state, const std::string& name) {
  const at::Tensor& entry = tensor_of(state, name);
  if (entry.numel() == 1) return entry;
  throw std::invalid_argument("the state's entry \"" + name + "\" has " + std::to_string(entry.numel()) +
                              " elements; it is one number");
}

class TorchOptimizer final : public BaseOptimizer {
 public:
  explicit TorchOptimizer(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {
    if (dynamic_cast<torch::optim::LBFGS*>(&optimizer) != nullptr)
      throw std::invalid_argument(
          "LBFGS computes the loss again within its step, and where gradients are accumulated there is no one loss to "
          "compute; take an optimizer that steps from the gradients alone, as SGD and Adam do");
  }

  void backward(const at::Tensor& loss, BackwardOptions options) override {
    loss.backward({}, options.retain_graph, options.create_graph);
  }

  StepOutcome step(const Closure& closure) override {
    const auto all = parameters();
    const auto has_gradient = [](const at::Tensor& each) { return each.grad().defined(); };
    if (!closure && std::none_of(all.begin(), all.end(), has_gradient)) return StepOutcome::skipped_empty;
    optimizer_.step(closure);
    return StepOutcome::updated;
  }

  void zero_grad(bool set_to_none) override {
    const at::NoGradGuard no_grad;
    optimizer_.zero_grad(set_to_none);
  }

  StateDict state_dict() const override {
    StateDict state;
    put_under(state, optimizer_entry, optimizer_state(optimizer_));
    return state;
  }

  void load_state_dict(const StateDict& state) override {
    const StateDict mine = take_under(state, optimizer_entry);
    if (mine.empty())
      throw std::invalid_argument("the state has no entries under \"optimizer.\", so it is not an optimizer's");
    load_optimizer_state(optimizer_, mine);
  }

  std::string text() const override { return optimizer_text(optimizer_); }
  torch::optim::Optimizer& torch() override { return optimizer_; }

 private:
  torch::optim::Optimizer& optimizer_;
};

}  // namespace

std::vector<at::Tensor> BaseOptimizer::parameters() {
  std::vector<at::Tensor> all;
  for (const auto& group : param_groups()) all.insert(all.end(), group.params().begin(), group.params().end());
  return all;
}

std::string BaseOptimizer::text() const {
  return optimizer_text(torch());
}

std::ostream& operator<<(std::ostream& out, const BaseOptimizer& optimizer) {
  return out << optimizer.text();
}

std::shared_ptr<BaseOptimizer> wrap(torch::optim::Optimizer& optimizer) {
  return std::make_shared<TorchOptimizer>(optimizer);
}

at::Tensor state_number(double value) {
  return at::scalar_tensor(value, at::kDouble);
}

at::Tensor state_number(std::int64_t value) {
  return at::scalar_tensor(value, at::kLong);
}

const at::Tensor& tensor_of(const StateDict& state, const std::string& name) {
  const auto found = state.find(name);
  if (found != state.end() && found->second.defined()) return found->second;
  throw std::invalid_argument("the state has no entry \"" + name + "\"");
}

double real_of(const StateDict& state, const std::string& name) {
  return number_of(state, name).item<double>();
}

std::int64_t integer_of(const StateDict& state, const std::string& name) {
  const at::Tensor& number = number_of(state, name);
  if (number.is_floating_point())
    throw std::invalid_argument("the state's entry \"" + name + "\" is not a whole number");
  return number.item<std::int64_t>();
}

std::int64_t count_of(const StateDict& state, const std::string& name) {
  const std::int64_t number = integer_of(state, name);
  if (number >= 0 && number <= largest_count) return number;
  throw std::invalid_argument("the state's entry \"" + name + "\" is " + std::to_string(number) +
                              ", which nothing here counts to");
}

void put_under(StateDict& state, const std::string& prefix, const StateDict& part) {
  for (const auto& [name, tensor] : part) state[prefix + "." + name] = tensor;
}

StateDict take_under(const StateDict& state, const std::string& prefix) {
  StateDict part;
  const std::string begin = prefix + ".";
  for (const auto& [name, tensor] : state)
    if (name.starts_with(begin)) part.emplace(name.substr(begin.size()), tensor);
  return part;
}

StateDict window_state(const WindowPosition& position) {
  StateDict state;
  for_each_field(position, [&](const char* name, std::int64_t value) { state[name] = state_number(value); });
  return state;
}

WindowPosition window_position(const StateDict& state) {
  WindowPosition position;
  for_each_field(position, [&](const char* name, auto& value) {
    const std::int64_t number = integer_of(state, name);
    if (number < unknown_length || number > largest_count)
      throw std::invalid_argument("the state's entry \"" + std::string(name) + "\" is " + std::to_string(number) +
                                  ", which no window counts to");
    value = static_cast<std::remove_reference_t<decltype(value)>>(number);
  });
  return position;
}

}  // namespace accrue

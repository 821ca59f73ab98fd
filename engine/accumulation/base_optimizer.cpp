// SPDX-License-Identifier: Apache-2.0
// A LibTorch optimizer behind BaseOptimizer, and the small vocabulary of its state. Problem: LibTorch saves an
// optimizer only as an archive of its own and loads it in place, so a bad archive leaves it half loaded. Choice: the
// archive's bytes are one entry of the state, and a load that fails puts back what was there. Cost: the moments exist
// twice while loading. Source: torch::optim::Optimizer's save() and load().
#include "accrue/accumulation/base_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/optim/lbfgs.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace accrue {
namespace {

constexpr const char* optimizer_entry = "optimizer";

at::Tensor bytes_tensor(const std::string& bytes) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

const at::Tensor& entry_of(const StateDict& state, const std::string& name) {
  const auto found = state.find(name);
  if (found != state.end() && found->second.defined()) return found->second;
  throw std::invalid_argument("the state has no entry \"" + name + "\"");
}

const at::Tensor& number_of(const StateDict& state, const std::string& name) {
  const at::Tensor& entry = entry_of(state, name);
  if (entry.numel() == 1) return entry;
  throw std::invalid_argument("the state's entry \"" + name + "\" has " + std::to_string(entry.numel()) +
                              " elements; it is one number");
}

/// Everything a load may change, to be put back where it fails.
class Snapshot {
 public:
  explicit Snapshot(torch::optim::Optimizer& optimizer) : optimizer_(optimizer), state_(std::move(optimizer.state())) {
    optimizer.state().clear();
    for (const auto& group : optimizer.param_groups())
      options_.push_back(group.has_options() ? group.options().clone() : nullptr);
  }
  void put_back() {
    optimizer_.state() = std::move(state_);
    for (std::size_t i = 0; i < options_.size(); ++i)
      if (options_[i]) optimizer_.param_groups()[i].set_options(std::move(options_[i]));
  }

 private:
  torch::optim::Optimizer& optimizer_;
  std::remove_reference_t<decltype(std::declval<torch::optim::Optimizer&>().state())> state_;
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options_;
};

class TorchOptimizer final : public BaseOptimizer {
 public:
  explicit TorchOptimizer(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {
    if (dynamic_cast<torch::optim::LBFGS*>(&optimizer) != nullptr)
      throw std::invalid_argument(
          "LBFGS computes the loss again within its step, and where gradients are accumulated there is no one loss to "
          "compute; take an optimizer that steps from the gradients alone, as SGD and Adam do");
  }

  void backward(const at::Tensor& loss) override { loss.backward(); }

  StepOutcome step() override {
    const auto all = parameters();
    const auto has_gradient = [](const at::Tensor& each) { return each.grad().defined(); };
    if (std::none_of(all.begin(), all.end(), has_gradient)) return StepOutcome::skipped_empty;
    optimizer_.step();
    return StepOutcome::updated;
  }

  void zero_grad() override {
    const at::NoGradGuard no_grad;
    optimizer_.zero_grad(/*set_to_none=*/false);
  }

  StateDict state_dict() const override {
    torch::serialize::OutputArchive archive;
    optimizer_.save(archive);
    std::ostringstream bytes;
    archive.save_to(bytes);
    return {{optimizer_entry, bytes_tensor(bytes.str())}};
  }

  void load_state_dict(const StateDict& state) override {
    const at::Tensor bytes = entry_of(state, optimizer_entry).contiguous();
    Snapshot before(optimizer_);
    try {
      torch::serialize::InputArchive archive;
      archive.load_from(static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes());
      optimizer_.load(archive);
    } catch (const std::exception& failure) {
      before.put_back();
      const std::string text = failure.what();
      throw std::invalid_argument("the state's entry \"optimizer\" does not fit this optimizer: " +
                                  text.substr(0, text.find('\n')));
    }
  }

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

std::shared_ptr<BaseOptimizer> wrap(torch::optim::Optimizer& optimizer) {
  return std::make_shared<TorchOptimizer>(optimizer);
}

at::Tensor state_number(double value) {
  return at::scalar_tensor(value, at::kDouble);
}

at::Tensor state_number(std::int64_t value) {
  return at::scalar_tensor(value, at::kLong);
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
    value = static_cast<std::remove_reference_t<decltype(value)>>(integer_of(state, name));
  });
  return position;
}

}  // namespace accrue

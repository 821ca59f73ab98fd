// SPDX-License-Identifier: Apache-2.0
// BaseOptimizer: what every accumulation wrapper is and wraps. It is the interface of torch::optim::Optimizer with
// backward() added, so that a wrapper can decide what a backward divides by and whether it reduces. A LibTorch
// optimizer becomes one through wrap(). Wrappers of several kinds stack: mixed precision inside accumulation.
//
// Thread: the training thread. None of these objects is shared between threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "accrue/run/accumulation_window.h"

namespace accrue {

/// State of an optimizer, a scheduler or a scaler: tensors by name, numbers as tensors without dims. Never code, never
/// an object graph, so that write_archive() can write it and any reader of safetensors can read it.
using StateDict = std::map<std::string, at::Tensor>;

/// What backward() does with the loss's graph; as Tensor::backward has it.
struct BackwardOptions {
  bool retain_graph = false;  ///< another backward through the same graph follows
  bool create_graph = false;  ///< the gradients are themselves differentiable
};

/// Computes the loss and its gradients anew; some optimizers call it within their step.
using Closure = std::function<at::Tensor()>;

class BaseOptimizer {
 public:
  virtual ~BaseOptimizer() = default;

  /// Adds the gradient of `loss` (shape [], with a graph) to the parameters' gradients.
  virtual void backward(const at::Tensor& loss, BackwardOptions options = {}) = 0;
  /// One update; the outcome tells when the step was not taken. `closure` goes to the innermost optimizer, where the
  /// step is taken.
  virtual StepOutcome step(const Closure& closure = {}) = 0;
  /// Drops the gradients, so that a parameter that is not used next has none and is left alone by the next step; with
  /// set_to_none false zeroes those that are there.
  virtual void zero_grad(bool set_to_none = true) = 0;

  virtual StateDict state_dict() const = 0;
  /// Errors: throws std::invalid_argument naming the entry that is missing or does not fit; nothing is changed then.
  virtual void load_state_dict(const StateDict& state) = 0;

  /// What it is and what it wraps, line by line, as the originals print themselves.
  virtual std::string text() const;

  /// The innermost LibTorch optimizer: its groups, options and parameters are those of every wrapper around it.
  virtual torch::optim::Optimizer& torch() = 0;
  const torch::optim::Optimizer& torch() const { return const_cast<BaseOptimizer*>(this)->torch(); }
  std::vector<torch::optim::OptimizerParamGroup>& param_groups() { return torch().param_groups(); }
  torch::optim::OptimizerOptions& defaults() { return torch().defaults(); }
  void add_param_group(const torch::optim::OptimizerParamGroup& group) { torch().add_param_group(group); }
  /// Every parameter of every group, in order.
  std::vector<at::Tensor> parameters();
};

std::ostream& operator<<(std::ostream& out, const BaseOptimizer& optimizer);

/// A LibTorch optimizer as a BaseOptimizer: backward() is the loss's own. The state lies under "optimizer.": options by
/// group, step and moments by parameter. `optimizer` must outlive the answer. Errors: throws std::invalid_argument for
/// LBFGS, whose step asks for the loss again.
std::shared_ptr<BaseOptimizer> wrap(torch::optim::Optimizer& optimizer);

/// An optimizer as the originals' configuration files name it: {"AdamW", {{"lr", {0.1}}, {"betas", {0.9, 0.99}}}}.
struct OptimizerConfig {
  std::string type;  ///< SGD, Adam, AdamW, RMSprop, Adagrad, or Colossal-AI's: CPUAdam, ...
  std::map<std::string, std::vector<double>> settings;  ///< by the names of its options; yes and no are 1 and 0
};
/// Makes it over one parameter group; the answer owns it. Errors: throws std::invalid_argument, which
/// names the unknown type or setting and lists the known ones.
std::shared_ptr<BaseOptimizer> build_optimizer(const std::vector<at::Tensor>& parameters,
                                               const OptimizerConfig& config);

/// Numbers in a StateDict.
at::Tensor state_number(double value);
at::Tensor state_number(std::int64_t value);
/// Entries of a StateDict. Errors: throws std::invalid_argument if `name` is missing or of another kind.
const at::Tensor& tensor_of(const StateDict& state, const std::string& name);
double real_of(const StateDict& state, const std::string& name);
std::int64_t integer_of(const StateDict& state, const std::string& name);
/// integer_of() for what counts from 0. Errors: also for one that is negative or above the largest valid count.
std::int64_t count_of(const StateDict& state, const std::string& name);
/// Entries of `part` under "prefix.", and back.
void put_under(StateDict& state, const std::string& prefix, const StateDict& part);
StateDict take_under(const StateDict& state, const std::string& prefix);

/// Where a window stands, as state, and back: what makes a wrapper resumable inside a window.
StateDict window_state(const WindowPosition& position);
/// Errors: throws std::invalid_argument naming the entry that is missing or outside the valid counts.
WindowPosition window_position(const StateDict& state);

}  // namespace accrue

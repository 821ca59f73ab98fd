// SPDX-License-Identifier: Apache-2.0
// BaseOptimizer: the interface of every accumulation wrapper and of the object inside it. It is
// torch::optim::Optimizer's interface plus backward(), so that a wrapper can decide the divisor of a backward and
// whether it reduces. wrap() makes one of a LibTorch optimizer. Wrappers can be stacked: mixed precision inside
// accumulation.
//
// Thread: the training thread. No such object is shared between threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "accrue/run/window/accumulation_window.h"

namespace accrue {

/// State of an optimizer, a scheduler or a scaler: tensors by name, numbers as tensors without dims. It contains no
/// code and no object graph, so write_archive() can write it and any reader of safetensors can read it.
using StateDict = std::map<std::string, at::Tensor>;

/// Options of backward() for the loss's graph, as in Tensor::backward.
struct BackwardOptions {
  bool retain_graph = false;  ///< another backward through the same graph follows
  bool create_graph = false;  ///< the gradients are themselves differentiable
};

/// Recomputes the loss and its gradients; some optimizers call it within their step.
using Closure = std::function<at::Tensor()>;

class BaseOptimizer {
 public:
  virtual ~BaseOptimizer() = default;

  /// Adds the gradient of `loss` (shape [], with a graph) to the parameters' gradients.
  virtual void backward(const at::Tensor& loss, BackwardOptions options = {}) = 0;
  /// Makes one update; the outcome tells if the step was skipped. `closure` goes to the innermost optimizer, which
  /// takes the step.
  virtual StepOutcome step(const Closure& closure = {}) = 0;
  /// Removes the gradients, so that the next step ignores a parameter that is not used until then. With set_to_none
  /// false, zeroes existing ones instead.
  virtual void zero_grad(bool set_to_none = true) = 0;

  virtual StateDict state_dict() const = 0;
  /// Errors: throws std::invalid_argument that names a missing or mismatched entry; nothing is changed then.
  virtual void load_state_dict(const StateDict& state) = 0;

  /// Describes the object and what it wraps, line by line, like the originals.
  virtual std::string text() const;

  /// The innermost LibTorch optimizer, whose groups, options and parameters every wrapper shares.
  virtual torch::optim::Optimizer& torch() = 0;
  const torch::optim::Optimizer& torch() const { return const_cast<BaseOptimizer*>(this)->torch(); }
  std::vector<torch::optim::OptimizerParamGroup>& param_groups() { return torch().param_groups(); }
  torch::optim::OptimizerOptions& defaults() { return torch().defaults(); }
  void add_param_group(const torch::optim::OptimizerParamGroup& group) { torch().add_param_group(group); }
  /// Every parameter of every group, in order.
  std::vector<at::Tensor> parameters();
};

std::ostream& operator<<(std::ostream& out, const BaseOptimizer& optimizer);

/// Makes a BaseOptimizer of a LibTorch optimizer: backward() is the loss's own. The state is under "optimizer.":
/// options by group, step and moments by parameter. `optimizer` must outlive the result. Errors: throws
/// std::invalid_argument for LBFGS, whose step evaluates the loss again.
std::shared_ptr<BaseOptimizer> wrap(torch::optim::Optimizer& optimizer);

/// An optimizer as named in the originals' configuration files: {"AdamW", {{"lr", {0.1}}, {"betas", {0.9, 0.99}}}}.
struct OptimizerConfig {
  std::string type;  ///< SGD, Adam, AdamW, RMSprop, Adagrad, or Colossal-AI's: CPUAdam, ...
  std::map<std::string, std::vector<double>> settings;  ///< by option name; yes and no are 1 and 0
};
/// Makes it over one parameter group; the result owns it. Errors: throws std::invalid_argument, which names the unknown
/// type or setting and lists the known ones.
std::shared_ptr<BaseOptimizer> build_optimizer(const std::vector<at::Tensor>& parameters,
                                               const OptimizerConfig& config);

/// Makes a number for a StateDict.
at::Tensor state_number(double value);
at::Tensor state_number(std::int64_t value);
/// Reads an entry of a StateDict. Errors: throws std::invalid_argument if `name` is missing or of another kind.
const at::Tensor& tensor_of(const StateDict& state, const std::string& name);
double real_of(const StateDict& state, const std::string& name);
std::int64_t integer_of(const StateDict& state, const std::string& name);
/// Does integer_of() for a count from 0. Errors: also if it is negative or above the largest valid count.
std::int64_t count_of(const StateDict& state, const std::string& name);
/// Adds the entries of `part` under "prefix."; the second function extracts them.
void put_under(StateDict& state, const std::string& prefix, const StateDict& part);
StateDict take_under(const StateDict& state, const std::string& prefix);

/// Converts a window's position to state, which makes a wrapper resumable inside a window.
StateDict window_state(const WindowPosition& position);
/// Errors: throws std::invalid_argument that names an entry that is missing or outside the valid counts.
WindowPosition window_position(const StateDict& state);

}  // namespace accrue

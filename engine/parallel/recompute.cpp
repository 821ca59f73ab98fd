// SPDX-License-Identifier: Apache-2.0
// Source of the idea: Chen et al., arXiv:1604.06174. Backward of f at x: run f again with a graph that begins at a copy
// of x, and backpropagate the output's gradient through it.
#include "accrue/parallel/recompute.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>
#include <vector>

#include "accrue/parallel/random_streams.h"

namespace accrue {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Data that the graph keeps beside the input.
struct Call : torch::CustomClassHolder {
  Recomputable function;
  RecomputeOptions options;
  std::vector<std::int64_t> sizes;  ///< of the input
  RandomStreams::State random;      ///< before the first run, if it draws
};

struct Recomputed : torch::autograd::Function<Recomputed> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const c10::intrusive_ptr<Call>& call) {
    const TensorAxis& axis = call->options.shared_by;
    call->sizes = x.sizes().vec();
    if (call->options.draws) call->random = random_streams().state(x.device());
    // The whole x, or this rank's 1 / t of its numbers.
    ctx->save_for_backward({axis.split() ? axis.own_rows(x.reshape({-1})).clone() : x});
    ctx->saved_data["call"] = c10::IValue::make_capsule(call);
    return call->function(x);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto call = c10::static_intrusive_pointer_cast<Call>(ctx->saved_data["call"].toCapsule());
    at::Tensor x = ctx->get_saved_variables()[0].detach();
    if (const TensorAxis& axis = call->options.shared_by; axis.split()) x = axis.gather_rows(x).view(call->sizes);
    x.requires_grad_(true);
    // Adds to the .grad of f's parameters itself; the returned gradient is that of x.
    torch::autograd::backward({run_again(*call, x)}, {grads[0]});
    return {x.grad(), {}};
  }

 private:
  static at::Tensor run_again(const Call& call, const at::Tensor& x) {
    std::optional<RandomStreams::Replay> replay;
    if (call.options.draws) replay.emplace(call.random);
    const at::AutoGradMode with_graph(true);
    return call.function(x);
  }
};

}  // namespace

at::Tensor recomputed(Recomputable f, const at::Tensor& x, const RecomputeOptions& options) {
  if (!at::GradMode::is_enabled()) return f(x);
  auto call = c10::make_intrusive<Call>();
  call->function = std::move(f);
  call->options = options;
  // The output has a graph only through x, whatever else the function uses.
  return Recomputed::apply(x.requires_grad() ? x : x.detach().requires_grad_(true), call);
}

}  // namespace accrue

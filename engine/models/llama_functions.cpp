// SPDX-License-Identifier: Apache-2.0
#include "models/llama_functions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/losses.h"

namespace accrue {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// With r = 1 / sqrt(mean(x^2) + eps) per row and n = r x: y = n w; dw = sum of dy n over rows, and
/// dx = r (g - n mean(g n)) for g = dy w.
struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight, double eps) {
    const at::Tensor wide = x.to(accumulation_type(x.scalar_type()));
    const at::Tensor scale = wide.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();  // [..., 1]
    ctx->save_for_backward({x, weight, scale});
    return (wide * scale).to(x.scalar_type()).mul(weight);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto kept = ctx->get_saved_variables();
    const at::Tensor &x = kept[0], &weight = kept[1], &scale = kept[2], &dy = grads[0];
    const auto type = scale.scalar_type();
    const at::Tensor n = x.to(type) * scale;
    const std::int64_t width = x.size(-1);
    const at::Tensor dweight =
        (dy * n.to(x.scalar_type())).reshape({-1, width}).sum(0, /*keepdim=*/false, type).to(weight.scalar_type());
    at::Tensor g = (dy * weight).to(type);
    const at::Tensor mean = (g * n).mean(-1, /*keepdim=*/true);
    return {g.sub_(n * mean).mul_(scale).to(x.scalar_type()), dweight, {}};
  }
};

/// y = silu(g) u; du = dy silu(g), and dg = dy u silu'(g).
struct SwiGlu : torch::autograd::Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden) {
    ctx->save_for_backward({hidden});
    const std::int64_t inner = hidden.size(-1) / 2;
    return at::silu(hidden.narrow(-1, 0, inner)).mul_(hidden.narrow(-1, inner, inner));
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const at::Tensor hidden = ctx->get_saved_variables()[0], &dy = grads[0];
    const std::int64_t inner = hidden.size(-1) / 2;
    const at::Tensor gate = hidden.narrow(-1, 0, inner), up = hidden.narrow(-1, inner, inner);
    at::Tensor gradient = at::empty_like(hidden, at::MemoryFormat::Contiguous);
    gradient.narrow(-1, 0, inner).copy_(at::silu_backward(dy * up, gate));
    gradient.narrow(-1, inner, inner).copy_(at::silu(gate).mul_(dy));
    return {gradient};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return RmsNorm::apply(x, weight, eps);
}

at::Tensor swiglu(const at::Tensor& hidden) {
  return SwiGlu::apply(hidden);
}

}  // namespace accrue

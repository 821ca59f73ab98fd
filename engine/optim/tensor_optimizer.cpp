// SPDX-License-Identifier: Apache-2.0
#include "optim/tensor_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>

#include "optim/flat_base.h"
#include "optim/flat_colossalai.h"

namespace accrue {
namespace {

class TensorAdamW final : public MomentsBase {
 public:
  using MomentsBase::MomentsBase;

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    const at::NoGradGuard no_grad;
    for (const Stretch& stretch : begin_step(rates, ranges)) {
      const auto t = static_cast<double>(stretch.steps);
      at::Tensor p = part_of(params, stretch.range);
      at::Tensor m = part_of(first_, stretch.range);
      at::Tensor v = part_of(second_, stretch.range);
      at::Tensor grad = part_of(grads, stretch.range).mul(grad_scale);
      if (spec_.kind == OptimizerKind::adam && stretch.weight_decay != 0.0) grad.add_(p, stretch.weight_decay);
      m.lerp_(grad, 1.0 - spec_.beta1);
      v.mul_(spec_.beta2).addcmul_(grad, grad, 1.0 - spec_.beta2);
      if (spec_.kind == OptimizerKind::adamw) p.mul_(1.0 - stretch.lr * stretch.weight_decay);
      const at::Tensor root = v.sqrt().div_(std::sqrt(1.0 - std::pow(spec_.beta2, t))).add_(epsilon_of(spec_));
      p.addcdiv_(m, root, -stretch.lr / (1.0 - std::pow(spec_.beta1, t)));
    }
  }
};

class TensorSgd final : public MomentumBase {
 public:
  using MomentumBase::MomentumBase;

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    const at::NoGradGuard no_grad;
    for (const Stretch& stretch : begin_step(rates, ranges)) {
      at::Tensor p = part_of(params, stretch.range);
      at::Tensor change = part_of(grads, stretch.range).mul(grad_scale);
      if (stretch.weight_decay != 0.0) change.add_(p, stretch.weight_decay);
      if (buffer_.defined()) change = part_of(buffer_, stretch.range).mul_(spec_.momentum).add_(change);
      p.sub_(change, stretch.lr);
    }
  }
};

}  // namespace

std::unique_ptr<FlatOptimizer> make_tensor_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments,
                                                     std::int64_t numel, at::TensorOptions options) {
  if (spec.kind > OptimizerKind::adamw)
    return make_colossalai_optimizer(spec, std::move(segments), numel, options, UpdatePath::operators);
  if (spec.kind == OptimizerKind::sgd) return std::make_unique<TensorSgd>(spec, std::move(segments), numel, options);
  return std::make_unique<TensorAdamW>(spec, std::move(segments), numel, options);
}

at::Tensor tensor_square_sum(const at::Tensor& flat, std::span<const FlatRange> ranges) {
  const at::NoGradGuard no_grad;
  at::Tensor total = at::zeros({}, flat.options().dtype(at::kDouble));
  for (const FlatRange& range : ranges) total.add_(part_of(flat, range).to(at::kDouble).square().sum());
  return total;
}

}  // namespace accrue

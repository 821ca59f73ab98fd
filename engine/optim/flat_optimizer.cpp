// SPDX-License-Identifier: Apache-2.0
// One pass per update over flat memory. LibTorch's own C++ optimizers loop over tensors with several operators each;
// its fused kernel would scale the gradients in place. These passes read the gradient once and leave it unchanged.
#include "accrue/optim/flat_optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "kernels/kernels.h"
#include "optim/flat_base.h"
#include "optim/flat_colossalai.h"
#include "optim/flat_paths.h"
#include "optim/update_rules.h"

namespace accrue {

namespace {

/// Numbers of a block of a sum: 256 KiB of float32. Another value would change the last bits of a norm.
constexpr std::int64_t elements_per_task = 1 << 16;

/// AdamWRule of kernels/element_rules.inl.h. params, grads and both moments are [numel]; each stretch has its own t,
/// rate and decay.
class FlatAdamW final : public MomentsBase {
 public:
  FlatAdamW(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
            at::TensorOptions options, UpdatePath path)
      : MomentsBase(spec, std::move(segments), numel, options), path_(path) {}

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    std::vector<Piece<AdamWStep>> pieces;
    for (const Stretch& stretch : begin_step(rates, ranges)) {
      const MomentsSettings by{.lr = stretch.lr,
                               .beta1 = spec_.beta1,
                               .beta2 = spec_.beta2,
                               .eps = epsilon_of(spec_),
                               .weight_decay = stretch.weight_decay,
                               .adamw_mode = spec_.kind == OptimizerKind::adamw};
      pieces.push_back({{part_of(params, stretch.range), part_of(grads, stretch.range), part_of(first_, stretch.range),
                         part_of(second_, stretch.range)},
                        adamw_step(by, stretch.steps, grad_scale)});
    }
    adamw_pass(pieces, path_);
  }

 private:
  UpdatePath path_;
};

/// SgdRule: b = momentum b + g + weight_decay p; p = p - lr b. b begins at zero, so a first update needs no case: it
/// makes b the gradient, as PyTorch's SGD does. With dampening that would not hold (FlatFusedSgd).
class FlatSgd final : public MomentumBase {
 public:
  FlatSgd(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
          at::TensorOptions options, UpdatePath path)
      : MomentumBase(spec, std::move(segments), numel, options), path_(path) {}

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    std::vector<Piece<SgdStep>> pieces;
    for (const Stretch& stretch : begin_step(rates, ranges))
      pieces.push_back(
          {{part_of(params, stretch.range), part_of(grads, stretch.range), part_of(buffer_, stretch.range), {}},
           {.lr = stretch.lr,
            .momentum = spec_.momentum,
            .weight_decay = stretch.weight_decay,
            .grad_scale = grad_scale}});
    sgd_pass(pieces, path_);
  }

 private:
  UpdatePath path_;
};

/// Sum of x^2 over the range. Squares are summed in blocks of a fixed size and the blocks in order, so the norm does
/// not depend on the threads.
template <typename T>
double typed_square_sum(const at::Tensor& flat, const FlatRange& range) {
  const T* const values = flat.const_data_ptr<T>() + range.offset;
  const std::int64_t n = range.size;
  std::vector<double> blocks(static_cast<std::size_t>((n + elements_per_task - 1) / elements_per_task));
  at::parallel_for(0, static_cast<std::int64_t>(blocks.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t from = block * elements_per_task;
      const std::int64_t count = n - from < elements_per_task ? n - from : elements_per_task;
      blocks[static_cast<std::size_t>(block)] = flat_kernels<T>().square_sum(values + from, count);
    }
  });
  double total = 0.0;
  for (const double block : blocks) total += block;
  return total;
}

}  // namespace

void FlatOptimizer::step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale) {
  const FlatRange whole{0, params.numel()};
  step(params, grads, rates, grad_scale, {&whole, 1});
}

std::unique_ptr<FlatOptimizer> make_flat_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments,
                                                   std::int64_t numel, at::ScalarType dtype, at::Device device) {
  if (dtype != at::kFloat && dtype != at::kDouble)
    throw std::invalid_argument("flat optimizers update float32 or float64 parameters; keep a float32 master copy");
  return make_flat_optimizer(spec, std::move(segments), numel, at::TensorOptions(dtype).device(device),
                             path_of(device));
}

std::unique_ptr<FlatOptimizer> make_flat_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments,
                                                   std::int64_t numel, at::TensorOptions options, UpdatePath path) {
  if (spec.kind > OptimizerKind::adamw)
    return make_colossalai_optimizer(spec, std::move(segments), numel, options, path);
  if (spec.kind == OptimizerKind::sgd)
    return std::make_unique<FlatSgd>(spec, std::move(segments), numel, options, path);
  return std::make_unique<FlatAdamW>(spec, std::move(segments), numel, options, path);
}

// [...] -> [] in float64, where squares of float32 cannot overflow. The wide copy and its squares take 16 bytes per
// element meanwhile; the kernels' own passes need no copy.
at::Tensor square_sum_of(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).square().sum();
}

at::Tensor tensor_square_sum(const at::Tensor& flat, std::span<const FlatRange> ranges) {
  const at::NoGradGuard no_grad;
  at::Tensor total = at::zeros({}, flat.options().dtype(at::kDouble));
  for (const FlatRange& range : ranges) total.add_(square_sum_of(part_of(flat, range)));
  return total;
}

double square_sum(const at::Tensor& flat, std::span<const FlatRange> ranges) {
  for (const FlatRange& range : ranges) check_inside(range, flat.numel(), "range");
  if (!flat.is_cpu()) return tensor_square_sum(flat, ranges).item<double>();
  const at::Tensor contiguous = flat.contiguous();
  const bool wide = contiguous.scalar_type() == at::kDouble;
  // Half precision is widened; squares are summed in double in either case.
  const at::Tensor values = wide ? contiguous : contiguous.to(at::kFloat);
  double total = 0.0;
  for (const FlatRange& range : ranges)
    total += wide ? typed_square_sum<double>(values, range) : typed_square_sum<float>(values, range);
  return total;
}

double flat_norm(const at::Tensor& grads) {
  const FlatRange whole{0, grads.numel()};
  return std::sqrt(square_sum(grads, {&whole, 1}));
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Clipping, gathering and reducing. Clipping is never gated, as in the original; what it costs is that a caller who
// forgets to ask sync_gradients clips partial sums, which with fp16 ends in the scaler's error at the second time.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "accelerator_impl.h"
#include "accrue/accumulation/clip_grad_norm.h"

namespace accrue::accelerate {
namespace {

/// A joined rank repeats the calls it has seen; one that has seen none would clip nothing, and wait elsewhere.
void check_that_all_ranks_know(const GradientState& state, const char* call) {
  const ActiveLoader* loader = state.active_dataloader();
  if (loader == nullptr || !loader->leaves_a_rank_out()) return;
  throw std::logic_error(
      std::string(call) +
      ": the loader has too few batches for a rank to have one, and that rank cannot know of this call; use "
      "uneven_ranks = empty_micro_steps, or even_batches");
}

}  // namespace

void Accelerator::unscale_gradients(AcceleratedOptimizer* optimizer) {
  if (!impl_->scaler) return;
  for (const auto& each : impl_->optimizers)
    if (optimizer == nullptr || each.get() == optimizer) impl_->reduce_owed(each->parameters());
  state().script().note([=, this] { unscale_gradients(optimizer); });
  for (const auto& each : impl_->optimizers)
    if (optimizer == nullptr || each.get() == optimizer) impl_->scaler->unscale(each->inner());
  impl_->gradients_are_known();
}

void Accelerator::Impl::unscale_for(const std::vector<at::Tensor>& parameters) {
  if (!scaler) return;
  const TensorSet clipped(parameters);
  for (const auto& each : optimizers)
    if (clipped.holds_any(each->parameters())) scaler->unscale(each->inner());
}

at::Tensor Accelerator::clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type) {
  check_that_all_ranks_know(state(), "clip_grad_norm_");
  impl_->reduce_owed(parameters);
  state().script().note([=, this] { clip_grad_norm_(parameters, max_norm, norm_type); });
  impl_->unscale_for(parameters);
  const at::NoGradGuard no_grad;
  const auto gradients = gradients_of(parameters);
  if (gradients.empty()) return at::zeros({});
  const at::Tensor total = gradient_norm(gradients, norm_type);
  const at::Tensor factor = at::clamp(max_norm / (total + 1e-6), std::nullopt, 1.0);
  for (at::Tensor each : gradients) each.mul_(factor);
  impl_->gradients_are_known();
  return total;
}

void Accelerator::clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  check_that_all_ranks_know(state(), "clip_grad_value_");
  impl_->reduce_owed(parameters);
  state().script().note([=, this] { clip_grad_value_(parameters, clip_value); });
  impl_->unscale_for(parameters);
  clip_grad_value(parameters, clip_value);
  impl_->gradients_are_known();
}

void Accelerator::wait_for_everyone() {
  state().script().note([this] { wait_for_everyone(); });
  impl_->axis.barrier();
}

at::Tensor Accelerator::gather(const at::Tensor& tensor) {
  check_that_all_ranks_know(state(), "gather");
  const at::Tensor mine = (tensor.dim() == 0 ? tensor.reshape({1}) : tensor).detach().contiguous();
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), num_processes());
  state().script().note([this, nothing = at::zeros_like(mine)] { gather(nothing); });
  at::Tensor all = at::empty(shape, mine.options());
  impl_->axis.all_gather(all, mine);
  return all.flatten(0, 1);
}

at::Tensor Accelerator::gather_for_metrics(const at::Tensor& tensor) {
  const at::Tensor all = gather(tensor);
  const std::int64_t real = state().remainder();
  if (!state().end_of_dataloader() || real <= 0) return all;
  return all.narrow(0, 0, std::min(real, all.size(0)));
}

at::Tensor Accelerator::reduce(const at::Tensor& tensor, Reduction reduction, double scale) {
  check_that_all_ranks_know(state(), "reduce");
  at::Tensor result = tensor.detach().clone();
  state().script().note([this, nothing = at::zeros_like(result), reduction] { reduce(nothing, reduction); });
  if (reduction != Reduction::none) {
    at::Tensor flat = result.reshape({-1}).contiguous();
    impl_->axis.all_reduce(flat);
    result = flat.reshape(result.sizes());
  }
  if (reduction == Reduction::mean) result = result / num_processes();
  return scale == 1.0 ? result : result * scale;
}

}  // namespace accrue::accelerate

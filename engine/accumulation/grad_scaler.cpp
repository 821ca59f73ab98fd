// SPDX-License-Identifier: Apache-2.0
// float16 gradients vanish below 6e-8, so the loss is multiplied by a scale that follows the gradients: halved after an
// overflow, doubled after a long time without one. Gradients are checked once per window, when the optimizer is about
// to step; a rank with an infinity tells the others before any of them decides. The cost is one pass over the gradients
// and one reduction of two numbers per update. dynamic_scale.h has the rule of the scale.
#include "accrue/accumulation/grad_scaler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace accrue {
namespace {

/// Gradients of one device and dtype, which one pass can handle together.
using GradientKind = std::pair<at::Device, at::ScalarType>;
struct ByKind {
  bool operator()(const GradientKind& a, const GradientKind& b) const {
    return std::make_tuple(a.first.type(), a.first.index(), a.second) <
           std::make_tuple(b.first.type(), b.first.index(), b.second);
  }
};
using GradientsByKind = std::map<GradientKind, std::vector<at::Tensor>, ByKind>;

/// Returns the existing gradients. Entries of a sparse one are summed first: a sum can overflow although its terms do
/// not.
GradientsByKind gradients_of(BaseOptimizer& optimizer) {
  GradientsByKind kinds;
  for (const at::Tensor& parameter : optimizer.parameters()) {
    at::Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    if (grad.is_sparse()) {
      grad = grad.coalesce();
      parameter.mutable_grad() = grad;
      grad = grad._values();
    }
    kinds[{grad.device(), grad.scalar_type()}].push_back(grad);
  }
  return kinds;
}

/// Divides in place; returns whether any element is not finite. The fused kernel multiplies by a float32 inverse, which
/// would cost float64 gradients half their digits if the scale is not a power of two.
bool unscale_kind(const GradientKind& kind, std::vector<at::Tensor>& gradients, double scale) {
  const at::NoGradGuard no_grad;
  if (kind.second == at::kDouble) {
    bool finite = true;
    for (at::Tensor& grad : gradients) {
      finite = at::isfinite(grad).all().item<bool>() && finite;
      grad.div_(scale);
    }
    return !finite;
  }
  // g <- g / S and found <- 1 if any g is not finite, in one pass over all tensors of the kind. For S a power of two
  // the float32 inverse is exact.
  const auto options = at::TensorOptions().device(kind.first).dtype(at::kFloat);
  at::Tensor found = at::zeros({1}, options);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, at::full({1}, 1.0 / scale, options));
  return found.item<float>() != 0.0F;
}

/// Returns the rule of the options; a disabled scaler has the scale 1.
DynamicScale rule_of(const GradScalerOptions& options) {
  if (!options.enabled) return {.scale = 1.0};
  const bool fits = std::isfinite(options.init_scale) && options.init_scale > 0.0 && options.growth_factor > 1.0 &&
                    options.backoff_factor > 0.0 && options.backoff_factor < 1.0 && options.growth_interval >= 1;
  if (!fits)
    throw std::invalid_argument(
        "GradScaler: init_scale must be positive, growth_factor above 1, backoff_factor between 0 and 1 and "
        "growth_interval at least 1");
  return {.scale = options.init_scale,
          .growth_factor = options.growth_factor,
          .backoff_factor = options.backoff_factor,
          .growth_interval = options.growth_interval};
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options, Communicator* axis)
    : enabled_(options.enabled), axis_(axis), scale_(rule_of(options)) {}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  return enabled() ? loss.mul(scale_.scale) : loss;
}

GradScaler::Unscaled* GradScaler::find(BaseOptimizer& optimizer) {
  for (Unscaled& each : unscaled_)
    if (each.optimizer == &optimizer.torch()) return &each;
  return nullptr;
}

void GradScaler::unscale_(BaseOptimizer& optimizer) {
  if (!enabled()) return;
  if (find(optimizer) != nullptr)
    throw std::logic_error(
        "GradScaler: unscale_() was called twice for one optimizer since the last update(), which would divide its "
        "gradients twice; call it once, after the last backward of the window");
  Unscaled entry{.optimizer = &optimizer.torch(), .found_inf = false, .found_any = false, .agreed = false};
  for (auto& [kind, gradients] : gradients_of(optimizer)) {
    entry.found_any = true;
    entry.found_inf = unscale_kind(kind, gradients, scale_.scale) || entry.found_inf;
  }
  unscaled_.push_back(entry);
}

void GradScaler::agree(Unscaled& entry) {
  if (entry.agreed) return;
  entry.agreed = true;
  if (axis_ == nullptr || axis_->size() == 1) return;
  at::Tensor found = at::zeros({2}, at::kDouble);
  double* values = found.mutable_data_ptr<double>();
  // The maximum over the ranks: any infinity, any gradient at all.
  values[0] = entry.found_inf ? 1.0 : 0.0;
  values[1] = entry.found_any ? 1.0 : 0.0;
  axis_->all_reduce(found, Reduce::max);
  entry.found_inf = values[0] != 0.0;
  entry.found_any = values[1] != 0.0;
}

StepOutcome GradScaler::step(BaseOptimizer& optimizer, const Closure& closure) {
  if (!enabled()) return optimizer.step(closure);
  if (closure)
    throw std::invalid_argument(
        "GradScaler: a step with a closure computes gradients that are not scaled; step without one, or disable the "
        "scaler");
  if (find(optimizer) == nullptr) unscale_(optimizer);
  Unscaled& entry = *find(optimizer);
  if (entry.agreed)
    throw std::logic_error(
        "GradScaler: step() was called twice for one optimizer since the last update(); call update() once after the "
        "last step() of each update");
  agree(entry);
  // After the exchange, so that all ranks return alike and their scales stay equal without another.
  if (!entry.found_any) return StepOutcome::skipped_empty;
  if (entry.found_inf) return StepOutcome::skipped_overflow;
  const StepOutcome outcome = optimizer.step();
  // A rank without its own gradient adopts the others' result.
  return outcome == StepOutcome::skipped_empty ? StepOutcome::updated : outcome;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!enabled()) return;
  if (unscaled_.empty())
    throw std::logic_error(
        "GradScaler: update() was called, but no gradients were looked at since the last one; call step() first");
  bool overflow = false;
  for (Unscaled& entry : unscaled_) {
    agree(entry);
    overflow = overflow || entry.found_inf;
  }
  unscaled_.clear();
  if (new_scale)
    scale_.scale = *new_scale;
  else if (overflow)
    scale_.overflowed();
  else
    scale_.stepped();
}

StateDict GradScaler::state_dict() const {
  if (!enabled()) return {};
  return {{"scale", state_number(scale_.scale)},
          {"growth_factor", state_number(scale_.growth_factor)},
          {"backoff_factor", state_number(scale_.backoff_factor)},
          {"growth_interval", state_number(scale_.growth_interval)},
          {"growth_tracker", state_number(scale_.growth)}};
}

void GradScaler::load_state_dict(const StateDict& state) {
  if (!enabled()) return;
  DynamicScale loaded = rule_of({.init_scale = real_of(state, "scale"),
                                 .growth_factor = real_of(state, "growth_factor"),
                                 .backoff_factor = real_of(state, "backoff_factor"),
                                 .growth_interval = integer_of(state, "growth_interval")});
  loaded.growth = integer_of(state, "growth_tracker");
  scale_ = loaded;
  unscaled_.clear();
}

}  // namespace accrue

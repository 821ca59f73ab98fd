// SPDX-License-Identifier: Apache-2.0
// float16 gradients vanish below 6e-8, so the loss is multiplied by a scale that follows the gradients: halved after an
// overflow, doubled after a long time without one. Here gradients are looked at once a window, where the optimizer is
// about to step; a rank that found an infinity tells the others before any of them decides. The cost is one pass over
// the gradients and one reduction of two numbers per update.
// Source: dynamic loss scaling, Micikevicius et al., Mixed Precision Training, section 3.2; growth and backoff as in
// torch.amp.GradScaler.
#include "accrue/accumulation/grad_scaler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace accrue {
namespace {

/// Gradients of one device and dtype, which one pass can treat together.
using GradientKind = std::pair<at::Device, at::ScalarType>;
struct ByKind {
  bool operator()(const GradientKind& a, const GradientKind& b) const {
    return std::make_tuple(a.first.type(), a.first.index(), a.second) <
           std::make_tuple(b.first.type(), b.first.index(), b.second);
  }
};
using GradientsByKind = std::map<GradientKind, std::vector<at::Tensor>, ByKind>;

/// The gradients that are there. Entries of a sparse one are added up first: a sum can overflow where its terms do not.
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

/// Divides in place; true if any element is not finite. The fused kernel multiplies by a float32 inverse, which would
/// cost float64 gradients half their digits under a scale that is no power of two.
bool unscale_kind(const GradientKind& kind, std::vector<at::Tensor>& gradients, double scale) {
  const at::NoGradGuard quiet;
  if (kind.second == at::kDouble) {
    bool finite = true;
    for (at::Tensor& grad : gradients) {
      finite = at::isfinite(grad).all().item<bool>() && finite;
      grad.div_(scale);
    }
    return !finite;
  }
  const auto options = at::TensorOptions().device(kind.first).dtype(at::kFloat);
  at::Tensor found = at::zeros({1}, options);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, at::full({1}, 1.0 / scale, options));
  return found.item<float>() != 0.0F;
}

GradScalerOptions checked(const GradScalerOptions& options) {
  const bool fits = std::isfinite(options.init_scale) && options.init_scale > 0.0 && options.growth_factor > 1.0 &&
                    options.backoff_factor > 0.0 && options.backoff_factor < 1.0 && options.growth_interval >= 1;
  if (options.enabled && !fits)
    throw std::invalid_argument(
        "GradScaler: init_scale must be positive, growth_factor above 1, backoff_factor between 0 and 1 and "
        "growth_interval at least 1");
  return options;
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options, Communicator* axis)
    : options_(checked(options)), axis_(axis), scale_(options.enabled ? options.init_scale : 1.0) {}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  return enabled() ? loss.mul(scale_) : loss;
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
    entry.found_inf = unscale_kind(kind, gradients, scale_) || entry.found_inf;
  }
  unscaled_.push_back(entry);
}

void GradScaler::agree(Unscaled& entry) {
  if (entry.agreed) return;
  entry.agreed = true;
  if (axis_ == nullptr || axis_->size() == 1) return;
  at::Tensor found = at::zeros({2}, at::kDouble);
  double* values = found.mutable_data_ptr<double>();
  values[0] = entry.found_inf ? 1.0 : 0.0;
  values[1] = entry.found_any ? 1.0 : 0.0;
  axis_->all_reduce(found, Reduce::max);
  entry.found_inf = values[0] != 0.0;
  entry.found_any = values[1] != 0.0;
}

StepOutcome GradScaler::step(BaseOptimizer& optimizer) {
  if (!enabled()) return optimizer.step();
  if (find(optimizer) == nullptr) unscale_(optimizer);
  Unscaled& entry = *find(optimizer);
  if (entry.agreed)
    throw std::logic_error(
        "GradScaler: step() was called twice for one optimizer since the last update(); call update() once after the "
        "last step() of each update");
  agree(entry);
  if (!entry.found_any) return StepOutcome::skipped_empty;
  if (entry.found_inf) return StepOutcome::skipped_overflow;
  const StepOutcome outcome = optimizer.step();
  // A rank without a gradient of its own says what the others say.
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
  if (new_scale) {
    scale_ = *new_scale;
    return;
  }
  if (overflow) {
    scale_ = std::max(scale_ * options_.backoff_factor, static_cast<double>(std::numeric_limits<float>::min()));
    growth_tracker_ = 0;
    return;
  }
  if (++growth_tracker_ < options_.growth_interval) return;
  growth_tracker_ = 0;
  // The scale meets float32 losses and float32 inverses: it grows no further than both can hold.
  const double grown = scale_ * options_.growth_factor;
  if (std::isfinite(static_cast<float>(grown)) && std::isnormal(static_cast<float>(1.0 / grown))) scale_ = grown;
}

StateDict GradScaler::state_dict() const {
  if (!enabled()) return {};
  return {{"scale", state_number(scale_)},
          {"growth_factor", state_number(options_.growth_factor)},
          {"backoff_factor", state_number(options_.backoff_factor)},
          {"growth_interval", state_number(options_.growth_interval)},
          {"growth_tracker", state_number(growth_tracker_)}};
}

void GradScaler::load_state_dict(const StateDict& state) {
  if (!enabled()) return;
  GradScalerOptions loaded = options_;
  loaded.init_scale = real_of(state, "scale");
  loaded.growth_factor = real_of(state, "growth_factor");
  loaded.backoff_factor = real_of(state, "backoff_factor");
  loaded.growth_interval = integer_of(state, "growth_interval");
  const std::int64_t tracker = integer_of(state, "growth_tracker");
  loaded = checked(loaded);
  scale_ = loaded.init_scale;
  growth_tracker_ = tracker;
  options_.growth_factor = loaded.growth_factor;
  options_.backoff_factor = loaded.backoff_factor;
  options_.growth_interval = loaded.growth_interval;
  unscaled_.clear();
}

}  // namespace accrue

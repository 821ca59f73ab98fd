// SPDX-License-Identifier: Apache-2.0
// Each optimizer's rule for one number, written once, for the CPU's loops (flat_update.inl.h, layer_update.inl.h) and
// the device's kernels (device_kernels.inl.h). A rule holds its step's settings in T, computed on the CPU. Sources:
// PyTorch's documentation of AdamW and SGD; colossalai.nn.optimizer; You et al., arXiv:1904.00962 (LAMB) and
// arXiv:1708.03888 (LARS).
#pragma once

#include <cmath>

#include "kernels/host_device.h"
#include "kernels/kernels.h"

namespace accrue {
namespace {

/// g' = grad_scale g + l2 p; m = beta1 m + (1 - beta1) g'; v = beta2 v + (1 - beta2) g'^2;
/// p = p (1 - lr weight_decay) - lr / correction1 * m / (sqrt(v) / correction2_root + eps).
/// The corrections 1 - beta^t undo the pull of moments that begin at zero (Kingma and Ba, arXiv:1412.6980); l2 is
/// Adam's decay, weight_decay AdamW's (Loshchilov and Hutter, arXiv:1711.05101). As in PyTorch it is multiplied by the
/// whole rate; in the paper (algorithm 2) by the schedule's factor alone. m moves towards g' as PyTorch's lerp does,
/// which rounds differently from the sum of two products.
template <typename T>
struct AdamWRule {
  AdamWRule() = default;
  explicit AdamWRule(const AdamWStep& step)
      : scale(static_cast<T>(step.grad_scale)),
        keep(static_cast<T>(1.0 - step.lr * step.weight_decay)),
        take1(static_cast<T>(1.0 - step.beta1)),
        beta2(static_cast<T>(step.beta2)),
        take2(static_cast<T>(1.0 - step.beta2)),
        eps(static_cast<T>(step.eps)),
        l2(static_cast<T>(step.l2)),
        size(static_cast<T>(step.lr / step.correction1)),
        root(static_cast<T>(step.correction2_root)) {}

  ACCRUE_HOST_DEVICE void operator()(T& p, T g, T& first, T& second) const {
    const T grad = g * scale + l2 * p;
    const T m = first + (grad - first) * take1;
    const T v = beta2 * second + take2 * grad * grad;
    first = m;
    second = v;
    p = p * keep - size * (m / (std::sqrt(v) / root + eps));
  }

  T scale, keep, take1, beta2, take2, eps, l2, size, root;
};

/// b = momentum b + grad_scale g + weight_decay p; p = p - lr b. Without a buffer b is the second part alone. PyTorch's
/// form: the rate is outside the buffer, so a change of rate acts at once on old gradients too.
template <typename T>
struct SgdRule {
  SgdRule() = default;
  explicit SgdRule(const SgdStep& step)
      : scale(static_cast<T>(step.grad_scale)),
        decay(static_cast<T>(step.weight_decay)),
        momentum(static_cast<T>(step.momentum)),
        lr(static_cast<T>(step.lr)) {}

  ACCRUE_HOST_DEVICE void operator()(T& p, T g) const { p -= lr * (g * scale + decay * p); }
  ACCRUE_HOST_DEVICE void operator()(T& p, T g, T& buffer) const {
    const T velocity = momentum * buffer + (g * scale + decay * p);
    buffer = velocity;
    p -= lr * velocity;
  }

  T scale, decay, momentum, lr;
};

/// New moments and their direction u:
/// g' = grad_scale g + l2 p; m = beta1 m + take1 g'; v = beta2 v + (1 - beta2) g'^2;
/// u = (m / correction1) / (sqrt(v / correction2) + eps) + weight_decay p.
/// The corrections enter as reciprocals, rounded once from double: two products per number in place of two quotients.
template <typename T>
struct MomentsRule {
  MomentsRule() = default;
  explicit MomentsRule(const MomentsStep& step)
      : scale(static_cast<T>(step.grad_scale)),
        l2(static_cast<T>(step.l2)),
        beta1(static_cast<T>(step.beta1)),
        take1(static_cast<T>(step.take1)),
        beta2(static_cast<T>(step.beta2)),
        take2(static_cast<T>(1.0 - step.beta2)),
        eps(static_cast<T>(step.eps)),
        decay(static_cast<T>(step.weight_decay)),
        raise1(static_cast<T>(1.0 / step.correction1)),
        raise2(static_cast<T>(1.0 / step.correction2)) {}

  ACCRUE_HOST_DEVICE T direction(T p, T m, T v) const { return m * raise1 / (std::sqrt(v * raise2) + eps) + decay * p; }
  ACCRUE_HOST_DEVICE T operator()(T p, T g, T& first, T& second) const {
    const T grad = g * scale + l2 * p;
    const T m = beta1 * first + take1 * grad;
    const T v = beta2 * second + take2 * grad * grad;
    first = m;
    second = v;
    return direction(p, m, v);
  }

  T scale, l2, beta1, take1, beta2, take2, eps, decay, raise1, raise2;
};

/// p = p - lr u.
template <typename T>
struct FusedAdamRule {
  FusedAdamRule() = default;
  explicit FusedAdamRule(const MomentsStep& step) : moments(step), lr(static_cast<T>(step.lr)) {}

  ACCRUE_HOST_DEVICE void operator()(T& p, T g, T& first, T& second) const {
    p = p - lr * moments(p, g, first, second);
  }

  MomentsRule<T> moments;
  T lr;
};

/// The second half of a LAMB step: p = p - rate u, with rate = lr |p| / |u| over the whole parameter (You et al.,
/// algorithm 2). u comes from the new moments and the old p, as in the first half.
template <typename T>
struct LambRule {
  LambRule() = default;
  LambRule(const MomentsStep& step, double rate) : moments(step), size(static_cast<T>(rate)) {}

  ACCRUE_HOST_DEVICE void operator()(T& p, T m, T v) const { p -= size * moments.direction(p, m, v); }

  MomentsRule<T> moments;
  T size;
};

/// g' = grad_scale g + l2 p; b = keep b + take g'; p = p - lr (b + weight_decay p). With Nesterov's look-ahead
/// g' + momentum b takes the place of b.
template <typename T>
struct FusedSgdRule {
  FusedSgdRule() = default;
  explicit FusedSgdRule(const FusedSgdStep& step)
      : scale(static_cast<T>(step.grad_scale)),
        lr(static_cast<T>(step.lr)),
        l2(static_cast<T>(step.l2)),
        decay(static_cast<T>(step.weight_decay)),
        keep(static_cast<T>(step.keep)),
        take(static_cast<T>(step.take)),
        of_grad(step.nesterov ? T(1) : T(0)),
        of_buffer(step.nesterov ? static_cast<T>(step.momentum) : T(1)) {}

  ACCRUE_HOST_DEVICE void operator()(T& p, T g) const { p -= lr * (g * scale + l2 * p + decay * p); }
  ACCRUE_HOST_DEVICE void operator()(T& p, T g, T& buffer) const {
    const T grad = g * scale + l2 * p;
    const T velocity = keep * buffer + take * grad;
    buffer = velocity;
    p = p - lr * (of_grad * grad + of_buffer * velocity + decay * p);
  }

  T scale, lr, l2, decay, keep, take;
  T of_grad, of_buffer;  ///< the step is a mixture: the buffer alone, or with Nesterov's look-ahead
};

/// b = momentum b + clamp(grad_scale g + weight_decay p, -10, 10); p = p - lr b. lr includes the parameter's trust
/// ratio, eeta |p| / (|g| + weight_decay |p| + epsilon) (optim/update_rules.h). The clamp is Colossal-AI's, not the
/// paper's.
template <typename T>
struct LarsRule {
  LarsRule() = default;
  explicit LarsRule(const LarsStep& step)
      : scale(static_cast<T>(step.grad_scale)),
        lr(static_cast<T>(step.lr)),
        decay(static_cast<T>(step.weight_decay)),
        momentum(static_cast<T>(step.momentum)) {}

  ACCRUE_HOST_DEVICE T decayed(T p, T g) const {
    const T most = T(10);
    const T d = g * scale + decay * p;
    return d < -most ? -most : d > most ? most : d;  // a NaN stays NaN
  }
  ACCRUE_HOST_DEVICE void operator()(T& p, T g) const { p -= lr * decayed(p, g); }
  ACCRUE_HOST_DEVICE void operator()(T& p, T g, T& buffer) const {
    const T velocity = momentum * buffer + decayed(p, g);
    buffer = velocity;
    p -= lr * velocity;
  }

  T scale, lr, decay, momentum;
};

}  // namespace
}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Optimizer updates on a device, the interface of accrue_cuda: a call starts kernels and returns. Pointers are device
// pointers. Their memory must stay valid until the kernels have finished, which LibTorch's tensors guarantee.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernels.h"

namespace accrue {

enum class NumberType : std::int32_t { float32, float16, bfloat16, float64 };

/// A tensor's memory on a device; null if a rule has no such tensor.
struct DeviceColumn {
  void* data = nullptr;
  NumberType type = NumberType::float32;
};

/// Inputs and outputs of an update of one tensor, n numbers each: all float64, or each in one of the narrower types,
/// which are computed in float32.
struct DeviceColumns {
  DeviceColumn params;
  DeviceColumn grads;
  DeviceColumn first;   ///< moment, or the buffer of an SGD
  DeviceColumn second;  ///< moment
  std::int64_t n = 0;
};

/// Number of parts of a tensor's sums of squares, two numbers each, one per block of threads; a part without a block
/// stays unchanged.
constexpr std::int64_t parts_of_sums = 1024;

/// One device. A call works on tensors with a step each, and skips empty ones. Thread: training. Errors: throws
/// ResultError (device) if a kernel does not start.
class DeviceUpdates {
 public:
  using Tensors = std::span<const DeviceColumns>;

  virtual ~DeviceUpdates() = default;
  virtual void update(Tensors tensors, std::span<const AdamWStep> steps) const = 0;
  virtual void update(Tensors tensors, std::span<const SgdStep> steps) const = 0;
  /// FusedAdam's update.
  virtual void update(Tensors tensors, std::span<const MomentsStep> steps) const = 0;
  virtual void update(Tensors tensors, std::span<const FusedSgdStep> steps) const = 0;
  virtual void update(Tensors tensors, std::span<const LarsStep> steps) const = 0;
  /// Like lamb_moments() of FlatKernels. parts: [tensors, parts_of_sums, 2], of the parameters and of the steps.
  virtual void lamb_moments(Tensors tensors, std::span<const MomentsStep> steps, double* parts) const = 0;
  virtual void lamb_apply(Tensors tensors, std::span<const MomentsStep> steps, std::span<const double> rates) const = 0;
  /// Sums of squares of the parameters and, if there are any, the gradients. parts as above.
  virtual void square_sums(Tensors tensors, double* parts) const = 0;
  /// Adds parts in an order that is always the same. parts: as above, zero if no kernel wrote them. sums: [tensors, 2].
  virtual void add_parts(const double* parts, std::int64_t tensors, double* sums) const = 0;
};

}  // namespace accrue

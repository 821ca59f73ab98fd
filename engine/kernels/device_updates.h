// SPDX-License-Identifier: Apache-2.0
// Optimizer updates on a device, as accrue_cuda offers them: a call starts kernels and returns. Pointers are the
// device's; what a call works on must stay as it is until the kernels are through, which is so for LibTorch's tensors.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernels.h"

namespace accrue {

enum class NumberType : std::int32_t { float32, float16, bfloat16, float64 };

/// A tensor's memory on a device; null where a rule has no such tensor.
struct DeviceColumn {
  void* data = nullptr;
  NumberType type = NumberType::float32;
};

/// What an update of one tensor reads and writes, n numbers each: all float64, or each in one of the narrower types,
/// which are computed in float32.
struct DeviceColumns {
  DeviceColumn params;
  DeviceColumn grads;
  DeviceColumn first;   ///< moment, or the buffer of an SGD
  DeviceColumn second;  ///< moment
  std::int64_t n = 0;
};

/// A tensor's sums of squares come in so many parts, two numbers each, those of its blocks of threads; a part that no
/// block has stays as it is.
constexpr std::int64_t parts_of_sums = 1024;

/// One device. A call works on tensors that have a step each, and an empty one is left out. Thread: training. Errors:
/// throws ResultError (device) where a kernel does not start.
class DeviceUpdates {
 public:
  using Tensors = std::span<const DeviceColumns>;

  virtual ~DeviceUpdates() = default;
  virtual void update(Tensors tensors, std::span<const AdamWStep> steps) const = 0;
  virtual void update(Tensors tensors, std::span<const SgdStep> steps) const = 0;
  /// FusedAdam's.
  virtual void update(Tensors tensors, std::span<const MomentsStep> steps) const = 0;
  virtual void update(Tensors tensors, std::span<const FusedSgdStep> steps) const = 0;
  virtual void update(Tensors tensors, std::span<const LarsStep> steps) const = 0;
  /// As lamb_moments() of FlatKernels. parts: [tensors, parts_of_sums, 2], of the parameters and of the steps.
  virtual void lamb_moments(Tensors tensors, std::span<const MomentsStep> steps, double* parts) const = 0;
  virtual void lamb_apply(Tensors tensors, std::span<const MomentsStep> steps, std::span<const double> rates) const = 0;
  /// Of the parameters and, where there are any, the gradients. parts as above.
  virtual void square_sums(Tensors tensors, double* parts) const = 0;
  /// parts: as above, zero where a kernel left them. sums: [tensors, 2], added up in an order that
  /// depends on nothing.
  virtual void add_parts(const double* parts, std::int64_t tensors, double* sums) const = 0;
};

}  // namespace accrue

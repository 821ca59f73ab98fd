// SPDX-License-Identifier: Apache-2.0
// One update of many tensors: the vector loops of kernels/ on the CPU; on a device the kernels of the CUDA module, or
// LibTorch's operators if it has none. The flat optimizers pass stretches of flat memory, the classes for any program
// their parameters. Half precision is computed in float32. Sums of squares are taken in blocks of a fixed size, added
// in order, so they do not depend on the threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <variant>
#include <vector>

#include "accrue/comm/communicator.h"
#include "kernels/device_updates.h"

namespace accrue {

/// Inputs and outputs of an update of one tensor: all contiguous, of equal numel, on one device. Each may be float32,
/// float16 or bfloat16, or all are float64.
struct UpdateTensors {
  at::Tensor params;
  at::Tensor grads;
  at::Tensor first;   ///< moment, or the buffer of an SGD; undefined if the rule has none
  at::Tensor second;  ///< moment
};

/// A tensor and the factors of its update. As each has its own, parameters of all groups, or stretches with different
/// rates, are one pass.
template <typename Step>
struct Piece {
  UpdateTensors tensors;
  Step step;
};

/// Implementation of an update.
class UpdatePath {
 public:
  enum Kind { kernels, operators };
  UpdatePath(Kind kind) : path_(kind) {}  // NOLINT(google-explicit-constructor): of the CPU, or of any device
  /// Uses the device's own kernels, which must outlive the path.
  explicit UpdatePath(const DeviceUpdates& updates) : path_(&updates) {}
  /// Returns the device's own kernels; throws std::bad_variant_access for a path of a Kind.
  const DeviceUpdates& updates() const { return *std::get<const DeviceUpdates*>(path_); }
  /// Returns the name for the record: "kernels", "operators" or "CUDA kernels".
  const char* name() const;
  bool operator==(const UpdatePath&) const = default;

 private:
  std::variant<Kind, const DeviceUpdates*> path_;
};

/// Returns kernels for the CPU; for a CUDA device the module's, if it has any, else operators.
UpdatePath path_of(const at::Device& device);
/// Agrees on whether the device of every rank has its own kernels. If one lacks them, all ranks use operators from now
/// on: the two round differently, and copies of a parameter must stay equal. Collective: the axis.
bool agree_on_device_kernels(Communicator& axis, bool mine);

/// Each of these updates all pieces by one rule of kernels/element_rules.inl.h: p, and m and v or the buffer b. On the
/// CPU and by a device's kernels an Adam reads 4 numbers per element and writes 3, an SGD 3 and 2, or without a buffer
/// 2 and 1. Operators make several passes. Empty lists do nothing. Errors: throw std::invalid_argument for pieces that
/// UpdateTensors excludes.
void adamw_pass(const std::vector<Piece<AdamWStep>>& pieces, UpdatePath path);
void sgd_pass(const std::vector<Piece<SgdStep>>& pieces, UpdatePath path);
void fused_adam_pass(const std::vector<Piece<MomentsStep>>& pieces, UpdatePath path);
void fused_sgd_pass(const std::vector<Piece<FusedSgdStep>>& pieces, UpdatePath path);
void lars_pass(const std::vector<Piece<LarsStep>>& pieces, UpdatePath path);
/// Computes new moments, the first half of LAMB: reads 4 numbers per element and writes 2. Returns the sums of squares
/// of each piece's parameters and of its LAMB step: [pieces, 2], float64, on the device.
at::Tensor lamb_moments_pass(const std::vector<Piece<MomentsStep>>& pieces, UpdatePath path);
/// Applies the steps, p -= rate u, with one rate per piece: the learning rate times the trust ratio. u is computed
/// again from the moments, which reads 3 numbers per element; a stored u would be a fifth tensor of the model's size.
void lamb_apply_pass(const std::vector<Piece<MomentsStep>>& pieces, const std::vector<double>& rates, UpdatePath path);
/// Returns each piece's step before its rate, computed from its moments, in the type of the computation.
std::vector<at::Tensor> lamb_steps(const std::vector<Piece<MomentsStep>>& pieces);
/// Returns the sums of squares of each piece's parameters and gradients, as stored: [pieces, 2], float64, on the
/// device. A caller that scales gradients multiplies the root of the second by |grad_scale|.
at::Tensor lars_sums_pass(const std::vector<Piece<LarsStep>>& pieces, UpdatePath path);
/// Returns the sum of squares of tensors, in double.
double square_sum_pass(const std::vector<at::Tensor>& tensors);

}  // namespace accrue

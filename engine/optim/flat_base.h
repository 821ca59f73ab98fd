// SPDX-License-Identifier: Apache-2.0
// Common base of all optimizers on flat memory: checks arguments, counts the updates of each segment, and merges
// adjacent segments with equal options.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/optim/flat_optimizer.h"

namespace accrue {

/// Elements that one pass updates in the same way. Rate and decay are absolute: the update's, times the segment's
/// factors.
struct Stretch {
  FlatRange range;
  double weight_decay = 0.0;
  double lr = 0.0;
  std::int64_t steps = 0;   ///< updates of the segment, including this one
  std::size_t segment = 0;  ///< in which it begins
  /// Whether one set of factors serves both. That includes t, from which Adam's corrections 1 - beta^t follow.
  bool like(const Stretch& other) const {
    return weight_decay == other.weight_decay && lr == other.lr && steps == other.steps;
  }
};

/// Returns the elements of both ranges; empty if there are none.
std::optional<FlatRange> common_part(const FlatRange& a, const FlatRange& b);
/// Throws std::invalid_argument for a range outside [0, numel).
void check_inside(const FlatRange& range, std::int64_t numel, const std::string& what);

/// Returns a view of a flat tensor; undefined if the tensor is.
at::Tensor part_of(const at::Tensor& flat, const FlatRange& range);

class FlatBase : public FlatOptimizer {
 public:
  FlatBase(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
           at::TensorOptions options);
  const std::vector<OptimizerSegment>& segments() const final { return segments_; }
  at::Tensor segment_steps() final { return segment_steps_; }
  std::int64_t steps() const final { return steps_; }
  void set_steps(std::int64_t steps) final { steps_ = steps; }

 protected:
  at::Tensor state_tensor() const;
  void check(const at::Tensor& params, const at::Tensor& grads) const;
  /// Counts the update in every segment that it reaches, and returns the stretches to update. merged: one pass covers
  /// whole adjacent segments and the padding between them, which is zero and stays zero (0 / (0 + eps) in the Adams).
  /// by_segment: each stretch is within one segment.
  enum class Stretches { merged, by_segment };
  std::vector<Stretch> begin_step(const UpdateRates& rates, std::span<const FlatRange> ranges,
                                  Stretches stretches = Stretches::merged);

  OptimizerSpec spec_;

 private:
  std::vector<OptimizerSegment> segments_;
  /// On the CPU for any device, since the corrections 1 - beta^t are computed there.
  at::Tensor segment_steps_;
  std::int64_t numel_;
  at::TensorOptions options_;
  std::int64_t steps_ = 0;
};

/// State of the Adams and the LAMBs: m and v, [numel] each in the type of the parameters.
class MomentsBase : public FlatBase {
 public:
  using FlatBase::FlatBase;
  std::vector<std::pair<std::string, at::Tensor>> state() final {
    return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
  }

 protected:
  at::Tensor first_ = state_tensor();
  at::Tensor second_ = state_tensor();
};

/// State of the SGDs and of Lars: b, [numel], or nothing without momentum.
class MomentumBase : public FlatBase {
 public:
  using FlatBase::FlatBase;
  std::vector<std::pair<std::string, at::Tensor>> state() final {
    if (!buffer_.defined()) return {};
    return {{"momentum_buffer", buffer_}};
  }

 protected:
  at::Tensor buffer_ = spec_.momentum != 0.0 ? state_tensor() : at::Tensor();
};

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// What all optimizers on flat memory share: checking arguments, counting the updates of each segment, and merging
// adjacent segments that an update treats the same.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/optim/flat_optimizer.h"

namespace accrue {

/// Elements that one pass updates in the same way.
struct Stretch {
  FlatRange range;
  double weight_decay = 0.0;
  double lr = 0.0;
  std::int64_t steps = 0;   ///< updates that the segment has had, with this one
  std::size_t segment = 0;  ///< where it begins
  bool like(const Stretch& other) const {
    return weight_decay == other.weight_decay && lr == other.lr && steps == other.steps;
  }
};

/// The elements of both ranges; empty where there are none.
std::optional<FlatRange> common_part(const FlatRange& a, const FlatRange& b);
/// Throws std::invalid_argument for a range outside [0, numel).
void check_inside(const FlatRange& range, std::int64_t numel, const std::string& what);

/// A view of a flat tensor; undefined where that is.
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
  /// Counts the update in every segment that it reaches, and returns the stretches to update. merged: only padding lies
  /// between two whole adjacent segments, and it is zero and stays zero, so one pass covers both. by_segment: each
  /// stretch lies in one segment.
  enum class Stretches { merged, by_segment };
  std::vector<Stretch> begin_step(const UpdateRates& rates, std::span<const FlatRange> ranges,
                                  Stretches stretches = Stretches::merged);

  OptimizerSpec spec_;

 private:
  std::vector<OptimizerSegment> segments_;
  at::Tensor segment_steps_;  ///< on the CPU
  std::int64_t numel_;
  at::TensorOptions options_;
  std::int64_t steps_ = 0;
};

/// The state of the Adams and the LAMBs.
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

/// The state of the SGDs and of Lars.
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

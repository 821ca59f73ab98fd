// SPDX-License-Identifier: Apache-2.0
// State of an Accelerator, shared by its sources.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "accumulation/accelerate/shared_scaler.h"

namespace accrue::accelerate {

/// A set of tensors, by identity.
class TensorSet {
 public:
  explicit TensorSet(const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& each : tensors) known_.insert(each.unsafeGetTensorImpl());
  }
  bool holds(const at::Tensor& tensor) const { return known_.contains(tensor.unsafeGetTensorImpl()); }
  bool holds_any(const std::vector<at::Tensor>& tensors) const {
    return std::any_of(tensors.begin(), tensors.end(), [this](const at::Tensor& each) { return holds(each); });
  }

 private:
  std::unordered_set<const void*> known_;
};

/// An interval in autograd's own order of operations: computed while a no_sync() scope was open.
struct Stretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct PreparedModel : DrivenModel {
  PreparedModel(torch::nn::Module& prepared, std::unique_ptr<DistributedDataParallel> wrapper)
      : DrivenModel(*wrapper), module(&prepared), ddp(std::move(wrapper)), parameters(ddp->parameters()) {}

  /// Records gradients that have arrived: the next update needs them reduced, unless the caller keeps the model from
  /// it.
  void look();
  /// Whether a backward of something computed at `when` reduces.
  bool reduces(std::uint64_t when) const { return triggered || (ddp->sync_enabled() && !unsynced(when)); }
  /// Whether it does not reduce only because its window is open; it is then reduced before the update.
  bool waits(std::uint64_t when) const { return open_windows > 0 && no_syncs == 0 && !unsynced(when); }
  /// Whether it was computed under the caller's no_sync().
  bool unsynced(std::uint64_t when) const {
    return std::any_of(stretches.begin(), stretches.end(),
                       [when](const Stretch& each) { return each.begin <= when && when < each.end; });
  }
  /// Whether a scope of the caller prevents reduction, also at an update.
  bool kept() const { return !ddp->sync_enabled() && (open_windows == 0 || no_syncs > 0); }

  torch::nn::Module* module;
  std::unique_ptr<DistributedDataParallel> ddp;
  TensorSet parameters;
  std::deque<Stretch> stretches;
  bool triggered = false;  ///< trigger_sync_in_backward() is in force
  int open_windows = 0;    ///< open accumulate() scopes off a boundary that name it
  int no_syncs = 0;        ///< the caller's own no_sync() scopes
};
using PreparedModels = std::vector<std::shared_ptr<PreparedModel>>;

struct AcceleratorImpl {
  AcceleratorImpl(const AcceleratorOptions& options, Communicator& communicator);

  void look() {
    for (const auto& each : models) each->look();
  }
  /// Returns for each model whether it holds any of these.
  std::vector<bool> models_of(const std::vector<at::Tensor>& parameters) const;
  bool is_of_no_model(const at::Tensor& parameter) const;
  void backward(const at::Tensor& loss, BackwardOptions options);
  /// Reduces models[i] if `wanted[i]` is set on this rank, or on any rank if a rank without samples cannot know.
  /// Collective if any does: the axis.
  void reduce(std::vector<bool> wanted);
  /// On a boundary, reduces models[i] if `needed[i]` and it holds unreduced gradients that are about to be clipped or
  /// applied. Off a boundary it does nothing.
  void settle(std::vector<bool> needed);
  /// Does the same for the models that hold any of `parameters`; with fp16, unscales the optimizers that do.
  void settle_to_clip(const std::vector<at::Tensor>& parameters);
  PreparedModels chosen(std::vector<std::size_t> indices) const;
  /// Returns this rank's input of a collective: zeros in the others' shape if it has no sample.
  at::Tensor contribution(const at::Tensor& mine, const char* call) const;

  std::shared_ptr<GradientState> held_state;  ///< loaders share it
  GradientState& state;
  Communicator& axis;
  AccumulationDriver driver;
  std::unique_ptr<SharedScaler> scaler;  ///< with fp16
  PreparedModels models;
  std::vector<std::unique_ptr<AcceleratedOptimizer>> optimizers;
  std::vector<std::unique_ptr<AcceleratedScheduler>> schedulers;
  std::int64_t backwards = 0;
  MicroPlan plan;
};

}  // namespace accrue::accelerate

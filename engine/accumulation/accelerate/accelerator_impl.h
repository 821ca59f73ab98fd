// SPDX-License-Identifier: Apache-2.0
// What an Accelerator holds; shared by its sources.
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
#include "arrival_count.h"

namespace accrue::accelerate {

/// A stretch of autograd's own order of operations, within which a model was kept from reducing.
struct QuietStretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct PreparedModel {
  PreparedModel(torch::nn::Module& prepared, std::unique_ptr<DistributedDataParallel> wrapper)
      : module(&prepared), ddp(std::move(wrapper)), arrivals(ddp->parameters()) {}

  /// A backward of something computed at `when` reduces.
  bool reduces(std::uint64_t when) const;
  /// It does not, and for no reason but that its group is open: then it is reduced before the update.
  bool waits(std::uint64_t when) const;
  /// Reduces what is owed, unless the caller himself keeps the model from it. Collective: the axis.
  void pay();

  torch::nn::Module* module;
  std::unique_ptr<DistributedDataParallel> ddp;
  ArrivalCount arrivals;
  std::deque<QuietStretch> quiet;
  bool triggered = false;  ///< trigger_sync_in_backward() is in force
  int open_groups = 0;     ///< accumulate() scopes off a boundary that it is named in
  int no_syncs = 0;        ///< the caller's own no_sync() scopes
  bool owed = false;       ///< it holds gradients of this rank alone that the next update needs from all
  /// In the last micro-steps off a boundary and on one, gradients came by a backward that was not the Accelerator's.
  bool by_hand[2] = {false, false};
};

/// Which tensors these are, by identity.
class TensorSet {
 public:
  explicit TensorSet(const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& each : tensors) known_.insert(each.unsafeGetTensorImpl());
  }
  bool holds_any(const std::vector<at::Tensor>& tensors) const {
    return std::any_of(tensors.begin(), tensors.end(),
                       [this](const at::Tensor& each) { return known_.contains(each.unsafeGetTensorImpl()); });
  }

 private:
  std::unordered_set<const void*> known_;
};

/// What a backward reached: indices of models and optimizers.
struct Reached {
  std::vector<std::size_t> models;
  std::vector<std::size_t> optimizers;
};

struct Accelerator::Impl {
  Impl(const AcceleratorOptions& options, Communicator& communicator);
  ~Impl();

  /// Models to which gradients have come since the last look.
  std::vector<std::size_t> arrived();
  /// Takes note of gradients that came by a backward of the caller's own: their models are owed a reduction.
  void look();
  /// What the gradients are now is known: only what comes later is new.
  void gradients_are_known();
  void owe(const std::vector<std::size_t>& chosen);
  /// Without a batch there is no backward to see: what the last micro-step of this kind did by hand, the others do now.
  void expect_by_hand();
  /// Off a boundary nothing; on one, reduces the models that are owed it and hold any of `parameters`, which are about
  /// to be clipped or applied. Collective: the axis.
  void reduce_owed(const std::vector<at::Tensor>& parameters);
  /// With fp16, unscales the optimizers that hold any of `parameters`, which are about to be clipped.
  void unscale_for(const std::vector<at::Tensor>& parameters);
  /// Reduces the models and notes what the optimizers' gradients have become. `when`: see PreparedModel.
  void after_backward(const Reached& reached, std::uint64_t when);
  Reached everything() const;
  /// Buffers of these models follow rank 0, unless they are kept from reducing. Collective: the axis.
  void before_forward(const std::vector<std::size_t>& chosen);
  /// Keeps the models from reducing until the answer goes, as the micro-steps of an open group do.
  AtEnd keep_quiet(const std::vector<std::size_t>& chosen);
  /// A micro-step without a batch: the loop's calls again, or what every loop does.
  void shadow();

  std::shared_ptr<GradientState> held_state;  ///< loaders share it
  GradientState& state;
  Communicator& axis;
  bool agreed = false;                   ///< that all ranks accumulate alike
  std::unique_ptr<SharedScaler> scaler;  ///< with fp16
  std::vector<std::shared_ptr<PreparedModel>> models;
  std::vector<std::unique_ptr<AcceleratedOptimizer>> optimizers;
  std::vector<std::unique_ptr<AcceleratedScheduler>> schedulers;
  Reached last_reached;                                ///< of the last backward that had a batch
  std::optional<std::vector<std::size_t>> last_named;  ///< models of the last accumulate()
  MicroPlan plan;
};

}  // namespace accrue::accelerate

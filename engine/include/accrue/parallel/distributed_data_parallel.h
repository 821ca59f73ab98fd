// SPDX-License-Identifier: Apache-2.0
// DistributedDataParallel for any torch::nn::Module. LibTorch has none in C++; this one does not wrap forward
// (Module::forward is not virtual): it hangs hooks on the parameters, and the caller goes on calling its own module.
//
// All gradients live in one flat arena in the order in which backward finishes them, and each parameter's .grad is a
// view of it, so accumulation adds in place, clearing is one memset and a reduction needs no copy. While sync is off
// (no_sync) hooks do nothing. While it is on, a bucket is reduced as soon as its last gradient has arrived, in fixed
// order; finish() completes the window.
//
//   accrue::DistributedDataParallel ddp(*model, data_axis);
//   { auto quiet = ddp.no_sync(); loss_of(*model, batch).backward(); }
//   loss_of(*model, batch).backward();
//   ddp.finish();            // all buckets reduced; unused parameters counted as zero
//   optimizer.step(); ddp.zero_grad();
//
// Source: the role of torch.nn.parallel.DistributedDataParallel; the design is Accrue's.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "accrue/comm/communicator.h"
#include "accrue/comm/grad_sync.h"
#include "accrue/run/accumulation_knobs.h"
#include "accrue/run/shard_layout.h"

namespace accrue {

struct DataParallelOptions {
  std::int64_t bucket_bytes = 25 << 20;
  ReduceOp op = ReduceOp::mean;      ///< mean divides by the axis size after summing, as Python's DDP does
  bool broadcast_parameters = true;  ///< rank 0's parameters and buffers reach all ranks at construction
};

class DistributedDataParallel final : public GradSync {
 public:
  /// Verifies that all ranks hold the same shapes, broadcasts, builds the arena and hangs the hooks.
  /// Collective: the whole axis. Errors: throws std::invalid_argument naming the first parameter that differs between
  /// ranks.
  DistributedDataParallel(torch::nn::Module& module, Communicator& axis, DataParallelOptions options = {});
  ~DistributedDataParallel() override;

  bool sync_enabled() const override;
  void set_sync_enabled(bool enabled) override;

  /// After the last backward of a window: reduces what is left, waits, and makes all ranks' gradients equal. Does
  /// nothing if sync was off. Collective: the whole axis.
  void finish();
  /// Zeroes the arena; the views stay. Module::zero_grad() and Optimizer::zero_grad() default to dropping gradients,
  /// which breaks the views: that is detected at the next backward or finish(), mended, and said once.
  void zero_grad();

  /// The flat gradients, [numel of the layout]; padding is zero.
  at::Tensor flat_gradients() const;
  const FlatLayout& layout() const;
  /// Parameters in module order; layout().parameters[i] is where parameter i's gradient lies.
  const std::vector<at::Tensor>& parameters() const;
  std::int64_t reductions() const;  ///< bucket reductions since construction

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace accrue

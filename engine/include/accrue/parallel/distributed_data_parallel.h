// SPDX-License-Identifier: Apache-2.0
// DistributedDataParallel for any torch::nn::Module. LibTorch has none in C++; this one does not wrap forward
// (Module::forward is not virtual): it hangs hooks on the parameters, and the caller goes on calling its own module.
//
// All gradients live in one flat arena in the order in which backward finishes them, and each parameter's .grad lies in
// it, so accumulation adds in place, clearing is one memset and a reduction needs no copy. finish() reduces the window,
// bucket by bucket in fixed order. While sync is off (no_sync) it does nothing and the gradients go on piling up.
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

/// When a bucket goes out. at_finish: in finish(), after any number of backwards.
/// when_ready: as soon as its last gradient has arrived, so that a network works while backward goes on; then exactly
/// one backward with sync on belongs to each finish(). On one host there is no idle core to hide a reduction on.
enum class LaunchBuckets { at_finish, when_ready };

struct DataParallelOptions {
  std::int64_t bucket_bytes = 25 << 20;
  ReduceOp op = ReduceOp::mean;      ///< mean divides by the axis size after summing, as Python's DDP does
  bool broadcast_parameters = true;  ///< rank 0's parameters and buffers reach all ranks at construction
  LaunchBuckets launch = LaunchBuckets::at_finish;
  /// K16. float32: gradients of half-precision parameters pile up in float32 (.grad is then of that type, which
  /// optimizers take); float32 and float64 pile up as they are. float32_compensated: with a term that carries what each
  /// addition rounds off (Kahan), for twice the memory. Whoever writes to a .grad drops its term.
  AccumulationDtype accumulation = AccumulationDtype::float32;
};

class DistributedDataParallel final : public GradSync {
 public:
  /// Verifies that all ranks hold the same shapes, broadcasts and builds the arena. Parameters that require a gradient
  /// take part, a tied one once; all of one floating dtype on one device. The module and the axis must outlive this.
  /// Collective: the whole axis. Errors: throws std::invalid_argument naming the first parameter that differs between
  /// ranks or from the others.
  DistributedDataParallel(torch::nn::Module& module, Communicator& axis, DataParallelOptions options = {});
  ~DistributedDataParallel() override;

  bool sync_enabled() const override;
  void set_sync_enabled(bool enabled) override;

  /// After the last backward of a window: reduces, waits, and makes all ranks' gradients equal; a parameter that no
  /// loss reached counts as zero. Does nothing if sync is off. To reduce after every micro-step, use ReduceOp::mean: a
  /// second sum over gradients that already hold one would count it once per rank. Collective: the whole axis.
  void finish() override;
  /// Zeroes the arena; the views stay. Module::zero_grad() and Optimizer::zero_grad() default to dropping gradients,
  /// which takes them out of the arena: finish() notices, copies them back and says so once.
  void zero_grad();

  /// The flat gradients, [numel of the layout], in the type they pile up in; padding is zero.
  at::Tensor flat_gradients() const;
  /// What the additions so far have rounded off, of the same shape; undefined unless accumulation is compensated.
  at::Tensor flat_compensation() const;
  const FlatLayout& layout() const;
  /// The parameters that take part, in module order; layout().parameters[i] is where parameter i's gradient lies.
  const std::vector<at::Tensor>& parameters() const;
  std::int64_t reductions() const;  ///< bucket reductions since construction

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace accrue

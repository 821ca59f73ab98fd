// SPDX-License-Identifier: Apache-2.0
// DistributedDataParallel for any torch::nn::Module. LibTorch has none in C++; this one does not wrap forward
// (Module::forward is not virtual): it hangs hooks on the parameters, and the caller goes on calling its own module.
//
// All gradients live in one flat arena (one for each floating type of the model) in the order in which backward
// finishes them, and each parameter's .grad lies in it, so accumulation adds in place, clearing is one memset and a
// reduction needs no copy. finish() reduces the window, bucket by bucket in fixed order. While sync is off (no_sync) it
// does nothing and the gradients go on accumulating.
//
//   accrue::DistributedDataParallel ddp(*model, data_axis);
//   { auto scope = ddp.no_sync(); loss_of(*model, batch).backward(); }
//   ddp.before_forward();    // buffers follow rank 0, as Python's forward does it
//   loss_of(*model, batch).backward();
//   ddp.finish();            // all buckets reduced; a parameter that no rank used has no gradient
//   optimizer.step(); ddp.zero_grad();
//
// Source: the role of torch.nn.parallel.DistributedDataParallel; the design is Accrue's.
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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
  /// mean divides by the axis size: after summing, and of 16-bit sums before, which could overflow else.
  ReduceOp op = ReduceOp::mean;
  bool broadcast_parameters = true;  ///< rank 0's parameters and buffers reach all ranks at construction
  /// Buffers (running statistics) follow rank 0's once a window: in before_forward(), or where that was not called in
  /// finish(), so that no loop can forget it.
  bool broadcast_buffers = true;
  LaunchBuckets launch = LaunchBuckets::at_finish;
  /// K16. float32: gradients of half-precision parameters accumulate in float32 (.grad is then of that type, which
  /// optimizers take); float32 and float64 accumulate as they are. float32_compensated: with a term that carries what
  /// each addition rounds off (Kahan), for twice the memory. Writing to a .grad drops its term.
  AccumulationDtype accumulation = AccumulationDtype::float32;
};

class DistributedDataParallel final : public GradSync {
 public:
  /// Verifies that all ranks hold the same parameters and options, broadcasts and builds the arenas. Parameters that
  /// require a gradient take part, a tied one once; all floating, on one device. The module and the axis must outlive
  /// this. Collective: the whole axis. Errors: throws std::invalid_argument naming the first parameter that differs
  /// between ranks (in name, shape, dtype or requires_grad) or does not fit.
  DistributedDataParallel(torch::nn::Module& module, Communicator& axis, DataParallelOptions options = {});
  ~DistributedDataParallel() override;

  bool sync_enabled() const override;
  void set_sync_enabled(bool enabled) override;

  /// Before a forward whose backward reduces: buffers become rank 0's. Nothing without buffers or with sync off.
  /// Collective: the whole axis.
  void before_forward() override;
  /// After the last backward of a window: reduces, waits, and makes all ranks' gradients equal. A parameter that some
  /// rank's backward reached has a gradient on all afterwards, one that none reached has none, so that an optimizer
  /// leaves it alone. Does nothing if sync is off. To reduce after every micro-step, use ReduceOp::mean: a second sum
  /// over gradients that already hold one would count it once per rank. Collective: the whole axis.
  void finish() override;
  std::int64_t arrivals() const override;
  void agree(const std::string& what, const std::vector<std::int64_t>& values) override;
  /// What has arrived since the last finish() stays this rank's own; no finish() is due for it. Without this, with
  /// several ranks and sync on, a parameter that changes between its gradient's arrival and finish() means that the
  /// window was never reduced: the next backward, or zero_grad(), then throws std::logic_error.
  void leave_local();
  /// Drops all gradients and clears the arenas. Module::zero_grad() and Optimizer::zero_grad() may be called instead.
  /// After a backward that threw, call this before the next window begins.
  void zero_grad();

  /// Arenas, one for each floating type among the parameters, in the order of parameters().
  std::size_t arenas() const;
  /// The flat gradients of an arena, [numel of its layout], in the type they accumulate in; padding is zero, and so are
  /// parameters without a gradient.
  at::Tensor flat_gradients(std::size_t arena = 0) const;
  /// What the additions so far have rounded off, of the same shape; undefined unless accumulation is compensated.
  at::Tensor flat_compensation(std::size_t arena = 0) const;
  /// parameters[i] is where the gradient of the arena's i-th parameter lies.
  const FlatLayout& layout(std::size_t arena = 0) const;
  /// The parameters that take part: by type, and in module order among those of a type.
  const std::vector<at::Tensor>& parameters() const;
  /// Which of them have a gradient: a backward has reached them, after finish() one of any rank.
  std::vector<bool> reached() const;
  /// After gradients were put into flat_gradients(): these parameters have one, the others have none.
  void set_reached(const std::vector<bool>& reached);
  std::int64_t reductions() const;  ///< bucket reductions since construction

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace accrue

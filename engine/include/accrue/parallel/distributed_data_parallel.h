// SPDX-License-Identifier: Apache-2.0
// DistributedDataParallel for any torch::nn::Module, which LibTorch lacks in C++. It does not wrap forward
// (Module::forward is not virtual): it attaches hooks to the parameters, and the caller keeps calling its own module.
//
// All gradients are in one flat arena (one for each floating type of the model) in the order in which backward finishes
// them. Each parameter's .grad is a view of it. So accumulation adds in place, clearing is one memset and a reduction
// needs no copy. finish() reduces the window, bucket by bucket in a fixed order. While sync is off (no_sync) it does
// nothing, and the gradients continue to accumulate.
//
//   accrue::DistributedDataParallel ddp(*model, data_axis);
//   { auto scope = ddp.no_sync(); loss_of(*model, batch).backward(); }
//   ddp.before_forward();    // copies rank 0's buffers, as Python's forward does
//   loss_of(*model, batch).backward();
//   ddp.finish();            // all buckets reduced; a parameter that no rank used has no gradient
//   optimizer.step(); ddp.zero_grad();
//
// Thread: one thread calls the members and backward(); hooks run on autograd's threads.
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
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/accumulation_knobs.h"

namespace accrue {

/// Time at which a bucket is reduced. at_finish: in finish(), after any number of backwards.
/// when_ready: it starts as soon as its last gradient has arrived, so communication overlaps with backward, and
/// finish() waits for it; each finish() then requires exactly one backward with sync on for every parameter. Both give
/// the same bits. On one host all cores are busy, so overlap gains nothing.
enum class LaunchBuckets { at_finish, when_ready };

struct DataParallelOptions {
  std::int64_t bucket_bytes = 25 << 20;
  /// mean divides by the axis size after summing; for 16-bit types before, because their sum could overflow.
  ReduceOp op = ReduceOp::mean;
  bool broadcast_parameters = true;  ///< copy rank 0's parameters and buffers to all ranks at construction
  /// Copies rank 0's buffers (running statistics) to all ranks once per window: in before_forward(), or in finish() if
  /// that was not called.
  bool broadcast_buffers = true;
  LaunchBuckets launch = LaunchBuckets::at_finish;
  /// K16. float32: gradients of half-precision parameters accumulate in float32 (.grad has that type, and optimizers
  /// accept it); float32 and float64 accumulate in their own type. float32_compensated: also keeps the rounding error
  /// of each addition (Kahan), for twice the memory. Writing to a .grad drops its term.
  AccumulationDtype accumulation = AccumulationDtype::float32;
  /// ZeRO-1: each rank gets the sum of its own part of every bucket (owned_ranges()). Its other gradients are
  /// incomplete sums, so only the owned ranges may be clipped or stepped on.
  bool shard = false;
  /// A parameter that shares no bucket with others (flat_layout()); undefined: none.
  at::Tensor alone = {};
};

class DistributedDataParallel final : public GradSync {
 public:
  /// Verifies that all ranks hold the same parameters and options, broadcasts rank 0's values and builds the arenas.
  /// Takes the parameters that require a gradient, a tied one once; all must be floating-point and on one device. The
  /// module and the axis must outlive this. Collective: the whole axis. Errors: throws std::invalid_argument with the
  /// name of the first parameter that differs between ranks (in name, shape, dtype or requires_grad) or is of another
  /// kind.
  DistributedDataParallel(torch::nn::Module& module, Communicator& axis, const DataParallelOptions& options = {});
  /// Warns if a parameter changed before the gradients of the last window were reduced; see leave_local().
  ~DistributedDataParallel() override;

  bool sync_enabled() const override;
  void set_sync_enabled(bool enabled) override;

  /// Call before a forward whose backward reduces: copies rank 0's buffers. Does nothing without buffers or with sync
  /// off. Collective: the whole axis.
  void before_forward() override;
  /// Call after the last backward of a window: reduces, waits, and makes all ranks' gradients equal, or with `shard`
  /// each rank's part of them. Afterwards a parameter that any rank's backward reached has a gradient on all ranks. One
  /// that none reached has none, so an optimizer does not change it. Does nothing if sync is off. To reduce after every
  /// micro-step, use ReduceOp::mean: a second sum would count gradients that are already sums once per rank. Errors:
  /// throws std::logic_error with the name of a parameter that requires a gradient now but was frozen or missing at
  /// construction: make a new DistributedDataParallel after unfreezing. Collective: the whole axis.
  void finish() override;
  std::int64_t arrivals() const override;
  void agree(const std::vector<NamedNumber>& numbers) override;
  /// Declares that the gradients since the last finish() stay local to this rank and will not be reduced. Otherwise,
  /// with several ranks and sync on, a parameter that changes between its gradient's arrival and finish() indicates a
  /// forgotten reduction. The next backward or zero_grad() then throws std::logic_error; the destructor warns.
  void leave_local();
  /// Drops all gradients and clears the arenas. Module::zero_grad() and Optimizer::zero_grad() may be called instead.
  /// After a backward that threw, call this before the next window begins.
  void zero_grad();

  /// Number of arenas: one per floating type of the parameters, in the order of parameters().
  std::size_t arenas() const;
  /// Returns the flat gradients of an arena, [layout(arena).numel], in their accumulation type. Padding is zero, and so
  /// is the place of a parameter without a gradient.
  at::Tensor flat_gradients(std::size_t arena = 0) const;
  /// Returns the accumulated rounding errors, of the same shape; undefined unless accumulation is compensated.
  at::Tensor flat_compensation(std::size_t arena = 0) const;
  /// parameters[i] is the range of the gradient of the arena's i-th parameter.
  const FlatLayout& layout(std::size_t arena = 0) const;
  /// The parameters in the arenas: by type, and in module order within a type.
  const std::vector<at::Tensor>& parameters() const;
  /// Returns for each of them whether a backward reached it: before finish() on this rank, after it on any rank.
  std::vector<bool> reached() const;
  /// Call after writing gradients into flat_gradients(): these parameters have one, the others have none.
  void set_reached(const std::vector<bool>& reached);
  std::int64_t reductions() const;  ///< bucket reductions since construction

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace accrue

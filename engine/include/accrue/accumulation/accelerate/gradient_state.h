// SPDX-License-Identifier: Apache-2.0
// GradientState: state shared by everything that an Accelerator prepared. The original has one per process, which an
// evaluation or a second trainer can change; here each Accelerator has its own. It holds no count: AccumulationWindow
// counts, and sync_gradients is that window's boundary.
// Source: Hugging Face Accelerate 1.15, GradientState. Thread: the training thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <vector>

#include "accrue/accumulation/accelerate/accelerator_options.h"
#include "accrue/accumulation/accumulation_driver.h"

namespace accrue::accelerate {

/// A pass over a prepared loader, during the pass.
class ActiveLoader {
 public:
  virtual ~ActiveLoader() = default;
  /// Whether the current batch is the last one, on all ranks.
  virtual bool end_of_dataloader() const = 0;
  /// Samples over all ranks of an incomplete last batch; 0 if it is complete, -1 if unknown.
  virtual std::int64_t remainder() const = 0;
  /// Whether the current batch has no sample on this rank.
  virtual bool empty() const = 0;
  /// Whether the current batch has no sample on some rank; equal on all ranks.
  virtual bool some_rank_is_empty() const = 0;
};

class PreparedLoaderBase;

class GradientState : public std::enable_shared_from_this<GradientState> {
 public:
  /// `world`: ranks of the data axis. Errors: throws std::invalid_argument if N is below 1.
  GradientState(const AcceleratorOptions& options, std::int64_t world);

  bool sync_gradients() const { return window_->boundary_due(); }
  void set_sync_gradients(bool sync);
  std::int64_t num_steps() const;
  /// From the next micro-step on the counter is compared with the new N; it is not reset.
  void set_num_steps(std::int64_t steps);
  bool adjust_scheduler() const { return false; }  ///< never reaches the state, as in the original
  bool sync_with_dataloader() const { return plugin_.sync_with_dataloader; }
  bool sync_each_batch() const { return plugin_.sync_each_batch; }
  const GradientAccumulationPlugin& plugin() const { return plugin_; }

  bool in_dataloader() const { return !active_.empty(); }
  /// The innermost loader that is being read; null outside a loop.
  const ActiveLoader* active_dataloader() const { return active_.empty() ? nullptr : active_.back(); }
  bool end_of_dataloader() const { return in_dataloader() && active_.back()->end_of_dataloader(); }
  std::int64_t remainder() const { return in_dataloader() ? active_.back()->remainder() : -1; }
  bool on_empty_batch() const { return in_dataloader() && active_.back()->empty(); }
  /// Whether some rank had no sample in this micro-step or an earlier one of its window; equal on all ranks.
  bool some_rank_is_empty() const;

  /// Begins a micro-step: the last batch of the innermost loader ends its window, unless sync_with_dataloader is off.
  MicroPlan begin_micro_step();
  /// Resets the counter to zero; sync_gradients stays.
  void reset_step();

  std::int64_t world() const { return window_->shape().world; }
  const AcceleratorOptions& options() const { return options_; }
  AccumulationWindow& window() { return *window_; }
  const AccumulationWindow& window() const { return *window_; }
  const SharedWindow& shared_window() const { return window_; }

  // Used by the parts that an Accelerator prepares.
  void enter(ActiveLoader& loader) { active_.push_back(&loader); }
  void leave(const ActiveLoader& loader);
  void add(PreparedLoaderBase& loader) { loaders_.push_back(&loader); }
  void remove(PreparedLoaderBase& loader);
  void replace(PreparedLoaderBase& loader, PreparedLoaderBase& with) noexcept;
  const std::vector<PreparedLoaderBase*>& loaders() const { return loaders_; }

 private:
  AcceleratorOptions options_;
  GradientAccumulationPlugin plugin_;
  SharedWindow window_;
  std::vector<ActiveLoader*> active_;
  std::vector<PreparedLoaderBase*> loaders_;
  bool uneven_window_ = false;  ///< some rank had no sample in a micro-step of the window
};

/// Prints like the original.
std::ostream& operator<<(std::ostream& out, const GradientState& state);

}  // namespace accrue::accelerate

// SPDX-License-Identifier: Apache-2.0
// The fake rank's training: it computes nothing, but follows the plan's window and reports a falling loss.
#pragma once

#include <cstdint>

#include "accrue/run/preflight/run_order.h"
#include "accrue/run/window/accumulation_window.h"
#include "channel.h"
#include "script.h"
#include "world.h"

namespace fake_rank {

class Training {
 public:
  Training(const accrue::RunOrder& order, std::int64_t rank, Script script, Channel& channel, World& world);
  /// The exit status.
  int run();

 private:
  bool is_first_attempt() const { return order_.first_seq.empty() || order_.first_seq.front() == 0; }
  void announce();
  void resume();
  int train();
  void act(const accrue::MicroPlan& plan);
  void pass_boundary(const accrue::MicroPlan& plan);
  void pass(accrue::StepPhase phase, const accrue::MicroPlan& plan);
  void report_micro_step(const accrue::MicroPlan& plan, std::int64_t begin_ns, std::int64_t busy_ns);
  void note_operation(accrue::ComputeKind kind, std::int64_t micro_step, std::int64_t begin_ns, std::int64_t end_ns);
  void report_update(const accrue::MicroPlan& plan);
  void change_steps(const accrue::MicroPlan& plan, std::int64_t requested);
  bool reduce(const accrue::MicroPlan& plan, std::uint32_t& flags);
  void save(const accrue::MicroPlan& plan);
  void commit(const accrue::MicroPlan& plan);
  void report_end(const char* outcome);
  double loss(const accrue::MicroPlan& plan) const;
  int finish(const char* outcome);
  int fail(accrue::ErrorCode code, const char* message);

  const accrue::RunOrder& order_;
  std::int64_t rank_;
  Script script_;
  Channel& channel_;
  World& world_;
  accrue::AccumulationWindow window_;
  accrue::Operations operations_;  ///< of the open window, sent with its boundary
  std::int64_t updates_ = 0;
  std::int64_t collectives_ = 0;
  double last_loss_ = 0.0;
  bool is_nan_ = false;
  double due_s_ = 0.0;  ///< with rate=: when the next micro-step begins
};

}  // namespace fake_rank

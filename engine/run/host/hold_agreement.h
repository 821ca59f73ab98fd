// SPDX-License-Identifier: Apache-2.0
// Protocol by which the ranks pause after the same micro-step. A rank inside a collective waits for its peers, so ranks
// that stopped at arbitrary places would wait for each other forever. Instead each reports its micro-step; the latest
// is agreed on, and all continue to it. A value without a clock: the session sends its commands to the ranks and passes
// the answers back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "accrue/run/events/rank_command.h"
#include "accrue/run/events/run_event.h"

namespace accrue {

class HoldAgreement {
 public:
  enum class Stage { open, asking, settling, held };
  enum class Goal { hold, stop };
  /// Commands to send to every rank, in this order, and whether all ranks are now paused.
  struct Move {
    std::vector<RankCommand> broadcast;
    bool reached = false;
    bool unprompted = false;  ///< they paused on their own
  };

  /// `stop_at`: the first micro-step, from the given one, after which ranks can pause.
  explicit HoldAgreement(std::size_t ranks, std::function<std::int64_t(std::int64_t)> stop_at = std::identity())
      : stop_at_(std::move(stop_at)), in_flight_(ranks), held_at_(ranks) {}

  Move begin(Goal goal);
  Move answer(std::size_t rank, const Holding& holding);
  Move release();
  /// Continues from a pause to the end of micro_step, and pauses there.
  Move advance_to(std::int64_t micro_step);
  /// Continues from a pause to the end of micro_step's backward, before its gradients are reduced.
  Move advance_in(std::int64_t micro_step);
  /// Continues from a pause to the end of the next phase.
  Move advance_phase();

  Stage stage() const { return stage_; }
  /// The agreed micro-step; valid while settling and held.
  std::int64_t micro_step() const { return target_; }
  /// While held: the phase after which the ranks wait in that micro-step; none: between micro-steps.
  StepPhase phase() const { return stage_ == Stage::held ? phase_ : StepPhase::none; }

 private:
  void settle(Move& move);
  void leave(std::int64_t micro_step);
  void check_held(Move& move);

  std::function<std::int64_t(std::int64_t)> stop_at_;
  Stage stage_ = Stage::open;
  Goal goal_ = Goal::hold;
  std::int64_t target_ = 0;
  StepPhase phase_ = StepPhase::none;  ///< of the last answer
  std::int64_t released_ = -1;         ///< answers up to here belong to an earlier hold
  bool to_phase_ = false;              ///< the target is the end of a phase
  bool by_phase_ = false;  ///< the target is the end of the next phase, which may be in the micro-step after target_
  bool stops_when_reached_ = false;
  std::vector<std::optional<std::int64_t>> in_flight_;
  std::vector<std::optional<std::int64_t>> held_at_;
};

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Stages by which the ranks of an attempt end, and their deadlines: ranks are asked first and killed later. A value
// that receives the time; the session sends the commands and signals. Thread: engine.
#pragma once

#include <chrono>

namespace accrue {

class StopLadder {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Ending {
    none,
    stop,          ///< by the user, after the micro-step
    save,          ///< by the user, with a checkpoint at the next boundary
    failure,       ///< the run may start again
    last_failure,  ///< the same, but the user wants no restart
    disk,          ///< the record cannot be kept: with a checkpoint at the next boundary
    kill,          ///< by the user, at once
  };
  enum class Rung { none, asked, killed };

  /// `grace`: time that ranks have to answer a stop, and to die.
  explicit StopLadder(Clock::duration grace) : grace_(grace) {}

  /// Begins an attempt without an ending. A host that is closing stays so.
  void begin_attempt();
  /// If not all ranks have joined, the deadline is now: a rank that waits for its peers hears no command.
  void stop(Clock::time_point now, bool all_joined);
  /// `ending`: save or disk. A window and a disk may take long, so there is no deadline; progress is watched instead.
  void save(Ending ending, Clock::time_point now);
  /// Ends the attempt for a failure, unless another reason has already ended it.
  void fail();
  /// Returns false if no failure is being handled.
  bool refuse_restart();
  void kill();
  /// The host is closing: a long micro-step gets no more time, and no attempt follows.
  void close(Clock::time_point now);
  /// Limits the time to the grace from now on, because a rank is silent.
  void hurry(Clock::time_point now);
  /// The ranks were told to end at once; those that remain after the grace are told again.
  void killed(Clock::time_point now);
  /// Ignores an interval in which this process was suspended.
  void leave_out(Clock::duration gap);

  Ending ending() const { return ending_; }
  Rung rung() const { return rung_; }
  Clock::duration grace() const { return grace_; }
  bool failed() const { return ending_ == Ending::failure || ending_ == Ending::last_failure; }
  /// Whether another attempt may follow a failure.
  bool restart_allowed() const { return ending_ == Ending::failure && !closing_; }
  bool asked_by_user() const { return ending_ == Ending::stop || ending_ == Ending::save; }
  /// Whether a checkpoint is being taken because of a disk failure, without a user's request.
  bool saves_for_disk() const { return ending_ == Ending::disk && rung_ == Rung::asked; }
  Clock::time_point asked_at() const { return asked_at_; }
  /// Whether the ranks' time is up. `busy`: all have answered and none is stuck, which gives them more time.
  bool kill_is_due(Clock::time_point now, bool busy) const;
  /// Returns true every two graces while ranks that were asked to end remain.
  bool word_is_due(Clock::time_point now);

 private:
  void ask(Ending ending, Clock::time_point now, Clock::time_point until);

  Clock::duration grace_;
  Ending ending_ = Ending::none;
  Rung rung_ = Rung::none;
  bool closing_ = false;
  Clock::time_point deadline_{};  ///< of the current stage
  Clock::time_point asked_at_{};
  Clock::time_point next_word_{};
};

}  // namespace accrue

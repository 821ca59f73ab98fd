// SPDX-License-Identifier: Apache-2.0
// Why the ranks of an attempt end, and when their time is up: they are asked first and killed later. A value that is
// told the time; the session sends the commands and the signals. Thread: engine.
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
    last_failure,  ///< likewise, but the user wants no restart
    disk,          ///< the record cannot be kept: with a checkpoint at the next boundary
    kill,          ///< by the user, at once
  };
  enum class Rung { none, asked, killed };

  /// `grace`: how long ranks may take to answer a stop, and to die.
  explicit StopLadder(Clock::duration grace) : grace_(grace) {}

  /// A new attempt: nobody ends it yet. A host that closes goes on closing.
  void begin_attempt();
  /// Where not all ranks have joined, their time is up at once: a rank that waits for its peers hears no command.
  void stop(Clock::time_point now, bool all_joined);
  /// `ending`: save or disk. A window and a disk may take long, so this has no deadline; progress is watched instead.
  void save(Ending ending, Clock::time_point now);
  /// An attempt that ends for another reason keeps it.
  void fail();
  /// False where no failure is being handled.
  bool refuse_restart();
  void kill();
  /// The host goes away: a long micro-step gets no more time, and no attempt follows.
  void close(Clock::time_point now);
  /// At most the grace from now on: a rank is silent.
  void hurry(Clock::time_point now);
  /// The ranks were told to end at once; those that are still there after the grace are told again.
  void killed(Clock::time_point now);
  /// Leaves a while out in which this process stood still.
  void leave_out(Clock::duration gap);

  Ending ending() const { return ending_; }
  Rung rung() const { return rung_; }
  Clock::duration grace() const { return grace_; }
  bool failed() const { return ending_ == Ending::failure || ending_ == Ending::last_failure; }
  /// Another attempt may follow a failure.
  bool restart_allowed() const { return ending_ == Ending::failure && !closing_; }
  bool asked_by_user() const { return ending_ == Ending::stop || ending_ == Ending::save; }
  /// A checkpoint is taken that nobody waits for.
  bool saves_for_disk() const { return ending_ == Ending::disk && rung_ == Rung::asked; }
  Clock::time_point asked_at() const { return asked_at_; }
  /// The ranks' time is up. `busy`: all have answered, and none is stuck; these get more of it.
  bool kill_is_due(Clock::time_point now, bool busy) const;
  /// Ranks that were asked to end are still there: true every two graces.
  bool word_is_due(Clock::time_point now);

 private:
  void ask(Ending ending, Clock::time_point now, Clock::time_point until);

  Clock::duration grace_;
  Ending ending_ = Ending::none;
  Rung rung_ = Rung::none;
  bool closing_ = false;
  Clock::time_point deadline_{};  ///< of the rung
  Clock::time_point asked_at_{};
  Clock::time_point next_word_{};
};

}  // namespace accrue

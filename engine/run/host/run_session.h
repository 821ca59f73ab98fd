// SPDX-License-Identifier: Apache-2.0
// One supervised run, from the first spawn to the last byte in its folder: the state machine behind EngineHost. Thread:
// engine.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accrue/run/events/host_command.h"
#include "accrue/run/events/run_state.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/record/run_tally.h"
#include "control_channel.h"
#include "failure_book.h"
#include "folder_watch.h"
#include "hold_agreement.h"
#include "progress_watch.h"
#include "rank_slot.h"
#include "run_end.h"
#include "stop_ladder.h"

namespace accrue {

/// Duration of a spec key in seconds.
inline std::chrono::steady_clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

struct SessionRequest {
  RunOrder order;
  RunWriter writer;
  std::string spec_sha256;
  bool resumed = false;
  std::string started_at;             ///< of a resumed run
  std::optional<Update> last_update;  ///< likewise
  RunTally tally;                     ///< likewise
  std::vector<OwnedFd> channels;      ///< of ranks that another launcher started; empty: the session starts the ranks
  std::optional<std::int64_t> own_loop;  ///< for a program without a plan: updates done before it
};

/// Time of run_started: now, in the record's format.
std::string utc_now();
std::string versions_json();

/// Makes a session that begins a record.
SessionRequest new_session(RunOrder order, RunWriter writer, std::string spec_sha256);
/// Makes a session that continues the folder's record.
SessionRequest continued_session(RunOrder order, RunWriter writer, std::string spec_sha256);

struct SessionSettings {
  std::string rank_program;
  std::chrono::milliseconds stop_grace{5000};
};

class RunSession {
 public:
  using Clock = std::chrono::steady_clock;
  /// Moves events to the queue, all at once.
  using Publish = std::function<void(std::span<RunEvent>)>;
  using SetState = std::function<void(RunState)>;

  RunSession(SessionRequest request, SessionSettings settings, Publish publish, SetState set_state);
  ~RunSession();
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  void begin();
  /// Adds the descriptors that wake the loop.
  void add_poll(std::vector<pollfd>& fds) const;
  /// Runs one turn of the loop: read, answer, check the clocks.
  void turn();
  /// Executes a command. A refusal says why.
  Result<void> command(const HostCommand& command);
  bool over() const { return end_.has_value(); }
  /// End of a session that is over.
  const RunFinished& end() const { return *end_; }
  /// Whether the ranks were told to end at once.
  bool killed() const { return ladder_.rung() == StopLadder::Rung::killed && !lets_ranks_go(); }

 private:
  using Ending = StopLadder::Ending;

  // run_session.cpp: life of an attempt
  void start_attempt();
  Result<void> spawn_all();
  void adopt_all();
  void announce_start(bool resumed);
  Result<void> leave_later_branch();
  void finish_attempt();
  void restart();
  void finish_run(const RunOutcome& outcome);
  void end_rank(RankSlot& slot);
  void kill_ranks();
  bool launches_ranks() const { return channels_.empty(); }
  bool lets_ranks_go() const { return own_loop_ && ladder_.ending() != Ending::kill; }
  bool all_gone() const;
  std::size_t ready_count() const;
  bool all_joined() const { return updates_came_ || ready_count() == ranks_.size(); }
  ControlAnswer answer_control(const HostCommand& command);

  // session_clocks.cpp: what is due
  void check_clocks(Clock::time_point now);
  void forgive_gap(Clock::duration gap);
  void check_join(Clock::time_point now);
  void check_progress(Clock::time_point now);
  void check_writing(Clock::time_point now);
  void check_waiting(Clock::time_point now);
  void check_last_save(Clock::time_point now);
  void check_ladder(Clock::time_point now);
  std::string stall_text(const std::vector<std::size_t>& blamed, Clock::time_point now) const;

  // session_commands.cpp: pause, step, stop, checkpoint, kill
  Result<void> pause();
  Result<void> proceed();
  Result<void> step(StepUnit unit);
  Result<void> stop();
  Result<void> checkpoint();
  Result<void> checkpoint_and_stop();
  Result<void> set_steps(std::int64_t steps);
  Result<void> check_steps(std::int64_t steps) const;
  void kill_all();
  void apply(const HoldAgreement::Move& move);
  void broadcast(const RankCommand& command);
  std::string place_text() const;
  std::int64_t stop_after(std::int64_t micro_step) const;

  // session_intake.cpp: what arrives from the ranks
  bool read_rank(std::size_t rank);  ///< false if nothing was waiting
  void take_event(std::size_t rank, RunEvent event, std::string_view line);
  void take_failure_report(std::size_t rank, RunEvent event);
  void note_ready(std::size_t rank);
  void note_joining();
  void note_steps(const RunEvent& event);
  void check_updates(const Update& next);
  void check_numbering(std::size_t rank, const RunEvent& event);
  void check_readability(std::size_t rank);

  // session_failures.cpp: ends of ranks
  void note_exit(std::size_t rank, ExitReport exit);
  void fail_run(ErrorCode code, std::string message, std::string what_to_do);
  RunEvent failure_event(std::size_t rank, ExitReport exit);
  void settle_failures();
  void fail_motionless(std::size_t rank, const std::string& why);
  std::string log_advice(std::size_t rank) const;
  std::string advice_for(std::size_t rank, const ExitReport& exit) const;
  bool may_restart() const;

  // session_records.cpp: what is written and shown
  void emit(std::int64_t rank, EventBody body);
  /// `line`: the event as received, which is stored unchanged; empty: it is encoded.
  void store_and_publish(RunEvent event, std::string_view line = {});
  void set_state(RunState state, std::string detail);
  void warn(std::string class_name, std::string message, std::string what_to_do);
  void disk_trouble(const Error& error);
  void folder_trouble(const FolderWatch::Loss& loss);
  void save_and_end(std::string why);
  std::int64_t now_ns() const;
  RunSummary summary(const std::string& outcome, const std::string& reason) const;

  RunOrder order_;
  std::optional<RunWriter> writer_;
  std::string spec_sha256_;
  bool resumed_ = false;
  SessionSettings settings_;
  Publish publish_;
  SetState publish_state_;
  std::vector<OwnedFd> channels_;  ///< empty unless another launcher started the ranks
  std::optional<std::int64_t> own_loop_;

  std::optional<ControlServer> control_;
  StopLadder ladder_;
  FailureBook failures_;
  FolderWatch folder_;

  RunState state_ = RunState::idle;
  std::string detail_;

  // State of the current attempt.
  std::vector<RankSlot> ranks_;
  HoldAgreement agreement_{0};
  ProgressWatch progress_{0, Clock::time_point{}};
  Clock::time_point join_ends_{};
  Clock::time_point last_turn_{};
  std::vector<std::size_t> blamed_;  ///< ranks named in the last stall warning
  bool slow_write_told_ = false;
  bool updates_came_ =
      false;  ///< an update proves that all ranks joined, even if some ranks' ready events have not arrived
  std::optional<RunFinished> reported_end_;

  // The run so far.
  std::optional<Update> last_update_;
  RunTally tally_;
  std::map<std::int64_t, Measured> measured_;  ///< the last of each rank
  std::string last_numerics_;
  std::string started_at_;
  std::int64_t requested_steps_ = 0;  ///< requested N that has not taken effect yet; 0: none
  std::optional<RunFinished> end_;    ///< once it is over
};

}  // namespace accrue

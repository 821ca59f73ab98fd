// SPDX-License-Identifier: Apache-2.0
// State that EngineHost's owner thread and engine thread share: the mailbox of commands, the state, the queue.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "accrue/run/host/engine_host.h"
#include "rank_process.h"
#include "run_session.h"

namespace accrue {

/// A run folder to continue.
struct ResumeRequest {
  std::filesystem::path dir;
  RunOrder order;
  std::string spec_sha256;
  std::optional<RunWriter> writer;  ///< empty while others hold the folder; the engine thread waits for it
  std::uintmax_t record_bytes = 0;  ///< size of events.jsonl as read; orphans do not append to it, a supervisor does
};

/// Returns why a run without a training process takes no commands. Removes the sockets of killed supervisors.
Error not_trained(const RunSummary& run);

struct EngineHost::Impl {
  Impl(EngineHostOptions options_in, EventQueue& queue_in);
  ~Impl();

  // Owner thread.
  /// Ends the previous engine thread. Errors: a run is live.
  Result<void> make_ready();
  void launch(RunState first_state, std::filesystem::path dir, std::function<void()> work);
  void post(HostCommand command);
  void post(HostVerb verb) { post(HostCommand{verb}); }

  /// `from`: the checkpoint from which the run continues; null: it starts from the beginning.
  Result<std::filesystem::path> start(RunRequest request, const BranchPoint* from);

  // Engine thread.
  void supervise(SessionRequest request);
  void resume(ResumeRequest request);
  Result<RunWriter> wait_for_folder(const ResumeRequest& request);
  void follow(const std::filesystem::path& dir, const std::string& run_id, std::optional<ControlClient> control);
  void replay(const std::filesystem::path& dir);
  void publish(RunEvent event) { publish(std::span(&event, 1)); }
  void publish(std::span<RunEvent> together);
  /// Publishes a command that the run refused. It is not stored, as it changes nothing.
  void publish_refusal(const std::string& why);
  void publish_state(RunState state, std::string detail);
  /// Publishes that the run could not be taken over or followed.
  void publish_failure(Error error);
  /// Forwards an event of a run that another process trains, and follows its state.
  void mirror(RunEvent event);
  /// Publishes the end of a mirrored run. The end is held back until the folder is free, because its viewer may resume
  /// at once.
  void release_end();
  /// Waits until the consumer has taken something; false once the host shuts down.
  bool wait_for_room();
  /// Waits for a command or for one of fds, at most timeout_ms; false once the host shuts down.
  bool wait(std::vector<pollfd>& fds, int timeout_ms);
  std::vector<HostCommand> take_commands();

  EngineHostOptions options;
  EventQueue& queue;
  OwnedFd wake;
  std::atomic<RunState> state{RunState::idle};
  std::atomic<bool> attached{false};
  std::atomic<bool> watches_only{false};  ///< attached without a way to send commands
  std::atomic<bool> shutting_down{false};

  mutable std::mutex mutex;  ///< guards the following members
  std::deque<HostCommand> commands;
  std::filesystem::path run_dir;
  std::function<void()> wakeup;
  std::optional<Error> failure;

  // State of a mirrored run; engine thread only.
  bool saw_end = false;
  std::optional<RunEvent> held_end;
  std::optional<Update> mirrored_update;

  std::jthread thread;  ///< last: joined before the other members are destroyed
};

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Following a run of another process, and replaying one that is over. Events come from the run folder, commands go
// through the control socket, and nothing is written.
#include <fmt/format.h>

#include <deque>
#include <utility>

#include "accrue/run/base/counted.h"
#include "accrue/run/events/event_reader.h"
#include "accrue/run/events/host_command.h"
#include "accrue/run/record/run_store.h"
#include "engine_host_impl.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

RunEvent note(std::string class_name, std::string message, std::string what_to_do) {
  return {supervisor_rank, -1, 0, Warning{std::move(class_name), std::move(message), std::move(what_to_do), 0}};
}

RunEvent unreachable() {
  return note("protocol", "The process that trains this run cannot be reached: it can be watched, not commanded",
              "Attach from the account and the session that started it");
}

/// Connection to a run's supervisor. A supervisor with many clients drops the one that was idle longest; the connection
/// is then made again, and unanswered commands are sent again.
class ControlLine {
 public:
  ControlLine(std::string run_id, std::optional<ControlClient> client)
      : run_id_(std::move(run_id)), client_(std::move(client)), given_up_(!client_.has_value()) {}

  /// Takes answers and reconnects if necessary. Returns the refusals among the answers.
  std::vector<std::string> turn() {
    std::vector<std::string> refusals;
    bool open = true;
    for (const auto& answer : client_ ? client_->take_answers(open) : std::vector<ControlAnswer>{}) {
      tries_ = 0;
      if (!unanswered_.empty()) unanswered_.pop_front();
      if (!answer.ok) refusals.push_back(answer.error);
    }
    if (!open) client_.reset();
    if (!client_ && !given_up_ && !gone_ && Clock::now() >= next_try_) reconnect();
    return refusals;
  }
  void send(const HostCommand& command) {
    unanswered_.push_back(command);
    if (client_) static_cast<void>(client_->send(command));  // the next turn notices a broken line
  }
  bool supervisor_gone() const { return gone_; }
  /// Whether commands cannot reach the run.
  bool given_up() const { return given_up_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int max_tries = 10;
  static constexpr std::chrono::milliseconds between_tries{200};

  void reconnect() {
    next_try_ = Clock::now() + between_tries;
    auto again = ControlClient::connect(run_id_);
    gone_ = !again.has_value();
    given_up_ = !gone_ && !unanswered_.empty() && ++tries_ > max_tries;
    if (gone_ || given_up_) return;
    client_ = std::move(*again);
    for (const auto& command : unanswered_) static_cast<void>(client_->send(command));
  }

  std::string run_id_;
  std::optional<ControlClient> client_;
  std::deque<HostCommand> unanswered_;
  int tries_ = 0;  ///< since the last answer
  Clock::time_point next_try_{};
  bool given_up_ = false;
  bool gone_ = false;
};

RunState state_of_outcome(const std::string& outcome) {
  return outcome == "failed" ? RunState::failed : RunState::finished;
}

}  // namespace

Error not_trained(const RunSummary& run) {
  clear_dead_sockets(run.run_id);
  return {
      ErrorCode::config, "no process trains this run: it is " + run.state, run.dir.string(),
      run.state == "finished" ? "Open its record (accrue-run show DIR)" : "Resume it to go on (accrue-run resume DIR)"};
}

Result<std::string> ask_run(const fs::path& folder, const HostCommand& command) {
  constexpr auto patience = std::chrono::seconds(5);
  const auto run = read_run(folder);
  if (!run) return tl::unexpected(run.error());
  const fs::path& dir = run->dir;
  if (run->state != "running") return tl::unexpected(not_trained(*run));
  auto client = ControlClient::connect(run->run_id);
  if (!client) return tl::unexpected(client.error());
  if (const auto sent = client->send(command); !sent) return tl::unexpected(sent.error());
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (bool open = true; open && std::chrono::steady_clock::now() < deadline;) {
    pollfd waits{client->fd(), POLLIN, 0};
    ::poll(&waits, 1, 100);
    const auto answers = client->take_answers(open);
    if (answers.empty()) continue;
    if (answers.front().ok) return answers.front().state;
    return fail(ErrorCode::config, "the run refused: " + answers.front().error, dir.string());
  }
  return fail(ErrorCode::peer_lost, "the process that trains this run does not answer", dir.string());
}

void EngineHost::Impl::mirror(RunEvent event) {
  if (held_end) publish(std::move(*std::exchange(held_end, std::nullopt)));  // it was not the end: the run was resumed
  if (const auto* changed = std::get_if<StateChanged>(&event.body)) {
    const auto new_state = run_state_from(changed->state);
    if (new_state && !is_over(*new_state)) saw_end = false;  // resumed after an end
    if (new_state && attached && !is_over(*new_state)) state = *new_state;
  } else if (std::holds_alternative<RunFinished>(event.body)) {
    saw_end = true;
    held_end = std::move(event);
    return;
  } else if (const auto* update = std::get_if<Update>(&event.body); update != nullptr && event.rank <= 0) {
    mirrored_update = *update;
    mirrored_update->weights.clear();
  }
  publish(std::move(event));
}

void EngineHost::Impl::release_end() {
  if (!held_end) return;
  state = state_of_outcome(std::get<RunFinished>(held_end->body).outcome);
  publish(std::move(*held_end));
  held_end.reset();
}

bool EngineHost::Impl::wait_for_room() {
  while (queue.size() > options.queue_capacity / 2) {
    std::vector<pollfd> fds;
    if (!wait(fds, 5)) return false;
  }
  return !shutting_down;
}

void EngineHost::Impl::follow(const fs::path& dir, const std::string& run_id, std::optional<ControlClient> control) {
  constexpr int look_every_ms = 33;
  constexpr std::size_t slice_bytes = 1 << 20;
  auto file = EventFile::open(dir / "events.jsonl");
  if (!file) return publish_failure(file.error());
  if (!control) publish(unreachable());
  ControlLine line(run_id, std::move(control));
  for (;;) {
    // Before reading: if the supervisor is gone now, the following read gets everything.
    for (const auto& refusal : line.turn()) publish_refusal(refusal);
    if (line.given_up() && !watches_only.exchange(true)) publish(unreachable());
    const bool alive = line.given_up() ? is_locked(dir) : !line.supervisor_gone();
    do {
      for (auto& event : file->poll(slice_bytes)) mirror(std::move(event));
      if (!wait_for_room()) return;
    } while (!file->at_end());
    if (saw_end && !is_locked(dir)) break;
    if (!alive) break;
    std::vector<pollfd> fds;
    if (!wait(fds, look_every_ms)) return;
    for (const auto& command : take_commands()) {
      if (command.verb != HostVerb::shut_down) line.send(command);  // closing this host does not end the run
    }
  }
  file->finish();
  if (const auto text = to_text(file->problems()); !text.empty()) publish(note("events", text, {}));
  if (saw_end) return release_end();
  const auto saving = ranks_of_run(dir).size();
  std::string detail = fmt::format("The process that recorded this run is gone; complete up to update {}",
                                   mirrored_update ? mirrored_update->update : 0);
  if (saving > 0)
    detail += fmt::format("; {} {} still saving", counted(static_cast<std::int64_t>(saving), "rank"),
                          saving == 1 ? "is" : "are");
  publish_state(RunState::failed, std::move(detail));
}

void EngineHost::Impl::replay(const fs::path& dir) {
  constexpr std::size_t slice_bytes = 1 << 20;
  auto file = EventFile::open(dir / "events.jsonl");
  if (!file) return publish_failure(file.error());
  do {
    for (auto& event : file->poll(slice_bytes)) mirror(std::move(event));
    if (!wait_for_room()) return;
  } while (!file->at_end());
  file->finish();
  if (const auto text = to_text(file->problems()); !text.empty())
    publish(note("events", text, "The curves have gaps there"));
  if (saw_end)
    release_end();
  else
    publish_state(RunState::failed,
                  fmt::format("Interrupted: complete up to update {}", mirrored_update ? mirrored_update->update : 0));
}

}  // namespace accrue

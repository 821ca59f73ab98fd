// SPDX-License-Identifier: Apache-2.0
// Following what another process trains, and replaying what is over: events come from the run folder through the one
// reader, commands go out through the control socket. Nothing is written.
#include <fmt/format.h>

#include "accrue/run/event_reader.h"
#include "accrue/run/host_command.h"
#include "accrue/run/run_store.h"
#include "engine_host_impl.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

RunEvent note(std::string class_name, std::string message, std::string what_to_do) {
  return {supervisor_rank, -1, 0, Warning{std::move(class_name), std::move(message), std::move(what_to_do), 0}};
}

RunState state_of_outcome(const std::string& outcome) {
  return outcome == "failed" ? RunState::failed : RunState::finished;
}

}  // namespace

Result<std::string> ask_run(const fs::path& folder, const HostCommand& command) {
  constexpr auto patience = std::chrono::seconds(5);
  const auto run = read_run(folder);
  if (!run) return tl::unexpected(run.error());
  const fs::path& dir = run->dir;
  if (run->state != "running")
    return fail(ErrorCode::config, "nobody trains this run now: it is " + run->state, dir.string());
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
  if (held_end) publish(std::move(*std::exchange(held_end, std::nullopt)));  // it was no end: the run was continued
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

void EngineHost::Impl::follow(const fs::path& dir, std::optional<ControlClient> control) {
  constexpr int look_every_ms = 33;
  constexpr std::size_t slice_bytes = 1 << 20;
  auto file = EventFile::open(dir / "events.jsonl");
  if (!file) return publish_state(RunState::failed, file.error().text());
  if (!control)
    publish(note("protocol", "The process that trains this run cannot be reached: it can be watched, not commanded",
                 "Attach from the account and the session that started it"));
  bool alive = true;
  for (;;) {
    // Liveness first: what is read after it was seen to be gone is all there will be.
    if (control) {
      bool open = true;
      for (const auto& answer : control->take_answers(open))
        if (!answer.ok) publish_refusal(answer.error);
      alive = open;
    } else {
      alive = is_locked(dir);
    }
    do {
      for (auto& event : file->poll(slice_bytes)) mirror(std::move(event));
      if (!wait_for_room()) return;
    } while (!file->at_end());
    if (saw_end && !is_locked(dir)) break;
    if (!alive) break;
    std::vector<pollfd> fds;
    if (!wait(fds, look_every_ms)) return;
    for (const auto& command : take_commands()) {
      if (!control || command.verb == HostVerb::shut_down) continue;  // the run goes on without us
      if (const auto sent = control->send(command); !sent) publish(note("protocol", sent.error().text(), {}));
    }
  }
  file->finish();
  if (const auto text = to_text(file->problems()); !text.empty()) publish(note("events", text, {}));
  if (saw_end) return release_end();
  const auto saving = ranks_of_run(dir).size();
  std::string detail = fmt::format("The process that supervised this run is gone; complete up to update {}",
                                   mirrored_update ? mirrored_update->update : 0);
  if (saving > 0) detail += fmt::format("; {} rank{} still saving", saving, saving == 1 ? " is" : "s are");
  publish_state(RunState::failed, std::move(detail));
}

void EngineHost::Impl::replay(const fs::path& dir) {
  constexpr std::size_t slice_bytes = 1 << 20;
  auto file = EventFile::open(dir / "events.jsonl");
  if (!file) return publish_state(RunState::failed, file.error().text());
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

// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/host/run_keeper.h"

#include <thread>
#include <utility>

#include "accrue/run/base/sha256.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/fields/spec_io.h"
#include "run_folder.h"
#include "run_session.h"

namespace accrue {

struct RunKeeper::Impl {
  RunSession session;
  std::function<void(const RunFinished&)> on_killed;
  std::jthread thread;

  Impl(SessionRequest request, std::function<void(const RunFinished&)> on_killed_in)
      : session(
            std::move(request), {}, [](std::span<RunEvent>) {}, [](RunState) {}),
        on_killed(std::move(on_killed_in)),
        thread([this] { keep(); }) {}

  void keep() {
    constexpr int longest_sleep_ms = 100;
    for (session.begin(); !session.over(); session.turn()) {
      std::vector<pollfd> fds;
      session.add_poll(fds);
      ::poll(fds.data(), fds.size(), longest_sleep_ms);
    }
    if (session.killed() && on_killed) on_killed(session.end());
  }
};

RunKeeper::RunKeeper(RunOrder order, RunWriter writer, bool continues, std::vector<OwnedFd> channels,
                     std::function<void(const RunFinished&)> on_killed, std::optional<std::int64_t> own_loop) {
  const auto session = continues ? continued_session : new_session;
  std::string spec_sha256 = sha256_hex(spec_as_run(order.plan));
  SessionRequest request = session(std::move(order), std::move(writer), std::move(spec_sha256));
  request.own_loop = own_loop;
  request.channels = std::move(channels);
  impl_ = std::make_unique<Impl>(std::move(request), std::move(on_killed));
}

RunKeeper::~RunKeeper() = default;

Result<void> end_loop_record(const std::filesystem::path& dir, const RunFinished& end,
                             const std::map<std::int64_t, RankFailed>& failed) {
  const auto before = read_run(dir);
  if (!before || before->state != "interrupted") return {};
  auto opened = RunWriter::reopen(dir);
  if (!opened) return tl::unexpected(opened.error());
  std::optional<RunWriter> writer(std::move(*opened));
  const auto time_ns = writer->last_time_ns();
  const auto add = [&](std::int64_t rank, EventBody body) -> Result<void> {
    const auto next = writer->next_seq().find(rank);
    return writer->append({rank, next == writer->next_seq().end() ? 0 : next->second, time_ns, std::move(body)});
  };
  Result<void> added;
  if (writer->next_seq().empty())
    added = add(supervisor_rank, RunStarted{.run = new_run_id(),
                                            .spec_sha256 = sha256_hex(write_spec(before->spec)),
                                            .plan_json = "{}",
                                            .versions_json = versions_json(),
                                            .host_json = to_json(local_facts()),
                                            .started_at = utc_now()});
  for (const auto& [rank, how] : failed)
    if (added) added = add(rank, how);
  RunFinished last = end;
  last.updates = before->updates;
  last.loss = before->loss;
  last.seconds = before->seconds;
  const RunState state = end.outcome == "failed" ? RunState::failed : RunState::finished;
  if (added) added = add(supervisor_rank, StateChanged{.state = std::string(to_string(state)), .detail = end.reason});
  if (added) added = add(supervisor_rank, std::move(last));
  if (added) added = writer->sync();
  if (!added) return added;
  writer.reset();
  const auto after = read_run(dir);
  return after ? complete_record(*after) : tl::unexpected(after.error());
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/run_keeper.h"

#include <thread>
#include <utility>

#include "accrue/run/sha256.h"
#include "engine_host_session.h"
#include "run_folder.h"

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

RunKeeper::RunKeeper(RunOrder order, RunWriter writer, bool continues, std::vector<int> channels,
                     std::function<void(const RunFinished&)> on_killed) {
  std::string spec_sha256 = sha256_hex(spec_as_run(order.plan));
  SessionRequest request =
      continues ? continued_session(std::move(order), std::move(writer), std::move(spec_sha256))
                : SessionRequest{std::move(order), std::move(writer), std::move(spec_sha256), false, {}, {}, {}, {}};
  for (const int channel : channels) request.channels.emplace_back(channel);
  impl_ = std::make_unique<Impl>(std::move(request), std::move(on_killed));
}

RunKeeper::~RunKeeper() = default;

}  // namespace accrue

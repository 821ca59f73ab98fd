// SPDX-License-Identifier: Apache-2.0
#include "support/rank_harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QTest>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "support/free_port.h"
#include "support/rank_forker.h"

extern char** environ;

namespace accrue::test {
namespace {

using Clock = std::chrono::steady_clock;

// Descriptors of a rank.
constexpr int kReportFd = 3;
constexpr int kLifelineFd = 4;
constexpr int kStoreFd = 5;
constexpr unsigned kAlarmSeconds = 600;
constexpr std::size_t kErrorTail = 64 * 1024;

[[noreturn]] void refuse(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::pair<int, int> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) refuse("pipe2");
  return {ends[0], ends[1]};
}

std::vector<std::string> rank_environment(int rank, int world, int port, const RankGroupOptions& options) {
  std::vector<std::pair<std::string, std::string>> own = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(world)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(world)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(port)},
      {"OMP_NUM_THREADS", "1"},
      {"OMP_WAIT_POLICY", "passive"},
  };
  for (const auto& [name, value] : options.environment) {
    std::erase_if(own, [&](const auto& pair) { return pair.first == name; });
    own.emplace_back(name, value);
  }
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line = *entry;
    const std::string name = line.substr(0, line.find('='));
    if (std::none_of(own.begin(), own.end(), [&](const auto& pair) { return pair.first == name; })) all.push_back(line);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

bool drain_into(int& fd, std::string& into) {
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got > 0) {
      into.append(buffer, static_cast<std::size_t>(got));
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return true;
    } else {
      ::close(fd);
      fd = -1;
      return false;
    }
  }
}

/// Ends this rank when the test that started it is gone.
void watch_lifeline() {
  std::thread([] {
    pollfd lifeline{kLifelineFd, POLLIN, 0};
    while (::poll(&lifeline, 1, -1) < 0 && errno == EINTR) {
    }
    ::_exit(99);
  }).detach();
  ::alarm(kAlarmSeconds);
}

int run_body(const std::string& name, const std::vector<std::string>& arguments,
             const std::vector<NamedRankBody>& bodies) {
  RankContext rank;
  rank.rank = std::atoi(std::getenv("RANK"));
  rank.world = std::atoi(std::getenv("WORLD_SIZE"));
  rank.store_fd = std::atoi(arguments.at(0).c_str());
  rank.arguments.assign(arguments.begin() + 1, arguments.end());
  watch_lifeline();
  for (const auto& each : bodies) {
    if (name != each.name) continue;
    try {
      return each.body(rank);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank.rank, error.what());
      std::fflush(stderr);
      ::_exit(70);  // another thread may still wait for a lost peer; the report pipe is already flushed
    }
  }
  std::fprintf(stderr, "no rank body is named %s\n", name.c_str());
  return 71;
}

std::unique_ptr<RankForker> forker;

}  // namespace

void RankContext::report(const std::string& line) const {
  const std::string text = line + "\n";
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t put = ::write(kReportFd, text.data() + sent, text.size() - sent);
    if (put < 0 && errno != EINTR) ::_exit(98);
    if (put > 0) sent += static_cast<std::size_t>(put);
  }
}

std::string RankOutcome::text() const {
  std::string result = timed_out     ? "killed at the deadline"
                       : signal != 0 ? "ended by signal " + std::to_string(signal)
                                     : "exit status " + std::to_string(exit_status);
  for (const auto& line : lines) result += "\n  | " + line;
  if (!errors.empty()) result += "\n  stderr: " + errors;
  return result;
}

std::string first_failure(const std::vector<RankOutcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (!outcomes[rank].ok()) return "rank " + std::to_string(rank) + ": " + outcomes[rank].text();
  }
  return {};
}

RankGroup::RankGroup(const std::string& body, int world, RankGroupOptions options)
    : processes_(static_cast<std::size_t>(world)), port_(free_port()), began_(Clock::now()) {
  const int store = options.hand_over_store ? ::memfd_create("store", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
  const auto [lifeline_reader, lifeline_writer] = make_pipe();
  lifeline_ = lifeline_writer;
  // Each rank gets the read end as kLifelineFd; only this process holds the write end.
  for (int rank = 0; rank < world; ++rank) {
    const bool left_out =
        std::find(options.leave_out.begin(), options.leave_out.end(), rank) != options.leave_out.end();
    if (left_out) {
      at(rank).ended = true;
      continue;
    }
    at(rank).errors = lifeline_reader;
    start(rank, body, options, store);
  }
  ::close(lifeline_reader);
  if (store >= 0) ::close(store);
}

void RankGroup::start(int rank, const std::string& body, const RankGroupOptions& options, int store) {
  Process& process = at(rank);
  const int lifeline_reader = process.errors;
  const auto [report_reader, report_writer] = make_pipe();
  const auto [error_reader, error_writer] = make_pipe();
  ::fcntl(report_reader, F_SETFL, O_NONBLOCK);
  ::fcntl(error_reader, F_SETFL, O_NONBLOCK);

  RankStart request{.body = body,
                    .arguments = {std::to_string(store >= 0 ? kStoreFd : -1)},
                    .environment = rank_environment(rank, static_cast<int>(processes_.size()), port_, options),
                    .output = error_writer,
                    .descriptors = {report_writer, lifeline_reader}};
  request.arguments.insert(request.arguments.end(), options.arguments.begin(), options.arguments.end());
  if (store >= 0) request.descriptors.push_back(store);
  process.pid = forker->start(request);
  ::close(report_writer);
  ::close(error_writer);
  process.reports = report_reader;
  process.errors = error_reader;
}

RankGroup::~RankGroup() {
  for (auto& process : processes_) {
    if (!process.ended && process.pid > 0) {
      ::kill(process.pid, SIGKILL);
      reap(process, 0);
    }
    if (process.reports >= 0) ::close(process.reports);
    if (process.errors >= 0) ::close(process.errors);
  }
  ::close(lifeline_);
}

RankGroup::Process& RankGroup::at(int rank) {
  return processes_.at(static_cast<std::size_t>(rank));
}

pid_t RankGroup::pid(int rank) const {
  return processes_.at(static_cast<std::size_t>(rank)).pid;
}

void RankGroup::send_signal(int rank, int signal) {
  if (!at(rank).ended && at(rank).pid > 0) ::kill(at(rank).pid, signal);
}

void RankGroup::drain(Process& process) {
  if (process.errors >= 0) drain_into(process.errors, process.outcome.errors);
  auto& errors = process.outcome.errors;
  if (errors.size() > kErrorTail) errors.erase(0, errors.size() - kErrorTail);
  if (process.reports >= 0) drain_into(process.reports, process.partial);
  for (auto end = process.partial.find('\n'); end != std::string::npos; end = process.partial.find('\n')) {
    process.outcome.lines.push_back(process.partial.substr(0, end));
    process.partial.erase(0, end + 1);
  }
}

void RankGroup::reap(Process& process, int wait_flags) {
  int status = 0;
  if (process.ended || ::waitpid(process.pid, &status, wait_flags) != process.pid) return;
  process.ended = true;
  process.outcome.lived = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_);
  if (WIFEXITED(status)) process.outcome.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) process.outcome.signal = WTERMSIG(status);
  drain(process);
}

void RankGroup::pump(std::chrono::milliseconds wait) {
  std::vector<pollfd> watched;
  for (auto& process : processes_) {
    if (process.reports >= 0) watched.push_back({process.reports, POLLIN, 0});
    if (process.errors >= 0) watched.push_back({process.errors, POLLIN, 0});
  }
  // Pipes close when a rank ends, so its end wakes this poll as well; the slice covers a rank that closed them early.
  const auto slice = std::clamp(wait, std::chrono::milliseconds(0), std::chrono::milliseconds(20));
  ::poll(watched.data(), watched.size(), static_cast<int>(slice.count()));
  for (auto& process : processes_) {
    drain(process);
    reap(process, WNOHANG);
  }
}

std::string RankGroup::wait_for(int rank, const std::string& prefix, std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  for (;;) {
    for (const auto& line : at(rank).outcome.lines) {
      if (line.starts_with(prefix)) return line;
    }
    if (at(rank).ended || Clock::now() >= end) return {};
    pump(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()));
  }
}

bool RankGroup::wait_for_end(int rank, std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  while (!at(rank).ended && Clock::now() < end) {
    pump(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()));
  }
  return at(rank).ended;
}

std::vector<RankOutcome> RankGroup::finish(std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
    wait_for_end(rank, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()));
  }
  std::vector<RankOutcome> outcomes;
  for (auto& process : processes_) {
    if (!process.ended) {
      process.outcome.timed_out = true;
      ::kill(process.pid, SIGKILL);
      reap(process, 0);
    }
    outcomes.push_back(process.outcome);
  }
  return outcomes;
}

void start_rank_forker(const std::vector<NamedRankBody>& bodies) {
  forker = std::make_unique<RankForker>([bodies](const std::string& body, const std::vector<std::string>& arguments) {
    return run_body(body, arguments, bodies);
  });
}

int rank_test_main(int argc, char** argv, QObject& tests, const std::vector<NamedRankBody>& bodies) {
  start_rank_forker(bodies);
  QCoreApplication application(argc, argv);
  return QTest::qExec(&tests, argc, argv);
}

}  // namespace accrue::test

// SPDX-License-Identifier: Apache-2.0
// What only LibTorch knows is asked of a rank program in a process of its own, so that neither its libraries nor a
// crash in a driver reach the caller. posix_spawn, not fork: the caller may have threads. Both outputs are drained
// until they close, under one deadline; past it the process is killed.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include "accrue/run/host_facts.h"
#include "accrue/run/probe_plugins.h"

extern char** environ;

namespace accrue {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds probe_deadline{10};
constexpr std::size_t max_output = 1 << 20;

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  bool open() { return ::pipe2(ends.data(), O_CLOEXEC) == 0; }
  void close(std::size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  ~Pipe() {
    close(0);
    close(1);
  }
};

struct Outcome {
  std::string output;
  std::string errors;
  bool in_time = true;
  int status = 0;
};

int spawn(const std::string& program, const std::vector<std::string>& words, const Pipe& output, const Pipe& errors,
          pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads what is there; false once the other side has closed.
bool drain(int fd, std::string& text) {
  char buffer[4096];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (text.size() < max_output) text.append(buffer, static_cast<std::size_t>(got));
  return got > 0;
}

int milliseconds_left(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

Outcome collect(pid_t pid, Pipe& output, Pipe& errors) {
  const auto deadline = Clock::now() + probe_deadline;
  Outcome outcome;
  std::array<pollfd, 2> fds = {{{output.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const int left = milliseconds_left(deadline);
    if (left == 0) {
      outcome.in_time = false;
      ::kill(pid, SIGKILL);
      break;
    }
    if (::poll(fds.data(), fds.size(), left) <= 0) continue;
    if (fds[0].revents != 0 && !drain(fds[0].fd, outcome.output)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !drain(fds[1].fd, outcome.errors)) fds[1].fd = -1;
  }
  // Its outputs are closed: it has ended, or is killed at the deadline.
  while (outcome.in_time) {
    const pid_t ended = ::waitpid(pid, &outcome.status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return outcome;
    if (milliseconds_left(deadline) == 0) {
      outcome.in_time = false;
      ::kill(pid, SIGKILL);
    } else {
      ::poll(nullptr, 0, 2);
    }
  }
  while (::waitpid(pid, &outcome.status, 0) < 0 && errno == EINTR) {
  }
  return outcome;
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \r\n") + 1);
  const auto before = text.find_last_of('\n');
  return before == std::string::npos ? text : text.substr(before + 1);
}

struct Question {
  std::vector<std::string> words;  ///< of its command line
  const char* when_it_hangs;
  const char* when_it_fails;
};

/// The last line of what the rank program answers.
Result<std::string> ask(const std::string& program, const Question& question) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(program, error))
    return fail(ErrorCode::device, "there is no rank program", program,
                "Build accrue-rank, or install it beside this program.");
  Pipe output;
  Pipe errors;
  if (!output.open() || !errors.open())
    return fail(ErrorCode::device, std::string("no pipe could be made: ") + std::strerror(errno), program);
  pid_t pid = -1;
  if (const int failure = spawn(program, question.words, output, errors, pid); failure != 0)
    return fail(ErrorCode::device, std::string("the rank program cannot be started: ") + std::strerror(failure),
                program, "Check that it is executable and built for this machine.");
  output.close(1);
  errors.close(1);
  const Outcome outcome = collect(pid, output, errors);
  const auto refuse = [&](std::string message, const char* hint) {
    if (const std::string said = last_line(outcome.errors); !said.empty()) message += ": " + said;
    return fail(ErrorCode::device, message, program, hint);
  };
  if (!outcome.in_time)
    return refuse("the rank program did not answer within " + std::to_string(probe_deadline.count()) + " s",
                  question.when_it_hangs);
  if (WIFSIGNALED(outcome.status))
    return refuse("the rank program was ended by signal " + std::to_string(WTERMSIG(outcome.status)) + " (" +
                      ::strsignal(WTERMSIG(outcome.status)) + ")",
                  question.when_it_fails);
  if (WEXITSTATUS(outcome.status) != 0)
    return refuse("the rank program failed with exit status " + std::to_string(WEXITSTATUS(outcome.status)),
                  question.when_it_fails);
  return last_line(outcome.output);
}

}  // namespace

Result<HostFacts> probe_host(const std::string& rank_program) {
  const auto answer = ask(rank_program, {{"--probe"},
                                         "A hanging GPU driver does this; try launch.device = \"cpu\".",
                                         "Run it with --probe by hand to see why."});
  if (!answer) return tl::unexpected(answer.error());
  const auto probed = host_facts_from_json(*answer);
  if (!probed)
    return fail(ErrorCode::device, "the rank program's answer cannot be read", rank_program, probed.error().hint);
  HostFacts facts = local_facts();
  facts.torch_version = probed->torch_version;
  facts.accrue_version = probed->accrue_version;
  facts.backends = probed->backends;
  facts.cuda_devices = probed->cuda_devices;
  facts.cuda_error = probed->cuda_error;
  return facts;
}

Result<std::vector<PluginFacts>> probe_plugins(const std::string& rank_program,
                                               const std::vector<std::filesystem::path>& files) {
  if (files.empty()) return std::vector<PluginFacts>();
  Question question{{"plugins"},
                    "What the plug-in library does when it is loaded takes too long.",
                    "A plug-in library does this when it is loaded; \"accrue-rank plugins FILE\" loads it."};
  for (const std::filesystem::path& file : files) question.words.push_back(file.string());
  const auto answer = ask(rank_program, question);
  if (!answer)
    return tl::unexpected(Error{ErrorCode::config, answer.error().message, answer.error().where, answer.error().hint});
  auto facts = plugin_facts_from_json(*answer);
  if (facts && facts->size() != files.size())
    return fail(ErrorCode::protocol, "the rank program answers for another number of libraries", rank_program);
  return facts;
}

std::vector<PluginFacts> describe_plugins(const std::string& rank_program,
                                          const std::vector<std::filesystem::path>& files) {
  std::vector<std::filesystem::path> each;
  for (const std::filesystem::path& file : files) {
    auto place = std::filesystem::absolute(file).lexically_normal();
    if (std::ranges::find(each, place) == each.end()) each.push_back(std::move(place));
  }
  if (auto found = probe_plugins(rank_program, each)) return std::move(*found);
  // One of them ends the process that loads it; the others can be asked without it.
  std::vector<PluginFacts> facts;
  for (const std::filesystem::path& file : each) {
    auto found = probe_plugins(rank_program, {file});
    facts.push_back(found ? std::move(found->front())
                          : PluginFacts{.file = file.string(), .error = found.error().text()});
  }
  return facts;
}

}  // namespace accrue

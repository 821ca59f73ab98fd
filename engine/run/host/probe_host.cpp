// SPDX-License-Identifier: Apache-2.0
// Facts that only LibTorch has come from a rank program in a separate process. So neither its libraries nor a crash in
// a driver affect the caller. Both outputs are drained until they close, under one deadline; then the process is
// killed.
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>

#include "accrue/run/facts/host_facts.h"
#include "accrue/run/host/probe_plugins.h"
#include "accrue/run/process/child_process.h"

namespace accrue {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds probe_deadline{10};
constexpr std::size_t max_output = 1 << 20;

struct Outcome {
  std::string output;
  std::string errors;
  std::optional<ExitReport> end;  ///< none: killed at the deadline
};

// Reads available bytes; false once the other side has closed.
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

Outcome collect(ChildProcess& process, const OwnedFd& output, const OwnedFd& errors) {
  const auto deadline = Clock::now() + probe_deadline;
  Outcome outcome;
  std::array<pollfd, 2> fds = {{{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const int left = milliseconds_left(deadline);
    if (left == 0) return outcome;
    if (::poll(fds.data(), fds.size(), left) <= 0) continue;
    if (fds[0].revents != 0 && !drain(fds[0].fd, outcome.output)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !drain(fds[1].fd, outcome.errors)) fds[1].fd = -1;
  }
  // It has closed its outputs, so it will end soon.
  while (!(outcome.end = process.reap()) && milliseconds_left(deadline) > 0) ::poll(nullptr, 0, 2);
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

/// Returns the last line of the rank program's answer.
Result<std::string> ask(const std::string& program, const Question& question) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(program, error))
    return fail(ErrorCode::device, "there is no rank program", program,
                "Build accrue-rank, or install it beside this program.");
  auto output = pipe_to_read("no pipe can be made");
  if (!output) return tl::unexpected(output.error());
  auto errors = pipe_to_read("no pipe can be made");
  if (!errors) return tl::unexpected(errors.error());
  ProcessStart how{.what = "the rank program", .command = question.words, .group = ProcessStart::Group::ours};
  how.command.insert(how.command.begin(), program);
  how.mute({0});
  how.give(output->theirs, 1);
  how.give(errors->theirs, 2);
  auto process = start_process(std::move(how));
  if (!process) {
    process.error().hint = "Check that it is executable and built for this machine.";
    return tl::unexpected(process.error());
  }
  output->theirs.reset();
  errors->theirs.reset();
  const Outcome outcome = collect(*process, output->ours, errors->ours);
  const auto refuse = [&](std::string message, const char* hint) {
    if (const std::string said = last_line(outcome.errors); !said.empty()) message += ": " + said;
    return fail(ErrorCode::device, message, program, hint);
  };
  if (!outcome.end)
    return refuse("the rank program did not answer within " + std::to_string(probe_deadline.count()) + " s",
                  question.when_it_hangs);
  if (const int signal = outcome.end->signal; signal != 0)
    return refuse(fmt::format("the rank program was ended by signal {} ({})", signal, ::strsignal(signal)),
                  question.when_it_fails);
  if (outcome.end->status != 0)
    return refuse(fmt::format("the rank program failed with exit status {}", outcome.end->status),
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
  // One of them ends the process that loads it; the others can be probed without it.
  std::vector<PluginFacts> facts;
  for (const std::filesystem::path& file : each) {
    auto found = probe_plugins(rank_program, {file});
    facts.push_back(found ? std::move(found->front())
                          : PluginFacts{.file = file.string(), .error = found.error().text()});
  }
  return facts;
}

}  // namespace accrue

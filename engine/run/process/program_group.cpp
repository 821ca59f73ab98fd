// SPDX-License-Identifier: Apache-2.0
// Ranks of a user's program are started and ended like those of a run, but do not talk to a supervisor. Their
// environment comes from the same allow-list, their output is read from pipes, and signals replace commands. They meet
// at a port of 127.0.0.1, reserved by a socket that is bound but does not listen. The kernel gives the port to no one
// else, yet rank 0, which sets SO_REUSEADDR as stores do, can listen on it. One guard process ends them if this program
// is killed (see program_guard).
#include "accrue/run/process/program_group.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "accrue/run/process/child_process.h"
#include "posix_file.h"
#include "program_guard.h"
#include "rank_environment.h"

namespace accrue {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int poll_ms = 200;
constexpr std::size_t turn_bytes = 1 << 20;                    // per stream and turn, so that no rank starves another
constexpr std::size_t longest_line = std::size_t{256} * 1024;  // longer lines are reported in parts
constexpr std::int64_t most_ranks = 1024;

bool is_program(const std::filesystem::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// Returns the file that a shell would run for `name`.
Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
  } else if (const char* path = std::getenv("PATH"); path != nullptr && !name.empty()) {
    std::string_view folders = path;
    for (;;) {
      const auto end = folders.find(':');
      const auto candidate = std::filesystem::path(folders.substr(0, end)) / name;
      if (is_program(candidate)) return candidate.string();
      if (end == std::string_view::npos) break;
      folders.remove_prefix(end + 1);
    }
  }
  return fail(ErrorCode::config, "there is no such program, or it may not be executed", name,
              "Name it with its folder (./train), or by a name that PATH finds");
}

struct HeldPort {
  OwnedFd fd;
  std::uint16_t port = 0;
};

/// Returns 128 random bits.
Result<std::string> make_secret() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return system_error("no secret for the ranks' store can be drawn", errno);
  std::string secret;
  for (const unsigned char byte : bytes) secret += fmt::format("{:02x}", byte);
  return secret;
}

/// Reserves a port for the lifetime of the socket, on which another socket can still listen.
Result<HeldPort> reserve_port() {
  HeldPort held{OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!held.fd || ::setsockopt(held.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(held.fd.get(), generic, size) != 0 || ::getsockname(held.fd.get(), generic, &size) != 0)
    return system_error("no port of 127.0.0.1 can be reserved for the ranks' store", errno);
  held.port = ntohs(address.sin_port);
  return held;
}

/// Value of the caller's OMP_NUM_THREADS; 0 if it is not a number.
std::int64_t threads_of_the_caller() {
  const char* value = std::getenv("OMP_NUM_THREADS");
  const std::string_view text = value == nullptr ? "" : value;
  std::int64_t threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  return error == std::errc() && threads > 0 ? threads : 0;
}

std::int64_t threads_of_a_rank(const ProgramGroupOptions& options) {
  if (options.threads > 0) return options.threads;
  if (const std::int64_t threads = threads_of_the_caller(); threads > 0) return threads;
  cpu_set_t set;
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max<std::int64_t>(1, cores / options.ranks);
}

Result<Environment> environment_of(const ProgramGroupOptions& options) {
  Environment environment = Environment::allowed();
  for (const char* of_a_run_that_this_is_a_rank_of : {"ACCRUE_RUN_LOCK_FD", "ACCRUE_RUN_DIR"})
    environment.unset(of_a_run_that_this_is_a_rank_of);
  environment.hand_on("ACCELERATE_");   // read by accrue::accelerate, like its original
  environment.hand_on("MEGATRON_LM_");  // read by accrue::megatron
  for (const std::string& entry : options.environment) {
    const auto name = entry.substr(0, entry.find('='));
    if (name.empty()) return fail(ErrorCode::config, fmt::format("\"{}\" names no variable", entry), "environment");
    if (name.size() < entry.size())
      environment.set(name, std::string_view(entry).substr(name.size() + 1));
    else if (const char* value = std::getenv(name.c_str()))
      environment.set(name, value);
    else
      return fail(ErrorCode::config, fmt::format("{} is not set here", name), "environment", "Give it as NAME=VALUE");
  }
  return environment;
}

/// Splitter of one stream's bytes into lines.
struct LineCutter {
  std::string rest;

  template <typename Tell>
  void take(std::string_view bytes, const Tell& tell) {
    rest += bytes;
    std::size_t begin = 0;
    for (auto end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      tell(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    rest.erase(0, begin);
    if (rest.size() > longest_line) finish(tell);
  }
  template <typename Tell>
  void finish(const Tell& tell) {
    if (!rest.empty()) tell(std::string_view(rest));
    rest.clear();
  }
};

struct Stream {
  OwnedFd fd;
  LineCutter lines;
};

struct Program {
  ChildProcess process;
  std::array<Stream, 2> streams;  // by ProgramStream
  OwnedFd log;
  bool told_to_end = false;
};

class LiveGroup final : public ProgramGroup {
 public:
  explicit LiveGroup(ProgramGroupOptions options) : options_(std::move(options)) {}

  Result<void> start_all() {
    if (options_.command.empty()) return fail(ErrorCode::config, "no program is named", "command line");
    if (options_.ranks < 1 || options_.ranks > most_ranks)
      return fail(ErrorCode::config, fmt::format("{} ranks: 1 to {} can be started", options_.ranks, most_ranks));
    auto program = find_program(options_.command.front());
    if (!program) return tl::unexpected(program.error());
    auto environment = environment_of(options_);
    if (!environment) return tl::unexpected(environment.error());
    auto port = reserve_port();
    if (!port) return tl::unexpected(port.error());
    port_ = std::move(*port);
    auto secret = make_secret();
    if (!secret) return tl::unexpected(secret.error());
    secret_ = std::move(*secret);
    if (!options_.guard.empty()) {
      auto guard = ProgramGuard::start(options_.guard);
      if (!guard) return tl::unexpected(guard.error());
      guard_ = std::move(*guard);
    }
    for (std::int64_t rank = 0; rank < options_.ranks; ++rank) {
      if (auto started = start_rank(rank, *program, *environment); !started) return started;
    }
    return {};
  }

  bool turn(int wake_fd) override {
    if (std::ranges::none_of(programs_, [](const Program& each) { return each.process.running(); })) return false;
    wait(wake_fd);
    for (std::int64_t rank = 0; rank < options_.ranks; ++rank) follow(rank);
    climb();
    return true;
  }

  void interrupt() override { begin(SIGINT); }
  void terminate() override { begin(SIGTERM); }
  void kill() override { begin(SIGKILL); }
  const std::optional<ProgramEnd>& first_failure() const override { return first_failure_; }

 private:
  Result<void> start_rank(std::int64_t rank, const std::string& program, Environment environment) {
    auto output = pipe_to_read("no pipe for a rank's output can be made");
    if (!output) return tl::unexpected(output.error());
    auto errors = pipe_to_read("no pipe for a rank's output can be made");
    if (!errors) return tl::unexpected(errors.error());
    for (const OwnedFd* ours : {&output->ours, &errors->ours}) ::fcntl(ours->get(), F_SETFL, O_NONBLOCK);
    Program started;
    if (!options_.log_dir.empty()) {
      const auto path = options_.log_dir / fmt::format("{}.log", rank);
      started.log = OwnedFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
      if (!started.log) return disk_error(path, "cannot be written", errno);
    }
    environment.set_rank(rank, options_.ranks, threads_of_a_rank(options_));
    environment.set("MASTER_ADDR", "127.0.0.1");
    environment.set("MASTER_PORT", std::to_string(port_.port));
    environment.set("ACCRUE_RUN_SECRET", secret_);
    environment.hand_on("OMP_");  // the caller's own settings take precedence
    environment.set("OMP_NUM_THREADS", std::to_string(threads_of_a_rank(options_)));
    environment.set("ACCRUE_RUN_ID", fmt::format("launch-{}-{}", ::getpid(), port_.port));
    ProcessStart how{.what = fmt::format("rank {}", rank), .command = options_.command, .program = program};
    how.variables = std::move(environment).entries();
    how.patience = std::chrono::minutes(1);
    how.mute({0});
    how.give(output->theirs, 1);
    how.give(errors->theirs, 2);
    auto process = start_process(std::move(how));
    if (!process) return tl::unexpected(process.error());
    started.process = std::move(*process);
    guard_.watch(started.process.pid());
    started.streams[0].fd = std::move(output->ours);
    started.streams[1].fd = std::move(errors->ours);
    programs_.push_back(std::move(started));
    return {};
  }

  void wait(int wake_fd) const {
    std::vector<pollfd> waits = {{wake_fd, POLLIN, 0}};
    for (const Program& each : programs_) {
      for (const Stream& stream : each.streams) waits.push_back({stream.fd.get(), POLLIN, 0});
      waits.push_back({each.process.pidfd(), POLLIN, 0});
    }
    ::poll(waits.data(), waits.size(), poll_ms);
  }

  void follow(std::int64_t rank) {
    Program& program = programs_[static_cast<std::size_t>(rank)];
    if (!program.process.running()) return;
    read(rank, program);
    const pid_t pid = program.process.pid();
    const auto report = program.process.reap();
    if (!report) return;
    guard_.forget(pid);
    // Its last output is in the pipes, which hold less than a slice. Do not wait for their end: a process that it
    // started outside its group may keep them open.
    read(rank, program);
    for (const auto which : {ProgramStream::output, ProgramStream::errors}) {
      Stream& stream = program.streams[static_cast<std::size_t>(which)];
      stream.lines.finish([&](std::string_view line) { tell(rank, which, line); });
      stream.fd.reset();
    }
    const ProgramEnd end{rank, report->signal, report->status, program.told_to_end};
    if (options_.on_end) options_.on_end(end);
    if (end.failed() && !first_failure_) {
      first_failure_ = end;
      terminate();
    }
  }

  /// Reads at most a slice of each stream.
  void read(std::int64_t rank, Program& program) {
    for (const auto which : {ProgramStream::output, ProgramStream::errors}) {
      Stream& stream = program.streams[static_cast<std::size_t>(which)];
      char chunk[65536];
      for (std::size_t taken = 0; stream.fd && taken < turn_bytes;) {
        const auto count = ::read(stream.fd.get(), chunk, sizeof chunk);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (count <= 0) {
          stream.fd.reset();
          break;
        }
        const std::string_view bytes(chunk, static_cast<std::size_t>(count));
        log(rank, program, bytes);
        stream.lines.take(bytes, [&](std::string_view line) { tell(rank, which, line); });
        taken += bytes.size();
      }
    }
  }

  void log(std::int64_t rank, Program& program, std::string_view bytes) const {
    if (!program.log) return;
    const int error = write_all(program.log.get(), bytes);
    if (error == 0) return;
    program.log.reset();
    const auto path = options_.log_dir / fmt::format("{}.log", rank);
    tell(rank, ProgramStream::errors,
         "accrue: the log ends here. " + disk_error(path, "cannot be written", error).value().text());
  }

  void tell(std::int64_t rank, ProgramStream stream, std::string_view line) const {
    if (options_.on_line) options_.on_line(rank, stream, line);
  }

  /// Moves to a later stage of the ladder, never back.
  void begin(int signal) {
    static constexpr std::array rungs = {0, SIGINT, SIGTERM, SIGKILL};
    const auto height = [](int each) { return std::ranges::find(rungs, each) - rungs.begin(); };
    if (height(signal) <= height(rung_)) return;
    rung_ = signal;
    next_rung_ = Clock::now() + options_.grace;
    for (Program& each : programs_) {
      if (!each.process.running()) continue;
      each.told_to_end = true;
      each.process.signal(signal);
    }
  }

  void climb() {
    if (rung_ == 0 || rung_ == SIGKILL || Clock::now() < next_rung_) return;
    begin(rung_ == SIGINT ? SIGTERM : SIGKILL);
  }

  ProgramGroupOptions options_;
  HeldPort port_;
  std::string secret_;  ///< under which the ranks of Accrue's programs meet
  ProgramGuard guard_;  // outlives the ranks
  std::vector<Program> programs_;
  std::optional<ProgramEnd> first_failure_;
  int rung_ = 0;
  Clock::time_point next_rung_;
};

}  // namespace

Result<std::unique_ptr<ProgramGroup>> ProgramGroup::start(ProgramGroupOptions options) {
  auto group = std::make_unique<LiveGroup>(std::move(options));
  if (auto started = group->start_all(); !started) return tl::unexpected(started.error());
  return group;
}

}  // namespace accrue

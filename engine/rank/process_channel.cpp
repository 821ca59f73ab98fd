// SPDX-License-Identifier: Apache-2.0
// One poll loop. It shares only the outbox, the gate and a few atomics with other threads.
#include "rank/process_channel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "accrue/run/events/rank_command.h"
#include "rank/end_signals.h"

namespace accrue {
namespace {

constexpr std::int64_t heartbeat_interval_ns = 100'000'000;
constexpr std::int64_t close_grace_ns = 5'000'000'000;
constexpr std::size_t max_command_line = 4096;
constexpr std::size_t outgoing_low_water = 256 << 10;
constexpr std::size_t write_slice = 4096;  ///< fits into a pipe that poll reports as writable

std::int64_t ns(std::chrono::milliseconds time) {
  return std::chrono::nanoseconds(time).count();
}

/// Whether a phase may end before the next heartbeat is due but must still be named in a failure report.
bool is_brief(std::string_view phase) {
  return phase == "checkpoint" || phase == "finish";
}

}  // namespace

ProcessChannel::ProcessChannel(ChannelOptions options)
    : options_(std::move(options)),
      outbox_(options_.rank, options_.origin_ns, options_.first_seq),
      gate_([this](const Holding& holding) { send(holding); }),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (options_.end_signals) signal_fd_ = end_signal_fd();
  if (!options_.on_orphan_deadline) options_.on_orphan_deadline = [] { ::_exit(exit_status(ErrorCode::peer_lost)); };
  if (!options_.on_end_now) options_.on_end_now = options_.on_orphan_deadline;
  thread_ = std::thread([this] { run(); });
}

ProcessChannel::~ProcessChannel() {
  close();
}

void ProcessChannel::send(EventBody body) {
  if (outbox_.post(std::move(body))) wake();
}

void ProcessChannel::progress(const char* phase, std::int64_t update, std::int64_t micro_step) {
  update_.store(update, std::memory_order_relaxed);
  micro_step_.store(micro_step, std::memory_order_relaxed);
  const char* const before = phase_.exchange(phase, std::memory_order_relaxed);
  if (before == phase || (!is_brief(before) && !is_brief(phase))) return;
  announce_.store(true);
  wake();
}

void ProcessChannel::close() {
  if (!thread_.joinable()) return;
  closing_.store(true);
  wake();
  thread_.join();
}

void ProcessChannel::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

void ProcessChannel::run() {
  while (!closing_.load()) {
    poll_once(timeout_ms());
    heartbeat();
    fill_outgoing(false);
    check_deadline();
  }
  // After this point the training thread sends nothing more.
  const std::int64_t give_up = monotonic_ns() + close_grace_ns;
  fill_outgoing(true);
  while (!gone_ && (!outgoing_.empty() || outbox_.due_ns()) && monotonic_ns() < give_up) {
    poll_once(100);
    fill_outgoing(true);
  }
}

int ProcessChannel::timeout_ms() const {
  const std::int64_t now = monotonic_ns();
  std::int64_t until = now + heartbeat_interval_ns;
  if (const auto due = outbox_.due_ns(); due && !gone_ && outgoing_.size() < outgoing_low_water)
    until = std::min(until, *due);
  return static_cast<int>(std::max<std::int64_t>(0, (until - now + 999'999) / 1'000'000));
}

void ProcessChannel::poll_once(int timeout_ms) {
  const short socket_events = static_cast<short>((options_.commands ? POLLIN : 0) | (outgoing_.empty() ? 0 : POLLOUT));
  std::array<pollfd, 3> fds{
      {{wake_fd_.get(), POLLIN, 0}, {gone_ ? -1 : options_.fd, socket_events, 0}, {signal_fd_.get(), POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(), timeout_ms) <= 0) return;
  if (fds[0].revents) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(wake_fd_.get(), &count, sizeof count);
  }
  if (fds[2].revents) read_signal();
  if (options_.commands && (fds[1].revents & (POLLIN | POLLHUP | POLLERR))) read_commands();
  if (!gone_ && !options_.commands && (fds[1].revents & POLLERR)) lose_supervisor();
  if (!gone_ && (fds[1].revents & POLLOUT)) write_some();
}

/// Reports the place of training even if unchanged: silence means that the process is stopped, an unchanged place that
/// training is slow or stuck. Adds nothing while the reader is slow.
void ProcessChannel::heartbeat() {
  if (!options_.commands || gone_ || !outgoing_.empty()) return;
  const std::int64_t now = monotonic_ns();
  if (!announce_.exchange(false) && now - heartbeat_ns_ < heartbeat_interval_ns) return;
  heartbeat_ns_ = now;
  outbox_.post(Heartbeat{.phase = gate_.standing() ? "paused" : phase_.load(std::memory_order_relaxed),
                         .update = update_.load(std::memory_order_relaxed),
                         .micro_step = micro_step_.load(std::memory_order_relaxed),
                         .collective = collective_.load(std::memory_order_relaxed),
                         .operation = operation().text()});
}

void ProcessChannel::fill_outgoing(bool all) {
  if (gone_) {
    outbox_.discard();  // the reader is gone
    return;
  }
  if (outgoing_.size() < outgoing_low_water) outgoing_ += outbox_.take_lines(monotonic_ns(), all);
  if (!outgoing_.empty()) write_some();
}

void ProcessChannel::write_some() {
  while (!outgoing_.empty()) {
    pollfd ready{options_.fd, POLLOUT, 0};
    if (!options_.commands && (::poll(&ready, 1, 0) <= 0 || !(ready.revents & POLLOUT))) return;
    const auto written = options_.commands
                             ? ::send(options_.fd, outgoing_.data(), outgoing_.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                             : ::write(options_.fd, outgoing_.data(), std::min(outgoing_.size(), write_slice));
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (written < 0) return lose_supervisor();
    outgoing_.erase(0, static_cast<std::size_t>(written));
  }
}

void ProcessChannel::read_commands() {
  std::array<char, 4096> bytes;
  while (true) {
    const auto count = ::recv(options_.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      take_command_lines();
      return lose_supervisor();
    }
    incoming_.append(bytes.data(), static_cast<std::size_t>(count));
    take_command_lines();
  }
}

void ProcessChannel::take_command_lines() {
  std::size_t end = 0;
  while ((end = incoming_.find('\n')) != std::string::npos) {
    const auto command = decode_command(std::string_view(incoming_).substr(0, end));
    if (command && command->kind == RankCommandKind::end_now) {
      options_.on_end_now();
      return lose_supervisor();
    }
    if (command)
      gate_.apply(*command);
    else
      send(Warning{.class_name = "protocol",
                   .message = "a command from the supervisor was not understood: " + command.error().text(),
                   .what_to_do = "Use accrue, accrue-run and accrue-rank of one version."});
    incoming_.erase(0, end + 1);
  }
  if (incoming_.size() > max_command_line) incoming_.clear();
}

void ProcessChannel::read_signal() {
  signalfd_siginfo info;
  while (::read(signal_fd_.get(), &info, sizeof info) == sizeof info)
    gate_.apply({.kind = RankCommandKind::checkpoint_and_stop});
}

void ProcessChannel::lose_supervisor() {
  if (gone_) return;
  gone_ = true;
  outgoing_.clear();
  deadline_ns_ = monotonic_ns() + ns(options_.orphan_deadline);
  gate_.supervisor_gone();
}

void ProcessChannel::check_deadline() {
  if (!gone_ || deadline_ns_ == 0 || monotonic_ns() < deadline_ns_) return;
  deadline_ns_ = 0;
  options_.on_orphan_deadline();
}

}  // namespace accrue

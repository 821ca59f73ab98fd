// SPDX-License-Identifier: Apache-2.0
#include "rank_slot.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace accrue {
namespace {

// A slice is large enough for any rate of a rank, and small enough that no rank starves another.
constexpr std::size_t slice_bytes = 1 << 20;
constexpr std::size_t kept_log_bytes = 4096;

}  // namespace

void RankSlot::send(const RankCommand& command) {
  outbox += encode_command(command);
  outbox += '\n';
  flush();
}

void RankSlot::flush() {
  while (!outbox.empty() && process.events.get() >= 0) {
    const auto count = ::send(process.events.get(), outbox.data(), outbox.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) outbox.clear();  // the rank reads no more, so it will exit
      return;
    }
    outbox.erase(0, static_cast<std::size_t>(count));
  }
}

std::optional<ExitReport> RankSlot::reap() {
  if (!adopted) return process.child.reap();
  if (exit || process.events.get() >= 0) return std::nullopt;
  if (failure_report) return ExitReport{0, std::get<RankFailed>(failure_report->body).exit_status};
  if (said_farewell) return ExitReport{};
  return ExitReport{0, exit_status(ErrorCode::peer_lost), true};
}

void RankSlot::kill() {
  const bool again = std::exchange(told_to_end, true);
  if (!adopted) return process.child.signal(SIGKILL);
  if (again) return process.events.reset();
  outbox.clear();
  send({.kind = RankCommandKind::end_now});
  ::shutdown(process.events.get(), SHUT_WR);  // remaining output of the rank is still read
}

std::string RankSlot::read_events() {
  std::string bytes;
  char chunk[65536];
  while (process.events.get() >= 0 && bytes.size() < slice_bytes) {
    const auto count = ::recv(process.events.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count <= 0)
      process.events.reset();
    else
      bytes.append(chunk, static_cast<std::size_t>(count));
  }
  return bytes;
}

std::string RankSlot::read_output() {
  std::string bytes;
  char chunk[65536];
  while (process.output.get() >= 0 && bytes.size() < slice_bytes) {
    const auto count = ::read(process.output.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count <= 0)
      process.output.reset();
    else
      bytes.append(chunk, static_cast<std::size_t>(count));
  }
  if (bytes.size() >= kept_log_bytes) {
    log_tail = bytes.substr(bytes.size() - kept_log_bytes);
  } else if (!bytes.empty()) {
    log_tail += bytes;
    if (log_tail.size() > kept_log_bytes) log_tail.erase(0, log_tail.size() - kept_log_bytes);
  }
  return bytes;
}

std::string last_lines(const std::string& text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  const auto cut = text.find('\n', text.size() - max_bytes);
  return cut == std::string::npos ? text.substr(text.size() - max_bytes) : text.substr(cut + 1);
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Problem: reports of a run must survive any crash, and two supervisors must never write one folder. Solution:
// append-only lines written at once (a killed process loses nothing), fdatasync every second and at every checkpoint
// and state change (a power cut loses a second), and an flock on run.lock that the ranks inherit, which the kernel
// releases when the last of them ends. Cost: one write call per event, and 64 MiB kept in reserve so that a full disk
// still has space for the last events. The reserve is an unnamed file, so it cannot be left behind.
#include "accrue/run/record/run_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <random>
#include <utility>

#include "accrue/run/base/number_text.h"
#include "accrue/run/events/event_codec.h"
#include "event_scan.h"
#include "posix_file.h"
#include "run_folder.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t least_free_bytes = 64LL << 20;
constexpr std::int64_t reserve_bytes = 64LL << 20;
constexpr std::int64_t free_bytes_for_reserve = 256LL << 20;
constexpr std::int64_t max_log_bytes = 64LL << 20;
constexpr std::chrono::seconds sync_interval{1};

bool is_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

Result<void> make_subfolder(const fs::path& dir) {
  if (::mkdir(dir.c_str(), 0700) == 0) return {};
  return disk_error(dir, "cannot be created", errno);
}

Result<void> check_space(const fs::path& dir) {
  const auto free = free_bytes(dir);
  if (free < 0 || free >= least_free_bytes) return {};
  return fail(ErrorCode::disk,
              fmt::format("only {} are free where a run needs at least {}: {} are missing", format_bytes(free),
                          format_bytes(least_free_bytes), format_bytes(least_free_bytes - free)),
              dir.string(), "Free some space, or choose a folder on another disk");
}

}  // namespace

fs::path default_runs_dir() {
  const char* data_home = std::getenv("XDG_DATA_HOME");
  if (data_home != nullptr && data_home[0] == '/') return fs::path(data_home) / "accrue" / "runs";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && home[0] == '/' ? home : "/tmp") / ".local" / "share" / "accrue" / "runs";
}

std::string new_run_id() {
  constexpr std::string_view letters = "abcdefghjkmnpqrstuvwxyz23456789";
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 24> stamp{};
  std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S-", &local);
  std::string id = stamp.data();
  std::random_device source;
  for (int i = 0; i < 6; ++i) id += letters[source() % letters.size()];
  return id;
}

Result<RunWriter> RunWriter::create(const fs::path& folder, const std::string& spec_toml) {
  const auto dir = absolute_folder(folder);
  if (!dir) return tl::unexpected(dir.error());
  std::error_code ignored;
  const bool existed = fs::exists(*dir, ignored);
  if (auto made = make_own_folder(*dir); !made) return tl::unexpected(made.error());
  if (auto free = check_free(*dir); !free) return tl::unexpected(free.error());
  RunWriter writer;
  writer.dir_ = *dir;
  auto begun = check_space(*dir);
  if (begun) begun = writer.begin_folder(spec_toml);
  if (!begun) {  // a refusal leaves nothing behind
    writer.give_up();
    if (!existed) fs::remove(*dir, ignored);
    return tl::unexpected(begun.error());
  }
  writer.reserve_space();
  return writer;
}

Result<void> RunWriter::begin_folder(const std::string& spec_toml) {
  auto lock = RunLock::take(dir_);
  if (!lock) return tl::unexpected(lock.error());
  if (auto free = check_free(dir_); !free) return free;  // another start may have held the lock in between
  lock_ = std::move(*lock);
  clear_failed_start(dir_);
  for (const char* name : {"ranks", "checkpoints"})
    if (auto made = make_subfolder(dir_ / name); !made) return made;
  if (auto written = write_file(dir_ / "spec.toml", spec_toml); !written) return written;
  return open_events();
}

void RunWriter::give_up() {
  if (lock_.fd() < 0) return;
  clear_failed_start(dir_);
  ::unlink((dir_ / "run.lock").c_str());
}

Result<RunWriter> RunWriter::reopen(const fs::path& folder) {
  const auto dir = absolute_folder(folder);
  if (!dir) return tl::unexpected(dir.error());
  RunWriter writer;
  writer.dir_ = *dir;
  std::error_code error;
  if (!fs::exists(writer.dir_ / "spec.toml", error) && !fs::exists(writer.dir_ / "plan.json", error))
    return fail(ErrorCode::config, "is not a run folder: it holds neither spec.toml nor plan.json",
                writer.dir_.string(), "Give the folder that \"accrue-run run\" printed");
  auto lock = RunLock::take(writer.dir_);
  if (!lock) return tl::unexpected(lock.error());
  writer.lock_ = std::move(*lock);
  if (auto opened = writer.open_events(); !opened) return tl::unexpected(opened.error());
  if (auto continued = writer.continue_events(); !continued) return tl::unexpected(continued.error());
  clear_leftovers(writer.dir_);
  ::mkdir((writer.dir_ / "ranks").c_str(), 0700);
  ::mkdir((writer.dir_ / "checkpoints").c_str(), 0700);
  ::unlink((writer.dir_ / "summary.json").c_str());  // it described an end from which the run now continues
  writer.reserve_space();
  return writer;
}

/// Cuts off a torn last line; numbers and times continue after the last whole one.
Result<void> RunWriter::continue_events() {
  auto scan = scan_events(events_fd_.get());
  if (!scan) {
    scan.error().where = (dir_ / "events.jsonl").string();
    return tl::unexpected(scan.error());
  }
  if (scan->whole_bytes < scan->total_bytes && ::ftruncate(events_fd_.get(), scan->whole_bytes) != 0)
    return disk_error(dir_ / "events.jsonl", "the torn last line cannot be cut off", errno);
  events_bytes_ = scan->whole_bytes;
  next_seq_ = std::move(scan->next_seq);
  last_time_ns_ = scan->last_time_ns;
  return {};
}

RunWriter::RunWriter(RunWriter&& other) noexcept {
  *this = std::move(other);
}

RunWriter& RunWriter::operator=(RunWriter&& other) noexcept {
  std::swap(dir_, other.dir_);
  std::swap(lock_, other.lock_);
  std::swap(events_fd_, other.events_fd_);
  std::swap(reserve_fd_, other.reserve_fd_);
  std::swap(reserve_spent_, other.reserve_spent_);
  std::swap(wrote_plan_, other.wrote_plan_);
  std::swap(dirty_, other.dirty_);
  std::swap(torn_, other.torn_);
  std::swap(last_sync_, other.last_sync_);
  std::swap(events_bytes_, other.events_bytes_);
  std::swap(last_time_ns_, other.last_time_ns_);
  std::swap(next_seq_, other.next_seq_);
  std::swap(logs_, other.logs_);
  return *this;
}

RunWriter::~RunWriter() {
  if (dirty_) ::fdatasync(events_fd_.get());
  for (const auto& [rank, log] : logs_)
    if (log.dropped > 0 && log.fd)
      write_all(log.fd.get(), fmt::format("\n[accrue: {} of output were dropped here]\n", format_bytes(log.dropped)));
}

Result<void> RunWriter::open_events() {
  auto opened = open_regular(dir_ / "events.jsonl", O_RDWR | O_CREAT | O_APPEND);
  if (!opened) return tl::unexpected(opened.error());
  events_fd_ = std::move(*opened);
  last_sync_ = std::chrono::steady_clock::now();
  return {};
}

void RunWriter::reserve_space() {
  if (free_bytes(dir_) < free_bytes_for_reserve) return;
  // Where the file system has no unnamed files, the run continues without.
  reserve_fd_ = OwnedFd(::open(dir_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (::fallocate(reserve_fd_.get(), 0, 0, reserve_bytes) != 0) reserve_fd_.reset();
}

Result<void> RunWriter::append(const RunEvent& event, std::string_view received) {
  std::string line = received.empty() ? encode_event(event) : std::string(received);
  line += '\n';
  int error = write_line(line);
  if (is_full(error)) {
    reserve_spent_ = true;
    if (reserve_fd_) {
      reserve_fd_.reset();
      error = write_line(line);
    }
  }
  if (error != 0) {
    auto failure = disk_error(dir_ / "events.jsonl",
                              fmt::format("an event of {} cannot be stored", format_bytes(line.size())), error);
    const auto free = free_bytes(dir_);
    if (is_full(error) && error != EFBIG && free >= 0)
      failure.value().message += fmt::format(
          " ({} short, {} free)",
          format_bytes(std::max<std::int64_t>(1, static_cast<std::int64_t>(line.size()) - free)), format_bytes(free));
    return failure;
  }
  events_bytes_ += static_cast<std::int64_t>(line.size());
  dirty_ = true;
  if (event.seq >= 0) {
    auto& next = next_seq_[event.rank];
    next = std::max(next, event.seq + 1);
  }
  last_time_ns_ = std::max(last_time_ns_, event.time_ns);
  return {};
}

/// Writes the whole line or nothing: a partial line is cut off before anything follows it. Returns errno; 0: done.
int RunWriter::write_line(std::string_view line) {
  const auto cut = [this] { return ::ftruncate(events_fd_.get(), events_bytes_) == 0; };
  if (torn_ && !cut()) return errno;
  const int error = write_all(events_fd_.get(), line);
  torn_ = error != 0 && !cut();
  return error;
}

Result<void> RunWriter::sync() {
  last_sync_ = std::chrono::steady_clock::now();
  if (!std::exchange(dirty_, false)) return {};
  if (::fdatasync(events_fd_.get()) == 0) return {};
  return disk_error(dir_ / "events.jsonl", "cannot be brought to the disk", errno);
}

Result<void> RunWriter::sync_if_due(std::chrono::steady_clock::time_point now) {
  if (!dirty_ || now - last_sync_ < sync_interval) return {};
  return sync();
}

Result<void> RunWriter::write_plan(const std::string& json) {
  auto written = write_plan_file(json, dir_ / "plan.json");
  wrote_plan_ = written.has_value();
  return written;
}

Result<void> RunWriter::write_summary(const RunSummary& summary) {
  return write_file(dir_ / "summary.json", summary_record(summary));
}

Result<void> RunWriter::append_log(std::int64_t rank, std::string_view bytes) {
  const fs::path path = dir_ / "ranks" / fmt::format("{}.log", rank);
  RankLog& log = logs_[rank];
  if (!log.fd) {
    auto opened = open_regular(path, O_WRONLY | O_CREAT | O_APPEND);
    log.dropped += opened ? 0 : static_cast<std::int64_t>(bytes.size());
    if (!opened && std::exchange(log.failed, true)) return {};
    if (!opened) return tl::unexpected(opened.error());
    log.fd = std::move(*opened);
    log.bytes = static_cast<std::int64_t>(::lseek(log.fd.get(), 0, SEEK_END));
  }
  const auto room = std::clamp<std::int64_t>(max_log_bytes - log.bytes, 0, static_cast<std::int64_t>(bytes.size()));
  const auto kept = bytes.substr(0, static_cast<std::size_t>(room));
  const int error = write_all(log.fd.get(), kept);
  log.bytes += error == 0 ? room : 0;
  log.dropped += static_cast<std::int64_t>(bytes.size()) - (error == 0 ? room : 0);
  if (error == 0 || std::exchange(log.failed, true)) return {};
  return disk_error(path, "what the rank prints cannot be stored", error);
}

bool is_locked(const fs::path& dir) {
  return is_file_locked(dir / "run.lock");
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "chrome_trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "accrue/run/base/version.h"
#include "posix_file.h"

namespace accrue {

namespace {

constexpr std::size_t flush_bytes = 1 << 20;

std::string as_text(const Json& json) {
  return json_text(json);
}

}  // namespace

Result<TraceFile> TraceFile::create(const std::filesystem::path& path) {
  const auto part = part_of(path);
  ::unlink(part.c_str());
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return disk_error(path, "cannot be written", errno);
  return TraceFile(path, fd);
}

TraceFile::TraceFile(TraceFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      first_(other.first_),
      state_(std::move(other.state_)) {}

TraceFile::~TraceFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(part_of(path_).c_str());
}

void TraceFile::open_object(const std::string& run_name) {
  buffer_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":" +
            as_text({{"program", std::string("Accrue ") + version()}, {"run", run_name}}) + ",\"traceEvents\":[";
}

void TraceFile::event(const Json& event) {
  buffer_ += std::exchange(first_, false) ? "\n" : ",\n";
  buffer_ += as_text(event);
  if (buffer_.size() >= flush_bytes) flush();
}

void TraceFile::flush() {
  if (!state_) return;
  if (const int error = write_all(fd_, std::exchange(buffer_, {})); error != 0)
    state_ = disk_error(path_, "cannot be written", error);
}

Result<void> TraceFile::close_object() {
  buffer_ += "\n]}\n";
  flush();
  if (!state_) return state_;
  const int failed = ::close(std::exchange(fd_, -1));
  const auto part = part_of(path_);
  if (failed == 0 && std::rename(part.c_str(), path_.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(part.c_str());
  return disk_error(path_, "cannot be written", error);
}

}  // namespace accrue

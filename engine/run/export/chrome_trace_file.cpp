// SPDX-License-Identifier: Apache-2.0
#include "chrome_trace_file.h"

#include <unistd.h>

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
  auto part = create_part(path, 0644);
  if (!part) return tl::unexpected(part.error());
  return TraceFile(path, std::move(*part));
}

TraceFile::~TraceFile() {
  if (fd_) ::unlink(part_of(path_).c_str());
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
  if (const int error = write_all(fd_.get(), std::exchange(buffer_, {})); error != 0)
    state_ = disk_error(path_, "cannot be written", error);
}

Result<void> TraceFile::close_object() {
  buffer_ += "\n]}\n";
  flush();
  if (!state_) return state_;
  return place_part(path_, std::move(fd_));
}

}  // namespace accrue

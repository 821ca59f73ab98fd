// SPDX-License-Identifier: Apache-2.0
// Problem: a resumed run must continue every rank's numbering, and a long run's file holds gigabytes. Solution: our own
// writer puts version, kind, rank, seq and time first, so those are read as text; only a line that looks different is
// decoded in full.
#include "event_scan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "accrue/run/events/event_codec.h"
#include "accrue/run/events/run_event.h"
#include "json_limits.h"

namespace accrue {
namespace {

struct Header {
  std::int64_t version = 0;
  std::int64_t rank = 0;
  std::int64_t seq = -1;
  std::int64_t time_ns = 0;
};

bool take_text(std::string_view& text, std::string_view expected) {
  if (text.substr(0, expected.size()) != expected) return false;
  text.remove_prefix(expected.size());
  return true;
}

bool take_number(std::string_view& text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > max_json_integer || value < -max_json_integer) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool read_header(std::string_view line, Header& header) {
  if (line.size() < 2 || line.back() != '}') return false;
  if (!take_text(line, "{\"v\":") || !take_number(line, header.version)) return false;
  if (!take_text(line, ",\"kind\":\"")) return false;
  const auto quote = line.find('"');
  if (quote == std::string_view::npos || line.substr(0, quote).find('\\') != std::string_view::npos) return false;
  line.remove_prefix(quote + 1);
  return take_text(line, ",\"rank\":") && take_number(line, header.rank) && take_text(line, ",\"seq\":") &&
         take_number(line, header.seq) && take_text(line, ",\"time_ns\":") && take_number(line, header.time_ns);
}

/// Reads the line of another writer; skips a damaged one.
bool decode_header(std::string_view line, Header& header) {
  const auto event = decode_event(line);
  if (!event) return false;
  header = {event_format_version, event->rank, event->seq, event->time_ns};
  return true;
}

Result<void> take_line(std::string_view line, EventScan& scan) {
  Header header;
  if (!read_header(line, header) && !decode_header(line, header)) return {};
  if (header.version != event_format_version)
    return fail(ErrorCode::protocol,
                fmt::format("the run folder holds events of version {}, this program writes version {}", header.version,
                            event_format_version),
                {},
                header.version < event_format_version
                    ? "Resume with the version of Accrue that wrote it, or start a new run from its spec.toml"
                    : "Use the version of Accrue that wrote it, or a newer one");
  if (header.seq >= 0) {
    auto& next = scan.next_seq[header.rank];
    next = std::max(next, header.seq + 1);
  }
  scan.last_time_ns = std::max(scan.last_time_ns, header.time_ns);
  return {};
}

}  // namespace

Result<EventScan> scan_events(int fd) {
  EventScan scan;
  std::string buffer;
  std::string chunk(1 << 20, '\0');
  bool skipping = false;
  for (;;) {
    const auto count = ::pread(fd, chunk.data(), chunk.size(), scan.total_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::disk, fmt::format("events cannot be read: {}", std::strerror(errno)));
    if (count == 0) break;
    buffer.append(chunk, 0, static_cast<std::size_t>(count));
    scan.total_bytes += count;
    std::size_t start = 0;
    for (auto end = buffer.find('\n'); end != std::string::npos; end = buffer.find('\n', start)) {
      if (!skipping) {
        auto taken = take_line(std::string_view(buffer).substr(start, end - start), scan);
        if (!taken) return tl::unexpected(taken.error());
      }
      skipping = false;
      start = end + 1;
    }
    if (start > 0) scan.whole_bytes = scan.total_bytes - static_cast<std::int64_t>(buffer.size() - start);
    buffer.erase(0, start);
    if (buffer.size() > max_event_bytes) skipping = true;
    if (skipping) buffer.clear();  // an over-long line: only its end matters
  }
  return scan;
}

}  // namespace accrue

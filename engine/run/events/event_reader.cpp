// SPDX-License-Identifier: Apache-2.0
// Problem: the same lines arrive from a socket in pieces, from a finished file and from a growing one, and any may be
// damaged. Solution: one reader that keeps an unfinished line, skips and counts what it cannot read, and notices jumps
// in a rank's numbering; no input stops it.
#include "accrue/run/events/event_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "accrue/run/base/counted.h"
#include "accrue/run/events/event_codec.h"
#include "json_limits.h"
#include "posix_file.h"

namespace accrue {
namespace {

std::string_view without_return(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace

std::string to_text(const ReadProblems& problems) {
  std::string text;
  if (problems.unreadable_lines > 0)
    text += fmt::format("{} of events.jsonl cannot be read ({})", counted(problems.unreadable_lines, "line"),
                        problems.first_message);
  if (problems.missing_events > 0)
    text += fmt::format("{}{} {} missing", text.empty() ? "" : "; ", counted(problems.missing_events, "event"),
                        problems.missing_events == 1 ? "is" : "are");
  if (problems.torn_last_line) text += std::string(text.empty() ? "" : "; ") + "the last line is torn";
  return text;
}

/// Calls take() for each line that these bytes complete.
template <typename Take>
void EventReader::consume(std::string_view bytes, Take take) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    if (skipping_) {
      if (end != std::string_view::npos) skipping_ = false;
    } else if (end == std::string_view::npos) {
      partial_ += piece;
    } else if (partial_.empty()) {
      take(piece);
    } else {
      partial_ += piece;
      take(std::string_view(std::exchange(partial_, {})));
    }
    if (partial_.size() > max_event_bytes) {
      partial_.clear();
      skipping_ = true;
      ++problems_.unreadable_lines;
      if (problems_.first_message.empty())
        problems_.first_message = fmt::format("a line longer than {} bytes was skipped", max_event_bytes);
    }
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
  }
}

std::vector<RunEvent> EventReader::feed(std::string_view bytes) {
  std::vector<RunEvent> out;
  consume(bytes, [&](std::string_view line) {
    if (auto event = take_line(line)) out.push_back(std::move(*event));
  });
  return out;
}

std::vector<ReceivedEvent> EventReader::feed_lines(std::string_view bytes) {
  std::vector<ReceivedEvent> out;
  consume(bytes, [&](std::string_view line) {
    if (auto event = take_line(line)) out.push_back({std::move(*event), std::string(without_return(line))});
  });
  return out;
}

void EventReader::finish() {
  if (partial_.empty() && !skipping_) return;
  problems_.torn_last_line = true;
  partial_.clear();
  skipping_ = false;
}

void EventReader::expect(std::int64_t rank, std::int64_t seq) {
  next_seq_[rank] = seq;
}

std::optional<RunEvent> EventReader::take_line(std::string_view line) {
  line = without_return(line);
  if (line.empty()) return std::nullopt;
  auto event = decode_event(line);
  if (!event) {
    ++problems_.unreadable_lines;
    if (problems_.first_message.empty()) problems_.first_message = event.error().message;
    return std::nullopt;
  }
  if (is_stored(event->body)) {
    auto& next = next_seq_[event->rank];
    if (event->seq > next)
      problems_.missing_events = std::min(problems_.missing_events + (event->seq - next), max_json_integer);
    if (event->seq >= next) next = event->seq + 1;
  }
  return std::move(*event);
}

Result<EventFile> EventFile::open(const std::filesystem::path& file) {
  auto fd = open_regular(file, O_RDONLY);
  if (!fd) return tl::unexpected(fd.error());
  return EventFile(std::move(*fd));
}

std::vector<RunEvent> EventFile::poll(std::size_t max_bytes) {
  std::vector<RunEvent> out;
  std::string buffer(std::min<std::size_t>(max_bytes, 256 << 10), '\0');
  std::size_t taken = 0;
  at_end_ = false;
  while (taken < max_bytes) {
    const auto count = ::read(fd_.get(), buffer.data(), std::min(buffer.size(), max_bytes - taken));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      at_end_ = true;
      break;
    }
    taken += static_cast<std::size_t>(count);
    auto events = reader_.feed(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
    if (out.empty())
      out = std::move(events);
    else
      out.insert(out.end(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
  }
  return out;
}

Result<void> check_readable(const ReadProblems& problems, bool read_any, const std::filesystem::path& file) {
  if (read_any || problems.unreadable_lines == 0) return {};
  return fail(ErrorCode::protocol, "none of its lines can be read: " + problems.first_message, file.string(),
              "Open the run with the version of Accrue that wrote it");
}

Result<EventHistory> read_events(const std::filesystem::path& file) {
  auto opened = EventFile::open(file);
  if (!opened) return tl::unexpected(opened.error());
  EventHistory history;
  do {
    auto events = opened->poll();
    history.events.insert(history.events.end(), std::make_move_iterator(events.begin()),
                          std::make_move_iterator(events.end()));
  } while (!opened->at_end());
  opened->finish();
  history.problems = opened->problems();
  if (auto readable = check_readable(history.problems, !history.events.empty(), file); !readable)
    return tl::unexpected(readable.error());
  return history;
}

}  // namespace accrue

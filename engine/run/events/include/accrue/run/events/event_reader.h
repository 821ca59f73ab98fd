// SPDX-License-Identifier: Apache-2.0
// The single reader of event lines. Its input is a rank's channel, a file from its start (replay) or a growing file
// (attach).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"
#include "accrue/run/events/run_event.h"

namespace accrue {

struct ReadProblems {
  std::int64_t unreadable_lines = 0;
  std::int64_t missing_events = 0;  ///< from jumps in a rank's seq
  std::string first_message;
  bool torn_last_line = false;
  bool operator==(const ReadProblems&) const = default;
};

/// Describes the problems for people, for example "12 lines of events.jsonl cannot be read (...); the last line is
/// torn"; empty if there are none.
std::string to_text(const ReadProblems& problems);

/// An event and its line, without the newline.
struct ReceivedEvent {
  RunEvent event;
  std::string line;
};

/// Decoder from bytes to events. Keeps an unfinished line until the rest arrives.
class EventReader {
 public:
  /// Returns the events of all lines that these bytes complete. A damaged line is skipped and counted; an over-long one
  /// is skipped whole.
  std::vector<RunEvent> feed(std::string_view bytes);
  /// Returns the events together with their lines, for a reader that forwards the lines unchanged.
  std::vector<ReceivedEvent> feed_lines(std::string_view bytes);
  /// Marks the end of the input: an unfinished line is torn.
  void finish();
  /// A rank's numbering starts here instead of at 0, because its channel continues a run.
  void expect(std::int64_t rank, std::int64_t seq);
  const ReadProblems& problems() const { return problems_; }
  /// Next expected seq per rank.
  const std::map<std::int64_t, std::int64_t>& next_seq() const { return next_seq_; }

 private:
  template <typename Take>
  void consume(std::string_view bytes, Take take);
  std::optional<RunEvent> take_line(std::string_view line);

  std::string partial_;
  bool skipping_ = false;
  ReadProblems problems_;
  std::map<std::int64_t, std::int64_t> next_seq_;
};

/// Follower of an events.jsonl: each poll returns what was appended since the last.
class EventFile {
 public:
  static Result<EventFile> open(const std::filesystem::path& file);
  /// Reads at most max_bytes, so that a large file can be read in slices. Returns an empty list if there is nothing
  /// new.
  std::vector<RunEvent> poll(std::size_t max_bytes = 4 << 20);
  bool at_end() const { return at_end_; }
  /// The file will not grow any more: an incomplete line is torn.
  void finish() { reader_.finish(); }
  const ReadProblems& problems() const { return reader_.problems(); }

 private:
  explicit EventFile(OwnedFd fd) : fd_(std::move(fd)) {}
  OwnedFd fd_;
  bool at_end_ = false;
  EventReader reader_;
};

/// Returns an error if lines were found but none could be read, for example those of another version: the reason of the
/// first one.
Result<void> check_readable(const ReadProblems& problems, bool read_any, const std::filesystem::path& file);

/// A whole file; a torn last line is listed in the problems.
struct EventHistory {
  std::vector<RunEvent> events;
  ReadProblems problems;
};
/// Errors: the file cannot be opened, or none of it can be read.
Result<EventHistory> read_events(const std::filesystem::path& file);

}  // namespace accrue

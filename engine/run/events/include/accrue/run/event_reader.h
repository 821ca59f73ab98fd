// SPDX-License-Identifier: Apache-2.0
// The one reader of event lines: fed by a rank's channel, by a file from its start (replay) and by a file that grows
// (attach).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_event.h"

namespace accrue {

struct ReadProblems {
  std::int64_t unreadable_lines = 0;
  std::int64_t missing_events = 0;  ///< from jumps in a rank's seq
  std::string first_message;
  bool torn_last_line = false;
  bool operator==(const ReadProblems&) const = default;
};

/// The problems as text for people, e.g. "12 lines of events.jsonl cannot be read (...); the last line is torn"; empty
/// where there are none.
std::string to_text(const ReadProblems& problems);

/// An event and the line that it came in, without the newline.
struct ReceivedEvent {
  RunEvent event;
  std::string line;
};

/// Turns bytes into events; keeps an unfinished line until the rest comes.
class EventReader {
 public:
  /// Events of all lines completed by these bytes. A damaged line is skipped and counted; an over-long one is skipped
  /// whole.
  std::vector<RunEvent> feed(std::string_view bytes);
  /// The same for a reader that passes the lines on as they are.
  std::vector<ReceivedEvent> feed_lines(std::string_view bytes);
  /// No more bytes will come: an unfinished line is torn.
  void finish();
  /// A rank's numbering starts here instead of at 0: the channel of a rank that continues a run.
  void expect(std::int64_t rank, std::int64_t seq);
  const ReadProblems& problems() const { return problems_; }
  /// The seq that would come next, per rank.
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

/// Follows an events.jsonl: each poll answers what was appended since the last.
class EventFile {
 public:
  static Result<EventFile> open(const std::filesystem::path& file);
  EventFile(EventFile&&) noexcept;
  EventFile& operator=(EventFile&&) noexcept;
  ~EventFile();
  /// At most max_bytes at a time, so that a large file can be read in slices; an empty answer means no news.
  std::vector<RunEvent> poll(std::size_t max_bytes = 4 << 20);
  bool at_end() const { return at_end_; }
  /// Nobody will append any more: what is left is a torn line.
  void finish() { reader_.finish(); }
  const ReadProblems& problems() const { return reader_.problems(); }

 private:
  explicit EventFile(int fd) : fd_(fd) {}
  int fd_ = -1;
  bool at_end_ = false;
  EventReader reader_;
};

/// An error where lines were found and none could be read, as those of another version: the first one's reason.
Result<void> check_readable(const ReadProblems& problems, bool read_any, const std::filesystem::path& file);

/// A whole file at once; the torn last line, if any, is in the problems.
struct EventHistory {
  std::vector<RunEvent> events;
  ReadProblems problems;
};
/// Errors: the file cannot be opened, or nothing in it can be read.
Result<EventHistory> read_events(const std::filesystem::path& file);

}  // namespace accrue

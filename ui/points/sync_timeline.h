// SPDX-License-Identifier: GPL-3.0-or-later
// SyncTimeline: operations of each rank over time, from its own reports: spans of forward, backward and optimizer
// steps, and communication with its axis and bytes. Times are seconds from the run's origin; time between spans is
// waiting.
#pragma once

#include <QString>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "accrue/run/cost/rank_grid.h"
#include "accrue/run/events/run_event.h"
#include "lane.h"

namespace accrue::ui {

/// Totals of a rank's communication.
struct SyncCounts {
  std::int64_t collectives = 0;
  std::int64_t messages = 0;  ///< sent
  std::int64_t bytes = 0;
  std::int64_t reductions = 0;          ///< of gradients, over data
  std::int64_t reducedBytes = 0;        ///< their payload
  std::int64_t reducingMicroSteps = 0;  ///< in which it reduced gradients over data
  std::int64_t newestReducing = 0;      ///< the newest of them
};

/// Thread: GUI.
class SyncTimeline {
 public:
  void take(std::int64_t rank, const accrue::Operations& body);
  void take(std::int64_t rank, const accrue::Sync& body);
  /// Marks the run as paused at a time that includes the offset.
  void pauseAt(double seconds);
  void clear();
  /// Drops everything after a micro-step from which the run was resumed. Where spans are gone, the counts become those
  /// of an average over as many micro-steps.
  void rewind(std::int64_t microStep);
  /// Seconds to add to the ranks' times: the duration of a resumed run before its resume.
  void setTimeOffset(double seconds) { offset_ = seconds; }
  /// Sets which ranks take part in a collective together. Without it no rank is known to wait for another.
  void setGrid(const accrue::RankGrid& grid) { grid_ = grid; }

  bool empty() const { return lanes_.empty(); }
  const std::map<std::int64_t, Lane>& lanes() const { return lanes_; }
  const std::vector<QString>& axes() const { return axes_; }
  /// Indices into axes() in display order: data, tensor, pipeline, then the combined ones.
  std::vector<std::uint8_t> shownAxes() const;
  const std::vector<QString>& ops() const { return ops_; }

  double begin() const;
  double end() const;
  /// Calls of a group, once per rank.
  std::int64_t collectives() const { return total(&SyncCounts::collectives); }
  /// Messages between ranks, each once.
  std::int64_t messages() const { return total(&SyncCounts::messages); }
  /// Payload over all ranks: of collectives, and of both sides of messages.
  std::int64_t bytes() const { return total(&SyncCounts::bytes); }
  /// Largest payload so far of calls that train weights.
  std::int64_t largestBytes() const { return largestBytes_; }
  /// Micro-steps of a rank in which gradients were reduced over data.
  std::int64_t reducingMicroSteps() const;
  /// Reductions of gradients over data by the first rank, so that a call of several ranks counts once.
  std::int64_t reductions() const;
  /// Whether the record states purposes of calls. If not, the sums of exactness checks count as reductions.
  bool saysPurposes() const { return says_purposes_; }
  /// Collectives that reduce no gradients, once per rank.
  std::int64_t otherCollectives() const { return collectives() - total(&SyncCounts::reductions); }
  /// Whether anything was sent that trains no weights.
  bool sendsAside() const { return sends_aside_; }
  /// Their payload over all ranks.
  std::int64_t reducedBytes() const { return total(&SyncCounts::reducedBytes); }
  /// Returns that payload for reductions in `microSteps` micro-steps.
  std::int64_t bytesIfReduced(std::int64_t microSteps) const;

 private:
  /// Micro-step, first rank of the group, axis, op, and index among these calls.
  using Call = std::tuple<std::int64_t, std::int64_t, std::uint8_t, std::uint8_t, std::int64_t>;
  /// The ranks' spans of a call that others of the group have not yet reported.
  using Begun = std::vector<std::pair<std::int64_t, SyncSpan>>;

  accrue::RankList groupOf(std::int64_t rank, const SyncSpan& span) const;
  bool isMessage(const SyncSpan& span) const;
  void join(std::int64_t rank, const accrue::RankList& group, const SyncSpan& span);
  double seconds(std::int64_t ns) const { return static_cast<double>(ns) * 1e-9 + offset_; }
  void count(SyncCounts& counts, const SyncSpan& span);
  std::int64_t total(std::int64_t SyncCounts::*count) const;
  std::uint8_t nameIndex(std::vector<QString>& names, const std::string& name);

  std::map<std::int64_t, Lane> lanes_;
  std::vector<QString> axes_;
  std::vector<QString> ops_;
  accrue::RankGrid grid_;
  std::map<Call, Begun> open_;
  /// Calls so far in a rank's newest micro-step, by rank, axis and op.
  std::map<std::tuple<std::int64_t, std::uint8_t, std::uint8_t>, std::pair<std::int64_t, std::int64_t>> calls_;
  std::map<std::int64_t, SyncCounts> counts_;  // by rank
  std::map<std::int64_t, SyncCounts> past_;    // the part of spans that are gone
  double offset_ = 0.0;
  std::int64_t largestBytes_ = 0;
  bool says_purposes_ = true;
  bool sends_aside_ = false;
};

}  // namespace accrue::ui

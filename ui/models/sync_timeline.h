// SPDX-License-Identifier: GPL-3.0-or-later
// SyncTimeline: what each rank did when, from its own reports: forward and backward blocks, collectives with their
// bytes, optimizer steps. Times are seconds from the run's origin; whatever lies between blocks is waiting.
#pragma once

#include <QString>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "accrue/run/run_event.h"

namespace accrue::ui {

struct MicroSpan {
  double begin = 0.0;
  float forward = 0.0F;   ///< seconds
  float backward = 0.0F;  ///< seconds
  std::int64_t microStep = 0;
  double forwardEnd() const { return begin + static_cast<double>(forward); }
  double end() const { return forwardEnd() + static_cast<double>(backward); }
};

struct SyncSpan {
  double begin = 0.0;
  double end = 0.0;
  std::int64_t update = 0;
  std::int64_t microStep = 0;
  std::int64_t bytes = 0;
  std::uint8_t axis = 0;  ///< index into SyncTimeline::axes()
  std::uint8_t op = 0;    ///< index into SyncTimeline::ops()
};

struct StepSpan {
  double begin = 0.0;
  double end = 0.0;
  std::int64_t update = 0;
  std::int64_t microStep = 0;
};

/// How time on a lane was spent, in seconds.
struct LaneShare {
  double forward = 0.0;
  double backward = 0.0;
  double collective = 0.0;
  double step = 0.0;
};

/// One rank's spans, each kind ordered by begin.
class Lane {
 public:
  std::vector<MicroSpan> micro;
  std::vector<SyncSpan> sync;
  std::vector<StepSpan> step;

  double begin() const;
  double end() const;
  /// Time spent per kind before a moment, by prefix sums: O(log n) however much lies before it. The difference of two
  /// moments is the share of what lies between.
  LaneShare spent(double time) const;
  /// Largest payload of a collective that begins in [from, to).
  std::int64_t largestBytes(double from, double to) const;

  void pushMicro(const MicroSpan& span);
  void pushSync(const SyncSpan& span);
  void pushStep(const StepSpan& span);
  /// Keeps what belongs to micro-steps up to this one.
  void truncate(std::int64_t microStep);

 private:
  std::vector<double> forwardBefore_;  // prefix sums, one entry a span
  std::vector<double> backwardBefore_;
  std::vector<double> syncBefore_;
  std::vector<double> stepBefore_;
};

/// Thread: GUI.
class SyncTimeline {
 public:
  void take(std::int64_t rank, const accrue::MicroSteps& body);
  void take(std::int64_t rank, const accrue::Sync& body);
  void take(std::int64_t rank, std::int64_t timeNs, const accrue::Update& body);
  void clear();
  /// Forgets what followed a micro-step: the run was resumed there.
  void rewind(std::int64_t microStep);
  /// Seconds to add to the ranks' times: what a resumed run had behind it.
  void setTimeOffset(double seconds) { offset_ = seconds; }

  bool empty() const { return lanes_.empty(); }
  const std::map<std::int64_t, Lane>& lanes() const { return lanes_; }
  const std::vector<QString>& axes() const { return axes_; }
  const std::vector<QString>& ops() const { return ops_; }

  double begin() const;
  double end() const;
  std::int64_t collectives() const { return collectives_; }
  /// Payload over all ranks and collectives.
  std::int64_t bytes() const { return bytes_; }
  std::int64_t largestBytes() const { return largestBytes_; }

 private:
  double seconds(std::int64_t ns) const { return static_cast<double>(ns) * 1e-9 + offset_; }
  std::uint8_t nameIndex(std::vector<QString>& names, const std::string& name);

  std::map<std::int64_t, Lane> lanes_;
  std::vector<QString> axes_;
  std::vector<QString> ops_;
  double offset_ = 0.0;
  std::int64_t collectives_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t largestBytes_ = 0;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// What the pipeline view shows: a window of a run as its stages measured it, and the schedule that is planned for the
// edited spec, worked out in the background.
#pragma once

#include <QObject>
#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/pipeline_timeline.h"
#include "kit/job_runner.h"

namespace accrue::ui {

class RunSeries;

/// One window of one pipeline of a run: the ranks of a replica that have the same tensor coordinate.
struct MeasuredPipeline {
  std::int64_t update = 0;  ///< that the window ends in
  std::int64_t micro_steps = 0;
  PipelineTimeline timeline;                                  ///< seconds from the window's first operation
  std::vector<std::vector<std::pair<double, double>>> steps;  ///< optimizer steps by stage, begin and end
  bool whole = false;                                         ///< every operation of the window was reported

  /// With the optimizer's steps.
  double end() const;
  /// What a micro-step would take on each of so many equal stages, on average over what was measured.
  PipelinePace pace(std::int64_t stages) const;
};

/// Empty where nothing of the window was reported.
std::optional<MeasuredPipeline> measuredPipeline(const RunSeries& run, std::int64_t update, std::int64_t replica,
                                                 std::int64_t tensor);
/// The newest window that all stages have reported; empty before the first. Reports of different ranks arrive one after
/// another, so it may be some windows old.
std::optional<MeasuredPipeline> newestPipeline(const RunSeries& run, std::int64_t replica, std::int64_t tensor);

/// A schedule with its times, or why there is none.
struct PlannedPipeline {
  PipelineShape shape;
  PipelinePace pace;
  PipelineTimeline timeline;
  QString problem;
};

/// Thread: GUI; schedules are worked out on a JobRunner.
class PipelinePlanner : public QObject {
  Q_OBJECT

 public:
  /// More blocks than this are not drawn: no screen could show them.
  static constexpr std::int64_t most_blocks = 100'000;

  using QObject::QObject;

  /// finished() follows, unless this is what was planned last. While a schedule is worked out, only the newest of the
  /// later wishes is kept.
  void plan(const PipelineShape& shape, const PipelinePace& pace);
  const PlannedPipeline& result() const { return result_; }
  /// Whether the result is what was asked for last.
  bool isCurrent() const { return planned_ == wanted_; }

 Q_SIGNALS:
  void finished();

 private:
  struct Wish {
    PipelineShape shape;
    PipelinePace pace;
    bool operator==(const Wish&) const = default;
  };
  void start();

  std::optional<Wish> wanted_;
  std::optional<Wish> planned_;
  PlannedPipeline result_;
  bool working_ = false;
  JobRunner jobs_;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// Data of the pipeline view: a window of a run as its stages measured it, and the planned schedule of the edited spec,
// computed in the background.
#pragma once

#include <QObject>
#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/window/pipeline_timeline.h"
#include "kit/job_runner.h"

namespace accrue::ui {

class RunSeries;

/// One window of one pipeline of a run: the ranks of a replica with the same tensor coordinate.
struct MeasuredPipeline {
  std::int64_t update = 0;  ///< in which the window ends
  std::int64_t micro_steps = 0;
  PipelineTimeline timeline;                                  ///< seconds from the window's first operation
  std::vector<std::vector<std::pair<double, double>>> steps;  ///< begin and end of the optimizer steps, by stage
  bool whole = false;                                         ///< every operation of the window was reported

  /// Including the optimizer's steps.
  double end() const;
  /// Average measured time of a micro-step on each of `stages` equal stages.
  PipelinePace pace(std::int64_t stages) const;
};

/// Empty if nothing of the window was reported.
std::optional<MeasuredPipeline> measuredPipeline(const RunSeries& run, std::int64_t update, std::int64_t replica,
                                                 std::int64_t tensor);
/// Returns the newest window that all stages have reported; empty before the first. Reports of different ranks arrive
/// one after another, so it may be some windows old.
std::optional<MeasuredPipeline> newestPipeline(const RunSeries& run, std::int64_t replica, std::int64_t tensor);

/// A schedule with its times, or the reason why there is none.
struct PlannedPipeline {
  PipelineShape shape;
  PipelinePace pace;
  PipelineTimeline timeline;
  QString problem;
};

/// Thread: GUI; schedules are computed on a JobRunner.
class PipelinePlanner : public QObject {
  Q_OBJECT

 public:
  /// Maximum number of drawn blocks; no screen could show more.
  static constexpr std::int64_t most_blocks = 100'000;

  using QObject::QObject;

  /// Plans a schedule; finished() follows, unless it was planned last. During a computation only the newest later
  /// request is kept.
  void plan(const PipelineShape& shape, const PipelinePace& pace);
  const PlannedPipeline& result() const { return result_; }
  /// Whether the result is that of the last request.
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

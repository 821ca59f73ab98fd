// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDockWidget>
#include <QElapsedTimer>
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <chrono>
#include <optional>
#include <vector>

#include "pipeline_lanes.h"
#include "pipeline_view.h"

class QCheckBox;
class QHBoxLayout;
class QLabel;
class QSpinBox;
class QVBoxLayout;

namespace accrue {
struct SpecField;
}

namespace accrue::ui {

struct DockPanel;
class FieldEditor;
class PlotHeader;
class PreflightRunner;
class RunSeries;
class SpecDocument;

/// The pipeline dock: the schedule of the edited spec's window, with the fields that shape it, and under it a measured
/// window of the selected run on the same scale. If there is a measured window, the plan is drawn at its pace.
class PipelinePanel : public QWidget {
  Q_OBJECT

 public:
  PipelinePanel(SpecDocument* document, PreflightRunner* preflight, QWidget* parent = nullptr);
  DockPanel dock();
  void setRun(const RunSeries* run);
  /// Call at most once per frame.
  void refresh();
  void setEditable(bool editable);
  /// The fields that shape the schedule, for the dock's title bar.
  QWidget* titleControl() const { return controls_; }
  PipelineView* planned() const { return planned_; }
  PipelineView* measured() const { return measured_; }
  const PipelinePlanner& planner() const { return planner_; }
  /// Minimum interval between two shown windows while a run trains.
  static constexpr std::chrono::milliseconds window_interval{250};

 protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  QHBoxLayout* buildMeasuredRow();
  void connectSignals();
  void addField(QHBoxLayout* row, const char* key, const QString& name);
  QSpinBox* addChooser(QHBoxLayout* row, const char* object_name, const QString& name);
  void showFields();
  void plan();
  void showPlan();
  void takeWindow();
  void showWindow();
  void showRange();
  void setRange(double from, double to);
  void light(const std::optional<PipelineSpot>& spot);
  void showHeaders();
  QString textOf(const PipelineView& view, const PipelineSpot& spot) const;
  /// End of the time that both halves show.
  double wholeEnd() const;
  /// Gives lanes the same height in both halves; the ticks below one half take no height from its lanes.
  void shareHeight();
  void followDock(QDockWidget* dock);
  /// Gives the dock the height that both halves need, once for each number of lanes, while the panel is in sight.
  void askForRoom();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  bool editable_ = true;
  QPointer<const RunSeries> run_;
  PipelinePlanner planner_;
  std::optional<MeasuredPipeline> window_;
  QWidget* controls_;
  std::vector<std::pair<const SpecField*, FieldEditor*>> fields_;
  QSpinBox* update_;
  QCheckBox* newest_;
  QSpinBox* replica_;
  QSpinBox* tensor_;
  PlotHeader* planned_header_;
  PipelineView* planned_;
  QLabel* problem_;
  PlotHeader* measured_header_;
  PipelineView* measured_;
  QVBoxLayout* halves_;
  QPointer<QDockWidget> dock_;
  int asked_height_ = 0;  ///< the height requested last
  QTimer later_;
  QElapsedTimer since_window_;
  std::uint64_t seen_revision_ = 0;
  bool fitted_ = true;
};

}  // namespace accrue::ui

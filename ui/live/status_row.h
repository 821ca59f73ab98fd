// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QWidget>

#include "accrue/run/events/run_state.h"

class QLabel;

namespace accrue::ui {

class ElidedLabel;
class RankTracker;
class RunSeries;
class RunTag;
class StateChip;

/// Host of the shown run: this window, another process that takes commands from it, one that it can only watch, or none
/// that is followed (a run that was only opened).
enum class RunHost { here, attached, viewed, unfollowed };

/// The bottom line: the state as a sentence, the run's progress, and its cost. Numbers that do not fit beside the
/// sentence are dropped, the least important first.
class StatusRow : public QWidget {
  Q_OBJECT

 public:
  explicit StatusRow(QWidget* parent = nullptr);

  /// Without a run the row is about the set-up; `obstacle`: why it cannot run, empty if it can.
  void refresh(const RunSeries* run, RunState state, RunHost host, const QString& backend,
               const QString& obstacle = {});
  /// Shows the run that trains while another one has the focus; nullptr: none.
  void showOther(const RunSeries* run);
  /// Counts a drawn frame.
  void countFrame();
  QString sentence() const;
  QString word() const;
  /// Label of the narrator; empty and hidden until it speaks.
  ElidedLabel* narration() const { return narration_; }
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  QLabel* addNumber(const QString& object_name, const QString& sample, const QString& help);
  void showNumbers(const RunSeries& run, const QString& backend);
  /// Shows the numbers that have a text and fit.
  void fitNumbers();

  StateChip* chip_;
  RunTag* tag_;
  QLabel* chain_;
  ElidedLabel* sentence_;
  ElidedLabel* narration_;
  QLabel* other_;
  QLabel* progress_;
  QLabel* speed_;
  QLabel* ranks_;
  QLabel* memory_;
  QLabel* frames_;
  double done_ = -1.0;
  RunState state_ = RunState::idle;
  QElapsedTimer frame_clock_;
  int frame_count_ = 0;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>
#include <optional>

#include "accrue/run/preflight.h"
#include "series/plan_outline.h"

class QLabel;
class QPushButton;

namespace accrue::ui {

class WindowPreview;

/// The plan's arithmetic and its first windows, always visible and up to date, or the first reason why there is no
/// plan.
class ArithmeticPanel : public QWidget {
  Q_OBJECT

 public:
  explicit ArithmeticPanel(QWidget* parent = nullptr);

  /// `sketch`: of the result's plan, if it has one.
  void showResult(const Preflight& result, const std::optional<PlanSketch>& sketch);
  /// The result shown belongs to an older document; the next is being worked out.
  void setChecking(bool checking);
  /// Fields without a valid value: while there are any, no plan is shown, because none belongs to the form's text.
  void setRejectedFields(const QStringList& keys);
  /// Whether the result has errors that another choice of plug-in libraries can mend.
  void setLibrariesAtFault(bool at_fault);
  /// "2 edits since the last run", or where that ran another spec that this one has not been run yet; 0 or nothing
  /// hides it.
  void setEditsNotRun(std::optional<int> edits, bool last_ran_another);
  QString text() const;
  /// What keeps the spec from running; empty if nothing does, or that is not known yet.
  QString obstacle() const;

 Q_SIGNALS:
  /// The user asks for the field of the first error.
  void fieldRequested(const QString& key);
  void librariesWanted();

 private:
  void showWhatHolds();
  void showPlan(const RunPlan& plan, const PlanSketch& sketch);
  void showError(const std::vector<Finding>& findings);
  void showWarnings(const std::vector<Finding>& findings);
  void showRejected();

  QLabel* line_;
  QLabel* checking_;
  QLabel* warnings_;
  QLabel* details_;
  QLabel* edits_;
  QPushButton* show_field_;
  QPushButton* choose_libraries_;
  WindowPreview* preview_;
  QString key_;
  std::optional<Preflight> result_;
  std::optional<PlanSketch> sketch_;
  QStringList rejected_;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>
#include <optional>

#include "accrue/run/preflight/preflight.h"
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

  /// `sketch`: that of the result's plan, if any.
  void showResult(const Preflight& result, const std::optional<PlanSketch>& sketch);
  /// The shown result belongs to an older document, and the next is being computed.
  void setChecking(bool checking);
  /// Sets the fields without a valid value. While there are any, no plan is shown, because none matches the form's
  /// text.
  void setRejectedFields(const QStringList& keys);
  /// Whether the result has errors that another choice of plug-in libraries can fix.
  void setLibrariesAtFault(bool at_fault);
  /// Shows "2 edits since the last run", or that this spec was not run yet because the last run had another; 0 or
  /// nothing hides it.
  void setEditsNotRun(std::optional<int> edits, bool last_ran_another);
  QString text() const;
  /// Reason why the spec cannot run; empty if there is none or it is not yet known.
  QString obstacle() const;

 Q_SIGNALS:
  /// Requests the field of the first error.
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

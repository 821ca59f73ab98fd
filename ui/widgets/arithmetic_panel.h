// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <optional>

#include "accrue/run/preflight.h"

class QLabel;
class QPushButton;

namespace accrue::ui {

class WindowPreview;

/// What the spec amounts to, always visible and always true: the plan's arithmetic and its first windows, or, where
/// there is no plan, the first reason why not.
class ArithmeticPanel : public QWidget {
  Q_OBJECT

 public:
  explicit ArithmeticPanel(QWidget* parent = nullptr);

  void showResult(const Preflight& result);
  /// "2 edits not run"; 0 or nothing hides it.
  void setEditsNotRun(std::optional<int> edits);
  QString text() const;

 Q_SIGNALS:
  /// The user asks for the field of the first error.
  void fieldRequested(const QString& key);

 private:
  void showPlan(const RunPlan& plan);
  void showError(const std::vector<Finding>& findings);

  QLabel* line_;
  QLabel* details_;
  QLabel* edits_;
  QPushButton* show_field_;
  WindowPreview* preview_;
  QString key_;
};

}  // namespace accrue::ui

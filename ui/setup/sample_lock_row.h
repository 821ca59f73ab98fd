// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

class QComboBox;
class QLabel;
class QPushButton;

namespace accrue::ui {

class PreflightRunner;
class SpecDocument;

/// "Keep": the number that stays the same while N, the micro-batch or the ranks are edited. If integers cannot keep it,
/// it says so and offers the nearest ones.
class SampleLockRow : public QWidget {
  Q_OBJECT

 public:
  SampleLockRow(SpecDocument* document, PreflightRunner* preflight, QWidget* parent = nullptr);
  QComboBox* choice() const { return choice_; }
  /// Text under the choice; empty while the samples are kept.
  QString note() const;
  /// A factor has no valid value, so text about the last valid one is hidden.
  void setRejected(bool rejected);

 private:
  void refresh();
  void showBreach();
  void showNote(const QString& text, const std::vector<std::int64_t>& nearest);
  /// Field of the Megatron-LM plug-in that sets one of the factors; empty if none does.
  QString setter() const;

  SpecDocument* document_;
  PreflightRunner* preflight_;
  bool rejected_ = false;
  QComboBox* choice_;
  QLabel* note_;
  QPushButton* offers_[2];
};

}  // namespace accrue::ui

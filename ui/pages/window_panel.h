// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <cstdint>
#include <map>

class QGridLayout;
class QLabel;

namespace accrue::ui {

class RankBars;
class RunControl;
struct RankStatus;

/// The window dock: how far each rank is in the open window, what it has counted, what the last reduction moved.
class WindowPanel : public QWidget {
  Q_OBJECT

 public:
  explicit WindowPanel(RunControl* control, QWidget* parent = nullptr);
  /// Once per frame at most.
  void refresh();

 private:
  QLabel* addRow(QGridLayout* grid, const QString& name, const QString& object_name, const QString& help);
  QString tokensText(const std::map<std::int64_t, RankStatus>& ranks) const;

  RunControl* control_;
  QLabel* title_;
  RankBars* bars_;
  QWidget* facts_;
  QLabel* empty_;
  QLabel* tokens_;
  QLabel* sync_;
  QLabel* norm_;
  QLabel* next_;
};

}  // namespace accrue::ui

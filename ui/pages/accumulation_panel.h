// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>
#include <chrono>
#include <cstdint>
#include <map>

class QGridLayout;
class QLabel;

namespace accrue::ui {

class ExactnessLamp;
class GradientPool;
class RunControl;
struct RankStatus;

/// The window dock: what the gradients of each rank hold of the open window, how the last one ended, what the last
/// reduction moved.
class AccumulationPanel : public QWidget {
  Q_OBJECT

 public:
  explicit AccumulationPanel(RunControl* control, QWidget* parent = nullptr);
  /// Once per frame at most.
  void refresh();
  /// The pools in words: what they hold, how the last window ended, what was carried.
  QString text() const;
  /// Between two looks at pools that fill: pictures that move faster explain nothing.
  static constexpr std::chrono::milliseconds pool_interval{66};
  /// How long tanks stand level before they drain, so that the reduction is seen where one steps through a window.
  static constexpr std::chrono::milliseconds level_time{350};

 private:
  void showPools();
  void showLamp(const ExactnessLamp& lamp);
  /// Whether the tanks are to be shown level although they have drained since.
  bool levelsFirst();
  QString stateText() const;
  QLabel* addRow(QGridLayout* grid, const QString& name, const QString& object_name, const QString& help);
  QString tokensText(const std::map<std::int64_t, RankStatus>& ranks) const;

  RunControl* control_;
  QLabel* title_;
  GradientPool* pool_;
  QLabel* said_;
  QWidget* facts_;
  QLabel* empty_;
  QLabel* tokens_;
  QLabel* sync_;
  QLabel* norm_;
  QLabel* lamp_;
  QLabel* next_;
  QElapsedTimer since_pools_;
  QTimer later_;
  QElapsedTimer since_level_;
  std::int64_t level_window_ = 0;  ///< of which the tanks were shown level last
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

class QComboBox;
class QLabel;
class QSlider;
class QToolBar;

namespace accrue::ui {

class Actions;
class PlotArea;

/// Controls of the plots in the tool bar and the Plot menu: clock, smoothing, log y, fit, follow. Mirrors changes by
/// the plots' own keys.
class PlotBar : public QObject {
  Q_OBJECT

 public:
  PlotBar(const Actions& actions, PlotArea* plots, QToolBar* bar, QObject* parent = nullptr);

 private:
  void addControls(QToolBar* bar);
  void connectSignals();
  void showClock();
  void showSmoothing();

  const Actions& actions_;
  PlotArea* plots_;
  QComboBox* clock_;
  QSlider* smoothing_;
  QLabel* weight_;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QStackedWidget;

namespace accrue::ui {

class MessageBar;
class PlotArea;
class StartPage;

/// The centre of the window: messages on top, then the start page or the plots.
class CentrePage : public QWidget {
  Q_OBJECT

 public:
  explicit CentrePage(QWidget* parent = nullptr);

  MessageBar* messages() const { return messages_; }
  StartPage* start() const { return start_; }
  PlotArea* plots() const { return plots_; }
  void showStart();
  void showPlots();
  /// Shows the start page, or the plots if the start page is shown.
  void toggleStart();
  bool isStartShown() const;
  /// Gives the keyboard to what is shown.
  void focusShown();
  /// Text in place of the plots while no run is shown: no run exists, or all are hidden.
  void showEmptyText(bool any_runs);

 private:
  void showPage(QWidget* page);

  MessageBar* messages_;
  QStackedWidget* stack_;
  StartPage* start_;
  QWidget* studio_;
  PlotArea* plots_;
};

}  // namespace accrue::ui

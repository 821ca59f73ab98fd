// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <utility>

namespace accrue::ui {

class CompareSheet;
class MessageBar;
class PlotArea;
class RunLibrary;
class RunSeries;
class RunsPanel;
class Actions;

/// Comparison of two runs: the focused run with the baseline, or else with the other selected or shown one. Marks the
/// point in the plots where their losses part, goes there, and opens the sheet of both.
class PairGuide : public QObject {
  Q_OBJECT

 public:
  PairGuide(const Actions& actions, RunsPanel* runs, RunLibrary* library, PlotArea* plots, MessageBar* bar,
            QWidget* window);

  void showSheet();

 private:
  using Pair = std::pair<RunSeries*, RunSeries*>;
  /// Both nullptr if there are not two runs to compare.
  Pair pair() const;
  void showMark();
  void goToParting();
  /// Shows a message until other runs are shown, focused or compared.
  void say(const QString& text);
  /// Explains how to choose two runs.
  void askForTwo();

  const Actions& actions_;
  RunsPanel* runs_;
  RunLibrary* library_;
  PlotArea* plots_;
  MessageBar* bar_;
  QWidget* window_;
  CompareSheet* sheet_ = nullptr;
  QTimer follow_;  ///< runs while a run of the pair trains
};

}  // namespace accrue::ui

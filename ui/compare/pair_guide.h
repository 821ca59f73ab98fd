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

/// Compares two runs: the baseline, or else the other one that is chosen or shown, with the focused run. Marks in the
/// plots where their losses part, goes there, and opens the sheet of both.
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
  /// Until other runs are shown, focused or compared with.
  void say(const QString& text);
  /// Without two runs: how to choose them.
  void askForTwo();

  const Actions& actions_;
  RunsPanel* runs_;
  RunLibrary* library_;
  PlotArea* plots_;
  MessageBar* bar_;
  QWidget* window_;
  CompareSheet* sheet_ = nullptr;
  QTimer follow_;  ///< while a run of the pair trains
};

}  // namespace accrue::ui

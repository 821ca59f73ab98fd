// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QMainWindow>

#include "kit/actions.h"

class QSettings;
class QToolBar;

namespace accrue::ui {

class AccumulationPanel;
class CentrePage;
class CloseGuard;
class CompanionRun;
class Dialogs;
class Docks;
class Documents;
class DraftKeeper;
class EventsPanel;
class FrameClock;
class LessonDesk;
class LessonPlayer;
class PlotArea;
class PreflightRunner;
class RunControl;
class RunLibrary;
class RunQueue;
class RunSeries;
class RunsPanel;
class SetupPanel;
class SpecDocument;
class StatusRow;
class Theme;
class TrainingCommands;
class ViewCommands;
class SpecFiles;

/// The parts that the window uses; all outlive it.
struct StudioParts {
  SpecDocument* document = nullptr;
  PreflightRunner* preflight = nullptr;
  RunLibrary* library = nullptr;
  RunControl* control = nullptr;
  Dialogs* dialogs = nullptr;
  QSettings* settings = nullptr;  ///< layout, recent files, remembered answers
  Theme* theme = nullptr;
  bool offer_drafts = true;  ///< a user is there to answer
};

/// The window. It makes the features of the studio and arranges what they bring: panels in docks, and commands, which
/// they connect themselves. It holds no run logic (RunControl) and no document logic (SpecDocument, SpecFiles).
class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  /// The window can have this size with any text, and never needs more than the screen.
  static constexpr QSize smallest{640, 400};

  explicit MainWindow(const StudioParts& parts);
  ~MainWindow() override;

  const Actions& actions() const { return actions_; }
  PlotArea* plots() const;
  SpecFiles* files() const { return files_; }
  CloseGuard* closeGuard() const { return close_guard_; }
  /// Opens a spec or a run folder.
  void openPath(const QString& path);
  /// Opens the demo and trains it at once.
  void runDemo();
  /// Draws pending changes and returns the window as an image.
  QImage picture();
  RunSeries* focusedRun() const;
  /// Writes the draft of unsaved edits now.
  void keepEdits();
  /// Closes as at a log-out: no question is asked; hosted runs are saved and end.
  void endSession();

 Q_SIGNALS:
  /// The window has accepted to close.
  void closed();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  /// A widget that is disabled hands its focus to the centre: the next one may take typed letters for a choice.
  bool focusNextPrevChild(bool next) override;

 private:
  void addPanels();
  void addBars();
  void addRuns();
  void addDocuments();
  void addComparisons();
  void addExchange();
  void restoreLayout();
  void showTitle();
  void drawFrame();

  StudioParts parts_;
  Actions actions_;
  FrameClock* frames_;
  CentrePage* centre_;
  Docks* docks_;
  SetupPanel* setup_;
  AccumulationPanel* accumulation_;
  RunsPanel* runs_;
  EventsPanel* events_;
  LessonPlayer* lesson_player_;
  LessonDesk* lessons_ = nullptr;
  StatusRow* status_;
  SpecFiles* files_;
  RunQueue* queue_;
  CompanionRun* companion_;
  CloseGuard* close_guard_;
  DraftKeeper* drafts_;
  QToolBar* run_bar_ = nullptr;
  TrainingCommands* training_ = nullptr;
  ViewCommands* view_ = nullptr;
  Documents* documents_ = nullptr;
  bool shown_before_ = false;
};

}  // namespace accrue::ui

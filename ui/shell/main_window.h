// SPDX-License-Identifier: GPL-3.0-or-later
// MainWindow: puts the panels together and connects them. It holds no run logic (RunControl) and no document logic
// (SpecDocument, WindowFiles).
#pragma once

#include <QImage>
#include <QMainWindow>
#include <QTimer>

#include "accrue/run/run_state.h"
#include "compare/variants.h"
#include "kit/actions.h"

class QDockWidget;
class QLocale;
class QMenu;
class QSettings;
class QToolBar;

namespace accrue::ui {

class BugGalleryPanel;
class CentrePage;
class CloseGuard;
class DialectPanel;
class Dialogs;
class DraftKeeper;
class EventsPanel;
class ExchangeJobs;
class IsoBatchPanel;
class LessonDesk;
class LessonPanel;
class PipelinePanel;
class PlannerPanel;
class PlotArea;
class PluginRack;
class PreflightRunner;
class DataPanel;
class InspectorPanel;
class RankGridPanel;
class RunControl;
class RunLibrary;
class RunMessages;
class RunOverlay;
class RunQueue;
class RunSeries;
class RunsPanel;
class RunTag;
class SetupPanel;
class DifferencesSheet;
class GlossarySheet;
class ManualSheet;
class ViewSize;
class ShortcutSheet;
class SpecDocument;
class StatusRow;
class Theme;
class WindowFiles;
class AccumulationPanel;
enum class WindowLayout;

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

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  static constexpr int layout_version = 4;
  /// The window can have this size with any text, and never needs more than the screen.
  static constexpr QSize smallest{640, 400};

  explicit MainWindow(const StudioParts& parts);
  ~MainWindow() override;

  const WindowActions& actions() const { return actions_; }
  PlotArea* plots() const;
  WindowFiles* files() const { return files_; }
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
  /// Closes as at a log-out: nobody answers a question, so hosted runs are saved and end.
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
  QDockWidget* addPanel(const QString& name, const QString& title, QWidget* panel, Qt::DockWidgetArea area);
  void buildPanels();
  void buildExchange();
  void buildLessons();
  void tabifyDocks();
  void buildBars();
  void buildNarrator();
  void connectDocument();
  void connectRuns();
  void connectRunActions();
  void connectDialects();
  void connectViewActions();
  void connectFiles();
  void restoreLayout();
  void saveLayout();
  void resetLayout();
  void showLayout(WindowLayout layout);
  void placeDocks();
  void cyclePanes(int direction);
  void focusPane(int pane);
  int focusedPane() const;

  void run();
  void step(void (RunControl::*unit)());
  /// False, with a message, if a field of the form has no valid value.
  bool formHolds();
  void tick();
  void showTitle();
  void showState();
  void showContinuations();
  void showEditsWaiting();
  void showRuns();
  void showDocumentOpened();
  void sayWhatIsDrawn();
  void offerDraft();
  void openRunFolder(const RunSeries* run);
  void copyCommand();
  void copyReport();
  void showDialects();
  void showIsoBatch();
  void showComparison();
  void showAbout();
  void showShortcuts();
  void showDifferences();
  void explainFocus();
  void showManual();
  void showGlossary(const QString& about, const QString& help);

  StudioParts parts_;
  WindowActions actions_;
  CentrePage* centre_;
  SetupPanel* setup_;
  PluginRack* rack_;
  AccumulationPanel* accumulation_panel_;
  RankGridPanel* rank_panel_;
  DataPanel* data_panel_;
  RunsPanel* runs_;
  EventsPanel* events_;
  InspectorPanel* inspector_;
  PipelinePanel* pipeline_;
  PlannerPanel* planner_;
  StatusRow* status_;
  WindowFiles* files_;
  RunMessages* messages_;
  RunOverlay* overlay_;
  CloseGuard* close_guard_;
  ExchangeJobs* exchange_jobs_;
  DraftKeeper* drafts_;
  DialectPlans* dialects_;
  RunQueue* queue_;
  ComparedRuns* dialect_runs_;
  ComparedRuns* optimizer_runs_;
  IsoPlans* products_;
  ComparedRuns* product_runs_;
  IsoBatchPanel* iso_panel_ = nullptr;
  LessonPanel* lesson_panel_ = nullptr;
  LessonDesk* lesson_desk_ = nullptr;
  BugGalleryPanel* gallery_ = nullptr;
  DialectPanel* dialect_panel_ = nullptr;
  QDockWidget* setup_dock_ = nullptr;
  QDockWidget* window_dock_ = nullptr;
  QDockWidget* runs_dock_ = nullptr;
  QDockWidget* events_dock_ = nullptr;
  QDockWidget* rack_dock_ = nullptr;
  QDockWidget* ranks_dock_ = nullptr;
  QDockWidget* data_dock_ = nullptr;
  QDockWidget* pipeline_dock_ = nullptr;
  QDockWidget* inspector_dock_ = nullptr;
  QDockWidget* planner_dock_ = nullptr;
  QList<RunTag*> run_tags_;  ///< of the panels that speak of the focused run
  RunTag* rank_tag_ = nullptr;
  RunTag* inspector_tag_ = nullptr;
  QDockWidget* lesson_dock_ = nullptr;
  QDockWidget* gallery_dock_ = nullptr;
  QToolBar* run_bar_ = nullptr;
  QMenu* recent_menu_ = nullptr;
  ShortcutSheet* sheet_ = nullptr;
  DifferencesSheet* differences_ = nullptr;
  GlossarySheet* glossary_ = nullptr;
  ManualSheet* manual_ = nullptr;
  ViewSize* view_size_ = nullptr;
  QTimer frame_timer_;
  bool numbers_moved_ = true;
  bool shown_before_ = false;
  bool run_after_open_ = false;
};

}  // namespace accrue::ui

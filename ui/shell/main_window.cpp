// SPDX-License-Identifier: GPL-3.0-or-later
#include "main_window.h"

#include <QActionGroup>
#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QKeyEvent>
#include <QMenu>
#include <QMimeData>
#include <QScreen>
#include <QSettings>
#include <QStatusBar>
#include <QToolBar>
#include <QUrl>
#include <utility>

#include "centre_page.h"
#include "command_palette.h"
#include "compare/pair_guide.h"
#include "compare/paired_run.h"
#include "compare/queue_commands.h"
#include "compare/queue_list.h"
#include "dialogs.h"
#include "dock_switch.h"
#include "exchange/exchange_jobs.h"
#include "exchange/figure_export.h"
#include "kit/dock_title.h"
#include "kit/message_bar.h"
#include "kit/panel_scroll.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "layouts.h"
#include "live/accumulation_panel.h"
#include "live/close_guard.h"
#include "live/companion_run.h"
#include "live/inspector_panel.h"
#include "live/joined_spec.h"
#include "live/run_control.h"
#include "live/run_messages.h"
#include "live/run_queue.h"
#include "live/status_row.h"
#include "menus.h"
#include "parked_tabs.h"
#include "plan/library_desk.h"
#include "plan/pipeline_panel.h"
#include "plan/planner_panel.h"
#include "plan/plugin_rack.h"
#include "plan/rank_grid_panel.h"
#include "plots/plot_area.h"
#include "plots/plot_bar.h"
#include "plots/plot_menu.h"
#include "runs/events_panel.h"
#include "runs/run_commands.h"
#include "runs/run_library.h"
#include "runs/run_overlay.h"
#include "runs/run_tag.h"
#include "runs/runs_panel.h"
#include "series/event_pump.h"
#include "setup/arithmetic_panel.h"
#include "setup/data_panel.h"
#include "setup/draft_keeper.h"
#include "setup/field_form.h"
#include "setup/preflight_runner.h"
#include "setup/setup_panel.h"
#include "setup/spec_document.h"
#include "setup/spec_files.h"
#include "start_page.h"
#include "teach/bug_gallery_panel.h"
#include "teach/lesson_desk.h"
#include "teach/lesson_panel.h"
#include "teach/lesson_player.h"
#include "view_size.h"

namespace accrue::ui {

MainWindow::MainWindow(const StudioParts& parts)
    : parts_(parts),
      actions_(this),
      centre_(new CentrePage(this)),
      setup_(new SetupPanel(parts.document, parts.preflight, this)),
      rack_(new PluginRack(parts.document, parts.preflight, this)),
      accumulation_panel_(new AccumulationPanel(parts.control, this)),
      rank_panel_(new RankGridPanel(parts.preflight, parts.control, this)),
      data_panel_(new DataPanel(parts.document, parts.preflight, this)),
      runs_(new RunsPanel(parts.library, this)),
      events_(new EventsPanel(parts.library->log(), this)),
      inspector_(new InspectorPanel(parts.control, this)),
      pipeline_(new PipelinePanel(parts.document, parts.preflight, this)),
      planner_(new PlannerPanel(parts.document, parts.preflight, parts.library, this)),
      status_(new StatusRow(this)),
      files_(new WindowFiles(parts.document, parts.library, parts.dialogs, parts.settings, this)),
      messages_(new RunMessages(parts.control, parts.library, centre_->messages(), this)),
      overlay_(new RunOverlay(runs_, centre_->messages(), this)),
      close_guard_(new CloseGuard(parts.control->bridgeOptions(), parts.dialogs, parts.settings, this)),
      exchange_jobs_(new ExchangeJobs(centre_->messages(), this)),
      drafts_(new DraftKeeper(parts.document, QFileInfo(parts.settings->fileName()).absolutePath(), this)),
      dialects_(new DialectPlans(parts.document, parts.preflight, inDialects, this)),
      queue_(new RunQueue(parts.control, this)),
      dialect_runs_(runsOf(dialects_, parts.document, queue_, centre_->messages())),
      optimizer_runs_(runsOf(new OptimizerPlans(parts.document, parts.preflight, withOptimizers, this), parts.document,
                             queue_, centre_->messages())),
      products_(new IsoPlans(parts.document, parts.preflight, asProducts, this)),
      product_runs_(new ComparedRuns(parts.document, products_, {}, queue_, centre_->messages(), this)) {
  setObjectName(QStringLiteral("mainWindow"));
  setAcceptDrops(true);
  // Not that of its parts: with large text these need more than a screen has, and scroll.
  setMinimumSize(smallest);
  setCentralWidget(centre_);
  buildPanels();
  buildBars();
  connectDocument();
  connectRuns();
  connectRunActions();
  connectDialects();
  connectViewActions();
  connectFiles();
  view_size_ = new ViewSize(actions_, parts.settings, this, window_dock_);
  connect(view_size_, &ViewSize::presenting, centre_->plots(), &PlotArea::setKeyShown);
  connect(view_size_, &ViewSize::presenting, this, [this] { focusPane(0); });  // its button is no place for the focus
  buildExchange();
  restoreLayout();
  showTitle();
  showState();
  centre_->start()->setRecentFiles(files_->recentFiles());
  centre_->showStart();
  frame_timer_.setTimerType(Qt::PreciseTimer);
  frame_timer_.setInterval(EventPump::frame);
  connect(&frame_timer_, &QTimer::timeout, this, &MainWindow::tick);
  frame_timer_.start();
}

MainWindow::~MainWindow() = default;

QDockWidget* MainWindow::addPanel(const QString& name, const QString& title, QWidget* panel, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(name);
  dock->setWidget(new PanelScroll(panel));
  dock->setTitleBarWidget(new DockTitle(dock));
  addDockWidget(area, dock);
  return dock;
}

void MainWindow::buildPanels() {
  new ParkedTabs(this);
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  setCorner(Qt::BottomRightCorner, Qt::BottomDockWidgetArea);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  setup_dock_ = addPanel(QStringLiteral("setupDock"), tr("Set-up"), setup_, Qt::LeftDockWidgetArea);
  window_dock_ = addPanel(QStringLiteral("windowDock"), tr("Window"), accumulation_panel_, Qt::RightDockWidgetArea);
  runs_dock_ = addPanel(QStringLiteral("runsDock"), tr("Runs"), runs_, Qt::BottomDockWidgetArea);
  events_dock_ = addPanel(QStringLiteral("eventsDock"), tr("Events"), events_, Qt::BottomDockWidgetArea);
  rack_dock_ = addPanel(QStringLiteral("rackDock"), tr("Plug-ins"), rack_, Qt::LeftDockWidgetArea);
  ranks_dock_ = addPanel(QStringLiteral("ranksDock"), tr("Ranks"), rank_panel_, Qt::RightDockWidgetArea);
  data_dock_ = addPanel(QStringLiteral("dataDock"), tr("Data"), data_panel_, Qt::RightDockWidgetArea);
  pipeline_dock_ = addPanel(QStringLiteral("pipelineDock"), tr("Pipeline"), pipeline_, Qt::BottomDockWidgetArea);
  inspector_dock_ = addPanel(QStringLiteral("inspectorDock"), tr("Inspector"), inspector_, Qt::RightDockWidgetArea);
  planner_dock_ = addPanel(QStringLiteral("plannerDock"), tr("Planner"), planner_, Qt::LeftDockWidgetArea);
  static_cast<DockTitle*>(setup_dock_->titleBarWidget())->addControl(setup_->titleControl(), 1);
  static_cast<DockTitle*>(runs_dock_->titleBarWidget())->addControl(runs_->titleControl(), 1);
  static_cast<DockTitle*>(events_dock_->titleBarWidget())->addControl(events_->titleControl(), 1);
  static_cast<DockTitle*>(pipeline_dock_->titleBarWidget())->addControl(pipeline_->titleControl());
  for (QDockWidget* dock : {window_dock_, events_dock_}) run_tags_.append(addRunTag(dock));
  rank_tag_ = addRunTag(ranks_dock_);
  inspector_tag_ = addRunTag(inspector_dock_);
  connect(inspector_dock_, &QDockWidget::visibilityChanged, inspector_, &InspectorPanel::setShown);
  buildLessons();
  tabifyDocks();
}

void MainWindow::buildLessons() {
  auto* player = new LessonPlayer(parts_.document, parts_.control, this);
  lesson_panel_ = new LessonPanel(player, actions_, this);
  lesson_dock_ = addPanel(QStringLiteral("lessonDock"), tr("Lesson"), lesson_panel_, Qt::LeftDockWidgetArea);
  lesson_desk_ =
      new LessonDesk(player, lesson_panel_,
                     {.window = this,
                      .actions = &actions_,
                      .files = files_,
                      .messages = centre_->messages(),
                      .plots = centre_->plots(),
                      .form = setup_->form(),
                      .runs = runs_,
                      .settings = parts_.settings,
                      .is_start_shown = [this] { return centre_->isStartShown(); },
                      .show_start = [this](bool start) { start ? centre_->showStart() : centre_->showPlots(); }});
  lesson_desk_->setDock(lesson_dock_);
  gallery_ = new BugGalleryPanel(parts_.document, parts_.control, parts_.library, files_, this);
  gallery_dock_ = addPanel(QStringLiteral("galleryDock"), tr("Bug gallery"), gallery_, Qt::LeftDockWidgetArea);
  connect(gallery_, &BugGalleryPanel::chosen, this, [this] {
    lesson_desk_->leave();  // which brings back a layout from before the gallery was opened
    bringToFront(gallery_dock_);
  });
  connect(gallery_, &BugGalleryPanel::aboutToBegin, this, [this] {
    centre_->messages()->withdraw(QStringLiteral("draft"));  // as for any other document
    runs_->showOnly({});
  });
  connect(gallery_, &BugGalleryPanel::runsWanted, runs_, &RunsPanel::showOnly);
  connect(actions_.bugGallery, &QAction::triggered, this, [this] {
    // Beside a lesson neither would have room for its texts.
    if (lesson_dock_->isVisible()) tabifyDockWidget(lesson_dock_, gallery_dock_);
    bringToFront(gallery_dock_);
    gallery_->focusList();
  });
}

void MainWindow::buildBars() {
  run_bar_ = buildRunBar(this, actions_);
  addToolBar(Qt::TopToolBarArea, run_bar_);
  new PlotBar(actions_, centre_->plots(), run_bar_, this);
  new FigureExport(actions_,
                   {centre_->plots(), centre_->messages(), parts_.dialogs, parts_.settings, parts_.document,
                    parts_.library, exchange_jobs_},
                   this);
  recent_menu_ = buildMenus(this, actions_,
                            {setup_dock_, window_dock_, runs_dock_, events_dock_, rack_dock_, ranks_dock_, data_dock_,
                             pipeline_dock_, inspector_dock_, planner_dock_, lesson_dock_, gallery_dock_},
                            {run_bar_});
  new PlotMenu(actions_, centre_->plots(), findChild<QMenu*>(QStringLiteral("plotMenu")), parts_.settings, this);
  statusBar()->setSizeGripEnabled(false);
  statusBar()->setContentsMargins(0, 0, 0, 0);
  buildNarrator();
  statusBar()->addPermanentWidget(status_, 1);
  statusBar()->setObjectName(QStringLiteral("statusBar"));
}

void MainWindow::connectDocument() {
  QUndoStack* undo = parts_.document->undoStack();
  FieldForm* form = setup_->form();
  // What was typed last and is no value is no edit: taking it back leaves the edit before it.
  connect(actions_.undo, &QAction::triggered, this, [form, undo] {
    if (!form->discardRejectedText()) undo->undo();
  });
  connect(actions_.redo, &QAction::triggered, undo, &QUndoStack::redo);
  const auto enable_undo = [this, form, undo] {
    actions_.undo->setEnabled(undo->canUndo() || !form->rejectedFields().isEmpty());
  };
  connect(undo, &QUndoStack::canUndoChanged, this, enable_undo);
  connect(form, &FieldForm::rejectedFieldsChanged, this, enable_undo);
  connect(undo, &QUndoStack::canRedoChanged, actions_.redo, &QAction::setEnabled);
  enable_undo();
  actions_.redo->setEnabled(undo->canRedo());
  connect(parts_.document, &SpecDocument::modifiedChanged, this, &MainWindow::showTitle);
  connect(parts_.document, &SpecDocument::fileChanged, this, &MainWindow::showTitle);
  connect(parts_.document, &SpecDocument::changed, this, &MainWindow::showEditsWaiting);
  // A refusal was of the set-up as it stood.
  const auto withdrawRefusal = [this] { centre_->messages()->withdraw(QStringLiteral("refused")); };
  connect(parts_.document, &SpecDocument::changed, this, withdrawRefusal);
  connect(setup_->form(), &FieldForm::rejectedFieldsChanged, this, withdrawRefusal);
  const auto noteObstacle = [this] { numbers_moved_ = true; };
  connect(parts_.preflight, &PreflightRunner::finished, this, noteObstacle);
  connect(setup_->form(), &FieldForm::rejectedFieldsChanged, this, noteObstacle);
  connect(setup_->form(), &FieldForm::left, this, [this] { focusPane(0); });
  connect(setup_->form(), &FieldForm::attentionWanted, this, [this] {
    setup_dock_->show();
    setup_dock_->raise();
  });
  connect(actions_.find, &QAction::triggered, this, [this] {
    setup_dock_->show();
    setup_dock_->raise();
    setup_->focusSearch();
  });
}

void MainWindow::connectRuns() {
  connect(parts_.control, &RunControl::stateChanged, this, &MainWindow::showState);
  connect(parts_.control, &RunControl::changed, this, [this] {
    numbers_moved_ = true;
    setup_->arithmetic()->setEditsNotRun(parts_.control->editsNotRun(), parts_.control->lastRanAnother());
  });
  connect(parts_.control, &RunControl::ended, planner_, &PlannerPanel::refresh);
  connect(parts_.control, &RunControl::ended, this,
          [this] { centre_->messages()->withdraw(QStringLiteral("taken")); });  // the run that was in the way
  connect(parts_.control, &RunControl::runBegun, this, [this](RunSeries* run) {
    centre_->plots()->fit();  // a view zoomed into another run could hide the new one
    centre_->showPlots();
    overlay_->show(run);
  });
  new RunCommands(actions_, runs_, parts_.library, centre_->messages(), this);
  auto* guide = new PairGuide(actions_, runs_, parts_.library, centre_->plots(), centre_->messages(), this);
  auto* companion = new CompanionRun(parts_.control, parts_.library, this);
  close_guard_->watch({parts_.control, companion});
  auto* paired = new PairedRun(
      {parts_.control, companion, queue_, parts_.preflight, parts_.library, runs_, files_, guide, centre_->messages()},
      this);
  connect(actions_.pairedRun, &QAction::triggered, this, [this, paired] {
    if (formHolds()) paired->start();
  });
  connect(actions_.trainPair, &QAction::triggered, this, [this, paired] {
    if (formHolds()) paired->startTogether();
  });
  new JoinedSpec(parts_.control, parts_.document, files_, centre_->messages(), this);
  connect(runs_, &RunsPanel::shownRunsChanged, this, &MainWindow::showRuns);
  const RunTableModel* table = parts_.library->table();
  const auto say_whether_any = [this, table] { centre_->showEmptyText(table->rowCount() > 0); };
  connect(table, &QAbstractItemModel::rowsInserted, this, say_whether_any);
  connect(table, &QAbstractItemModel::rowsRemoved, this, say_whether_any);
  connect(table, &QAbstractItemModel::modelReset, this, say_whether_any);
  say_whether_any();
  connect(runs_, &RunsPanel::cloneRequested, this, [this](RunSeries* run) { files_->clone(*run); });
  connect(runs_, &RunsPanel::resumeRequested, this, [this](RunSeries* run) { parts_.control->resume(run->folder()); });
  connect(runs_, &RunsPanel::branchRequested, this, [this](RunSeries* run) { parts_.control->branch(run->folder()); });
  connect(runs_, &RunsPanel::attachRequested, this, [this](RunSeries* run) { parts_.control->attach(run->folder()); });
  connect(runs_, &RunsPanel::folderRequested, this, &MainWindow::openRunFolder);
  connect(runs_, &RunsPanel::lookedAt, centre_, &CentrePage::showPlots);
  connect(runs_, &RunsPanel::activated, this, [this] {
    centre_->showPlots();
    centre_->plots()->fit();
    centre_->plots()->setFocus();
  });
  connect(parts_.library, &RunLibrary::opened, this, [this](RunSeries* run) {
    centre_->showPlots();
    overlay_->show(run);
    // A fitted view grows while the run's events arrive.
    if (!parts_.control->isLive()) centre_->plots()->fit();
  });
  connect(parts_.library, &RunLibrary::loaded, this, [this] {
    numbers_moved_ = true;
    showContinuations();
  });
  connect(events_, &EventsPanel::updateRequested, this, [this](qint64 update) {
    if (centre_->plots()->clock() == Clock::update) centre_->plots()->goTo(static_cast<double>(update));
  });
  connect(messages_, &RunMessages::errorFieldRequested, setup_, &SetupPanel::focusFirstError);
  connect(messages_, &RunMessages::logRequested, this, [this] {
    events_dock_->show();
    events_dock_->raise();
  });
  connect(close_guard_, &CloseGuard::readyToClose, this, &MainWindow::close, Qt::QueuedConnection);
  connect(close_guard_, &CloseGuard::waitingFor, this, [this](const QString& sentence) {
    centre_->messages()->post({QStringLiteral("closing"), RunState::paused, sentence, {}, {}});
  });
  connect(close_guard_, &CloseGuard::stillSaving, this, [this](const QString& sentence) {
    centre_->messages()->post(
        {QStringLiteral("closing"), RunState::degraded, sentence, tr("Stop now"), [this] { close_guard_->stopNow(); }});
  });
  connect(close_guard_, &CloseGuard::stays, this, [this](const QString& why) {
    centre_->messages()->withdraw(QStringLiteral("closing"));
    if (!why.isEmpty()) centre_->messages()->post({QStringLiteral("closing"), RunState::failed, why, {}, {}});
  });
  const auto show_remembered = [this] { actions_.askOnClosing->setEnabled(close_guard_->remembersAnswer()); };
  connect(close_guard_, &CloseGuard::rememberedChanged, this, show_remembered);
  connect(actions_.askOnClosing, &QAction::triggered, close_guard_, &CloseGuard::forgetAnswer);
  show_remembered();
}

void MainWindow::connectRunActions() {
  RunControl* control = parts_.control;
  connect(actions_.run, &QAction::triggered, this, &MainWindow::run);
  connect(actions_.pause, &QAction::triggered, control, &RunControl::togglePause);
  connect(actions_.runPaused, &QAction::triggered, this, [this] {
    if (formHolds()) parts_.control->startPaused();
  });
  connect(actions_.stepPhase, &QAction::triggered, this, [this] { step(&RunControl::stepPhase); });
  connect(actions_.stepMicro, &QAction::triggered, this, [this] { step(&RunControl::stepMicro); });
  connect(actions_.stepUpdate, &QAction::triggered, control, &RunControl::stepUpdate);
  connect(actions_.stop, &QAction::triggered, control, &RunControl::stop);
  connect(actions_.kill, &QAction::triggered, control, &RunControl::kill);
  connect(actions_.checkpoint, &QAction::triggered, control, &RunControl::checkpoint);
  connect(actions_.stopUnsaved, &QAction::triggered, control, &RunControl::stopUnsaved);
  connect(actions_.setSteps, &QAction::triggered, this, [this, control] {
    if (!control->run()) return;
    if (const auto steps = parts_.dialogs->askSteps(this, std::max<std::int64_t>(control->run()->steps(), 1)))
      control->setSteps(*steps);
  });
  connect(actions_.resume, &QAction::triggered, this, [this, control] {
    if (const RunSeries* run = focusedRun()) control->resume(run->folder());
  });
  connect(actions_.branch, &QAction::triggered, this, [this, control] {
    if (const RunSeries* run = focusedRun()) control->branch(run->folder());
  });
  connect(actions_.attach, &QAction::triggered, this, [this, control] {
    if (const RunSeries* run = focusedRun()) control->attach(run->folder());
  });
  connect(parts_.library, &RunLibrary::refreshed, this, &MainWindow::showContinuations);
  connect(actions_.demo, &QAction::triggered, this, &MainWindow::runDemo);
  connect(actions_.runFolder, &QAction::triggered, this, [this] { openRunFolder(focusedRun()); });
  connect(actions_.copyCommand, &QAction::triggered, this, &MainWindow::copyCommand);
}

void MainWindow::connectDialects() {
  setup_->form()->addTitleAction(QStringLiteral("accumulation"), actions_.compareDialects);
  connect(actions_.compareDialects, &QAction::triggered, this, &MainWindow::showDialects);
  connect(actions_.runAllDialects, &QAction::triggered, this, [this] {
    if (formHolds()) dialect_runs_->start();
  });
  connect(actions_.runAllOptimizers, &QAction::triggered, this, [this] {
    if (formHolds()) optimizer_runs_->start();
  });
  auto* queue_commands = new QueueCommands(
      actions_,
      {parts_.document, parts_.preflight, parts_.control, parts_.library, queue_, parts_.dialogs, centre_->messages()},
      this);
  runs_->addBelow(new QueueList(queue_, runs_));
  connect(actions_.queueRun, &QAction::triggered, this, [this, queue_commands] {
    if (formHolds()) queue_commands->addSetUp();
  });
  connect(actions_.runSeeds, &QAction::triggered, this, [this, queue_commands] {
    if (formHolds()) queue_commands->runSeeds();
  });
  for (ComparedRuns* runs : std::initializer_list<ComparedRuns*>{dialect_runs_, optimizer_runs_, product_runs_,
                                                                 queue_commands->seedRuns()}) {
    connect(runs, &ComparedRuns::aboutToBegin, this, [this] { runs_->showOnly({}); });
    connect(runs, &ComparedRuns::refused, this, &MainWindow::showState);
    connect(runs, &ComparedRuns::ended, this, &MainWindow::showComparison);
  }
  connect(optimizer_runs_, &ComparedRuns::aboutToBegin, this,
          [this] { centre_->plots()->showBesideLoss(QLatin1String(updateNormPlot)); });
  connect(actions_.isoBatch, &QAction::triggered, this, &MainWindow::showIsoBatch);
  connect(queue_, &RunQueue::changed, this, &MainWindow::showState);
  connect(queue_, &RunQueue::finished, this, &MainWindow::showState);
  close_guard_->setQueue(queue_);
}

// Over samples, runs with different window lengths can be compared.
void MainWindow::showComparison() {
  QList<RunSeries*> runs;
  for (const QueuedRun& queued : queue_->runs())
    if (queued.run) runs.append(queued.run);
  if (runs.isEmpty()) return;
  runs_->showOnly(runs);
  centre_->showPlots();
  centre_->plots()->setClock(Clock::sample);
  centre_->plots()->fit();
}

void MainWindow::connectViewActions() {
  connect(actions_.resetLayout, &QAction::triggered, this, &MainWindow::resetLayout);
  connect(actions_.startPage, &QAction::triggered, centre_, &CentrePage::toggleStart);
  connect(actions_.nextPane, &QAction::triggered, this, [this] { cyclePanes(1); });
  connect(actions_.previousPane, &QAction::triggered, this, [this] { cyclePanes(-1); });
  connect(actions_.fullScreen, &QAction::toggled, this, [this](bool on) {
    setWindowState(windowState().setFlag(Qt::WindowFullScreen, on));  // afterwards it is maximised again if it was
  });
  connect(actions_.layouts, &QActionGroup::triggered, this,
          [this](QAction* action) { showLayout(static_cast<WindowLayout>(action->data().toInt())); });
  connect(actions_.shortcuts, &QAction::triggered, this, &MainWindow::showShortcuts);
  auto* palette = new CommandPalette(actions_, this);
  connect(actions_.palette, &QAction::triggered, palette, &CommandPalette::choose);
  connect(palette, &CommandPalette::fieldChosen, setup_->form(), &FieldForm::focusField);
  connect(actions_.help, &QAction::triggered, this, &MainWindow::explainFocus);
  connect(actions_.manual, &QAction::triggered, this, &MainWindow::showManual);
  connect(actions_.glossary, &QAction::triggered, this, [this] { showGlossary({}, {}); });
  connect(actions_.differences, &QAction::triggered, this, &MainWindow::showDifferences);
  connect(actions_.report, &QAction::triggered, this, &MainWindow::copyReport);
  connect(actions_.about, &QAction::triggered, this, &MainWindow::showAbout);
  connect(actions_.themes, &QActionGroup::triggered, this, [this](QAction* action) {
    parts_.theme->setMode(static_cast<ThemeMode>(action->data().toInt()));
    parts_.settings->setValue(QStringLiteral("view/theme"), action->data());
  });
  const int mode = parts_.settings->value(QStringLiteral("view/theme"), 0).toInt();
  for (QAction* action : actions_.themes->actions())
    if (action->data().toInt() == mode) action->trigger();
}

void MainWindow::connectFiles() {
  connect(actions_.newSpec, &QAction::triggered, files_, &WindowFiles::newSpec);
  connect(actions_.open, &QAction::triggered, files_, &WindowFiles::askAndOpen);
  connect(actions_.openRun, &QAction::triggered, files_, &WindowFiles::askAndOpenRun);
  connect(actions_.save, &QAction::triggered, files_, &WindowFiles::save);
  connect(actions_.saveAs, &QAction::triggered, files_, &WindowFiles::saveAs);
  connect(actions_.quit, &QAction::triggered, this, &MainWindow::close);
  connect(actions_.closeSpec, &QAction::triggered, this, [this] {
    if (!files_->mayReplace()) return;
    lesson_desk_->leave();
    parts_.document->reset(RunSpec{}, tr("Untitled"));
    centre_->showStart();
  });
  connect(recent_menu_, &QMenu::aboutToShow, this, [this] { files_->fillRecentMenu(recent_menu_); });
  auto* presets = findChild<QMenu*>(QStringLiteral("presetMenu"));
  connect(presets, &QMenu::aboutToShow, this, [this, presets] { files_->fillPresetMenu(presets); });
  connect(files_, &WindowFiles::documentOpened, this, &MainWindow::showDocumentOpened);
  auto* libraries = new LibraryDesk({parts_.document, parts_.preflight, parts_.control, parts_.library, files_,
                                     parts_.dialogs, parts_.settings, centre_->messages(), this});
  connect(actions_.chooseLibraries, &QAction::triggered, libraries, &LibraryDesk::choose);
  connect(setup_, &SetupPanel::librariesWanted, actions_.chooseLibraries, &QAction::trigger);
  connect(files_, &WindowFiles::recentChanged, this,
          [this] { centre_->start()->setRecentFiles(files_->recentFiles()); });
  connect(files_, &WindowFiles::failed, this, [this](const QString& text) {
    centre_->messages()->post({QStringLiteral("file"), RunState::failed, text, {}, {}});
  });
  connect(files_, &WindowFiles::editsSetAside, this, [this](const QString& name) {
    centre_->messages()->post({QStringLiteral("setAside"),
                               RunState::idle,
                               tr("The edits of %1 were set aside").arg(name),
                               tr("Bring them back"),
                               [this] { files_->bringBack(); },
                               {},
                               QStringLiteral("undo")});
  });
  connect(files_, &WindowFiles::setAsideOver, this,
          [this] { centre_->messages()->withdraw(QStringLiteral("setAside")); });
  const StartPage* start = centre_->start();
  connect(start, &StartPage::lessonRequested, lesson_desk_, &LessonDesk::openFirst);
  connect(start, &StartPage::galleryRequested, actions_.bugGallery, &QAction::trigger);
  connect(start, &StartPage::demoRequested, this, &MainWindow::runDemo);
  connect(start, &StartPage::openRequested, files_, &WindowFiles::askAndOpen);
  connect(start, &StartPage::newRequested, files_, &WindowFiles::newSpec);
  connect(start, &StartPage::presetRequested, this, [this](const QString& resource, const QString& name) {
    const bool opened = files_->openPreset(resource, name);
    if (opened && resource == QLatin1String("ten-batches.accrue")) showDialects();
  });
  connect(start, &StartPage::fileRequested, files_, &WindowFiles::openPath);
  connect(start, &StartPage::runsRequested, this, [this] {
    runs_dock_->show();
    runs_dock_->raise();
    runs_->focusTable();
  });
}

RunSeries* MainWindow::focusedRun() const {
  return runs_->currentRun();
}

PlotArea* MainWindow::plots() const {
  return centre_->plots();
}

void MainWindow::showDocumentOpened() {
  // Restoring over another document would replace what the user asked for. The edits are offered at the next start.
  centre_->messages()->withdraw(QStringLiteral("draft"));
  centre_->messages()->withdraw(QStringLiteral("file"));
  centre_->showPlots();
  setup_dock_->show();
  setup_dock_->raise();
  if (std::exchange(run_after_open_, false))
    parts_.control->start();
  else
    sayWhatIsDrawn();
}

/// Otherwise a document that was opened changes nothing in sight but the form. A hint, which covers no message.
void MainWindow::sayWhatIsDrawn() {
  centre_->messages()->withdraw(QStringLiteral("opened"));
  if (!centre_->messages()->currentId().isEmpty()) return;
  const RunSeries* run = focusedRun();
  if (runs_->shownRuns().isEmpty() || (run && run->spec() && *run->spec() == parts_.document->spec())) return;
  centre_->messages()->post(
      {.id = QStringLiteral("opened"),
       .tone = RunState::idle,
       .text = (parts_.control->isLive() ? tr("%1 is open. It can be trained once the run that is live has ended.")
                                         : tr("%1 is open; F5 trains it. What is drawn was trained before."))
                   .arg(parts_.document->displayName()),
       .action = {},
       .act = {},
       .ofPlots = true});
}

void MainWindow::openPath(const QString& path) {
  files_->openPath(path);
}

void MainWindow::runDemo() {
  if (parts_.control->isLive()) {
    centre_->messages()->post({QStringLiteral("taken"), RunState::failed,
                               tr("A run has not ended. Stop it before the demo begins."), tr("Stop"),
                               [this] { actions_.stop->trigger(); }});
    return;
  }
  run_after_open_ = true;
  if (!files_->openDemo()) run_after_open_ = false;
}

void MainWindow::run() {
  if (formHolds()) parts_.control->start();
}

/// Where nothing is live a step begins a run, and the form has to hold.
void MainWindow::step(void (RunControl::*unit)()) {
  if (parts_.control->isLive() || formHolds()) (parts_.control->*unit)();
}

bool MainWindow::formHolds() {
  parts_.document->endTyping();
  const QStringList rejected = setup_->form()->rejectedFields();
  if (rejected.isEmpty()) return true;
  setup_->form()->focusField(rejected.front());
  centre_->messages()->post({QStringLiteral("refused"),
                             RunState::failed,
                             tr("The set-up cannot be run: %1 has no valid value")
                                 .arg(fromView(find_field(rejected.front().toStdString())->label)),
                             {},
                             {}});
  return false;
}

QImage MainWindow::picture() {
  tick();
  return grab().toImage();
}

void MainWindow::offerDraft() {
  const auto draft = drafts_->leftOver();
  if (!draft) return;
  const QString when = QLocale().toString(draft->when, QLocale::ShortFormat);
  centre_->messages()->post(
      {QStringLiteral("draft"), RunState::paused,
       tr("Unsaved edits of %1 from %2 were kept. Close this message to discard them.").arg(draft->name, when),
       tr("Restore"),
       [this, draft] {
         if (!files_->mayReplace()) return;
         lesson_desk_->leave();
         parts_.document->restore(draft->spec, draft->name, draft->base_dir.toStdString(), draft->spec_file);
         parts_.document->setSampleLock(draft->lock);
         drafts_->keep();
         drafts_->dropLeftOver();
         showDocumentOpened();
       },
       [this] {
         drafts_->dropLeftOver();
         offerDraft();
       },
       QStringLiteral("save")});
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  if (shown_before_) return;
  shown_before_ = true;
  // The window is shown before anything that uses the disk.
  QTimer::singleShot(0, this, [this] {
    parts_.preflight->refresh();
    parts_.library->refresh();
    if (parts_.offer_drafts) offerDraft();
  });
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!close_guard_->mayClose()) {
    event->ignore();
    return;
  }
  view_size_->leavePresenter();  // the layout that is saved is the user's own
  lesson_desk_->leave();
  drafts_->keep();
  saveLayout();
  event->accept();
  Q_EMIT closed();
}

void MainWindow::keepEdits() {
  drafts_->keep();
}

void MainWindow::endSession() {
  keepEdits();  // saving the runs takes longer than a log-out may wait
  close_guard_->endSession();
  if (QWidget* question = QApplication::activeModalWidget()) question->close();
  if (!close_guard_->isWaiting()) QMetaObject::invokeMethod(this, &MainWindow::close, Qt::QueuedConnection);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls() && event->mimeData()->urls().front().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) openPath(url.toLocalFile());
}

}  // namespace accrue::ui

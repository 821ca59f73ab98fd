// SPDX-License-Identifier: GPL-3.0-or-later
#include "main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QKeyEvent>
#include <QMenu>
#include <QMimeData>
#include <QSettings>
#include <QStatusBar>
#include <QToolBar>
#include <QUrl>

#include "centre_page.h"
#include "command_palette.h"
#include "compare/pair_commands.h"
#include "compare/variant_commands.h"
#include "dialogs.h"
#include "docks.h"
#include "document/draft_keeper.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "document/spec_files.h"
#include "documents.h"
#include "exchange/bundle_exchange.h"
#include "exchange/exchange.h"
#include "exchange/exchange_jobs.h"
#include "exchange/figure_export.h"
#include "exchange/import_commands.h"
#include "exchange/run_folder_commands.h"
#include "live/accumulation_panel.h"
#include "live/close_guard.h"
#include "live/close_messages.h"
#include "live/companion_run.h"
#include "live/inspector_panel.h"
#include "live/joined_set_up.h"
#include "live/run_control.h"
#include "live/run_messages.h"
#include "live/run_queue.h"
#include "live/status_row.h"
#include "live/status_watch.h"
#include "live/training_commands.h"
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
#include "run_view.h"
#include "runs/events_panel.h"
#include "runs/run_commands.h"
#include "runs/run_library.h"
#include "runs/runs_panel.h"
#include "series/frame_clock.h"
#include "series/run_text.h"
#include "setup/data_panel.h"
#include "setup/edit_commands.h"
#include "setup/field_form.h"
#include "setup/file_commands.h"
#include "setup/setup_panel.h"
#include "start_page.h"
#include "teach/bug_gallery_panel.h"
#include "teach/gallery_commands.h"
#include "teach/help_commands.h"
#include "teach/lesson_desk.h"
#include "teach/lesson_panel.h"
#include "teach/lesson_player.h"
#include "teach/narrator.h"
#include "view_commands.h"
#include "view_memory.h"
#include "widgets/dock_switch.h"

namespace accrue::ui {

MainWindow::MainWindow(const StudioParts& parts)
    : parts_(parts),
      actions_(this),
      frames_(new FrameClock(this)),
      centre_(new CentrePage(this)),
      docks_(new Docks(this, [this] { centre_->focusShown(); })),
      setup_(new SetupPanel(parts.document, parts.preflight, this)),
      accumulation_(new AccumulationPanel(parts.control, this)),
      runs_(new RunsPanel(parts.library, this)),
      events_(new EventsPanel(parts.library->log(), this)),
      lesson_player_(new LessonPlayer(parts.document, parts.control, this)),
      status_(new StatusRow(this)),
      files_(new SpecFiles(parts.document, parts.library, parts.dialogs, parts.settings, this)),
      queue_(new RunQueue(parts.control, this)),
      companion_(new CompanionRun(parts.control, parts.library, this)),
      close_guard_(new CloseGuard(parts.control->bridgeOptions(), parts.dialogs, parts.settings, this)),
      drafts_(new DraftKeeper(parts.document, QFileInfo(parts.settings->fileName()).absolutePath(), this)) {
  setObjectName(QStringLiteral("mainWindow"));
  setAcceptDrops(true);
  // Not that of its parts: with large text these need more than a screen has, and scroll.
  setMinimumSize(smallest);
  setCentralWidget(centre_);
  new ParkedTabs(this);
  addPanels();
  addBars();
  addRuns();
  addDocuments();
  addComparisons();
  addExchange();
  restoreLayout();
  training_->showEnabled();
  showTitle();
  centre_->showStart();
  connect(frames_, &FrameClock::refresh, docks_, &Docks::refresh);
  connect(frames_, &FrameClock::frame, this, &MainWindow::drawFrame);
  frames_->start();
}

MainWindow::~MainWindow() = default;

/// Adds the panels in the order of the View menu. A new panel is added here; its own dock() defines its place.
void MainWindow::addPanels() {
  const auto& [document, preflight, library, control, dialogs, settings, theme, offer_drafts] = parts_;
  auto* lesson = new LessonPanel(lesson_player_, actions_, this);
  auto* gallery = new BugGalleryPanel(document, control, library, files_, this);
  docks_->add(setup_->dock());
  docks_->add(accumulation_->dock());
  docks_->add(runs_->dock());
  docks_->add(events_->dock());
  docks_->add((new PluginRack(document, preflight, this))->dock());
  docks_->add((new InspectorPanel(control, this))->dock());
  docks_->add((new RankGridPanel(preflight, control, this))->dock());
  docks_->add((new DataPanel(document, preflight, this))->dock());
  docks_->add((new PipelinePanel(document, preflight, this))->dock());
  docks_->add((new PlannerPanel(document, preflight, library, control, this))->dock());
  docks_->add(lesson->dock());
  docks_->add(gallery->dock());
  lessons_ =
      new LessonDesk(lesson_player_, lesson,
                     {.window = this,
                      .actions = &actions_,
                      .files = files_,
                      .messages = centre_->messages(),
                      .plots = centre_->plots(),
                      .form = setup_->form(),
                      .runs = runs_,
                      .settings = settings,
                      .is_start_shown = [this] { return centre_->isStartShown(); },
                      .show_start = [this](bool start) { start ? centre_->showStart() : centre_->showPlots(); }});
  connectGalleryCommands(actions_, gallery, lessons_, runs_, centre_->messages(), this);
}

void MainWindow::addBars() {
  run_bar_ = buildRunBar(this, actions_);
  addToolBar(Qt::TopToolBarArea, run_bar_);
  for (QDockWidget* dock : docks_->all()) actions_.addPanel(new DockSwitch(dock));
  buildMenus(this, actions_, {run_bar_});
  new PlotBar(actions_, centre_->plots(), run_bar_, this);
  new PlotMenu(actions_, centre_->plots(), findChild<QMenu*>(QStringLiteral("plotMenu")), parts_.settings, this);
  view_ = new ViewCommands(actions_, {docks_, centre_, lessons_, run_bar_, parts_.settings, parts_.theme}, this);
  new HelpCommands(actions_, {parts_.document, parts_.preflight, parts_.control, centre_->messages()}, this);
  auto* narrator = new Narrator(parts_.control, lesson_player_, status_->narration(), this);
  narrator->obey(actions_[Command::narrate], parts_.settings);
  auto* palette = new CommandPalette(actions_, this);
  connect(actions_[Command::palette], &QAction::triggered, palette, &CommandPalette::choose);
  connect(palette, &CommandPalette::fieldChosen, setup_->form(), &FieldForm::focusField);
  statusBar()->setObjectName(QStringLiteral("statusBar"));
  statusBar()->setSizeGripEnabled(false);
  statusBar()->setContentsMargins(0, 0, 0, 0);
  statusBar()->addPermanentWidget(status_, 1);
}

void MainWindow::addRuns() {
  MessageBar* bar = centre_->messages();
  training_ = new TrainingCommands(
      actions_, {parts_.document, parts_.control, parts_.library, queue_, runs_, setup_, parts_.dialogs, bar}, this);
  connect(training_, &TrainingCommands::editableChanged, docks_, &Docks::setEditable);
  auto* messages = new RunMessages(parts_.control, parts_.library, bar, this);
  connect(messages, &RunMessages::errorFieldRequested, setup_, &SetupPanel::focusFirstError);
  connect(messages, &RunMessages::logRequested, this, [this] { docks_->bringUp("eventsDock"); });
  new RunCommands(actions_, runs_, parts_.library, bar, this);
  new StatusWatch({status_, parts_.control, runs_, close_guard_, setup_->arithmetic()}, frames_, this);
  close_guard_->watch({parts_.control, companion_});
  close_guard_->setQueue(queue_);
  connect(close_guard_, &CloseGuard::readyToClose, this, &MainWindow::close, Qt::QueuedConnection);
  connectCloseMessages(actions_, close_guard_, bar, this);
  connect(parts_.control, &RunControl::stateChanged, this, &MainWindow::showTitle);
}

void MainWindow::addDocuments() {
  MessageBar* bar = centre_->messages();
  connectEditCommands(actions_, parts_.document, setup_, this);
  connectFileCommands(actions_, files_, bar, this);
  new JoinedSetUp(parts_.control, parts_.document, files_, bar, this);
  documents_ = new Documents(
      actions_, {parts_.document, parts_.control, files_, drafts_, lessons_, runs_, setup_, centre_}, this);
  connect(documents_, &Documents::runsWanted, this, [this] {
    docks_->bringUp("runsDock");
    runs_->focusTable();
  });
  connect(runs_, &RunsPanel::cloneRequested, files_, [this](RunSeries* run) { files_->clone(*run); });
  connect(actions_[Command::quit], &QAction::triggered, this, &MainWindow::close);
  connect(parts_.document, &SpecDocument::modifiedChanged, this, &MainWindow::showTitle);
  connect(parts_.document, &SpecDocument::fileChanged, this, &MainWindow::showTitle);
  connect(parts_.preflight, &PreflightRunner::finished, frames_, &FrameClock::noteMoved);
  connect(setup_->form(), &FieldForm::rejectedFieldsChanged, frames_, &FrameClock::noteMoved);
  connect(setup_->form(), &FieldForm::left, centre_, &CentrePage::focusShown);
  auto* libraries = new LibraryDesk({parts_.document, parts_.preflight, parts_.control, parts_.library, files_,
                                     parts_.dialogs, parts_.settings, bar, this});
  connect(actions_[Command::chooseLibraries], &QAction::triggered, libraries, &LibraryDesk::choose);
  connect(setup_, &SetupPanel::librariesWanted, actions_[Command::chooseLibraries], &QAction::trigger);
}

void MainWindow::addComparisons() {
  MessageBar* bar = centre_->messages();
  auto* view = new RunView({parts_.control, parts_.library, runs_, events_, centre_, docks_, frames_}, this);
  auto* variants = new VariantCommands(actions_,
                                       {parts_.document, parts_.preflight, parts_.control, parts_.library, queue_,
                                        runs_, setup_, training_, centre_->plots(), parts_.dialogs, bar},
                                       this);
  connect(variants, &VariantCommands::compared, view, &RunView::compare);
  new PairCommands(actions_,
                   {parts_.control, companion_, queue_, parts_.preflight, parts_.library, runs_, files_, training_,
                    centre_->plots(), bar},
                   this);
}

void MainWindow::addExchange() {
  MessageBar* bar = centre_->messages();
  auto* jobs = new ExchangeJobs(bar, this);
  new FigureExport(
      actions_, {centre_->plots(), bar, parts_.dialogs, parts_.settings, parts_.document, parts_.library, jobs}, this);
  new RunFolderCommands(actions_, runs_, this);
  auto* exchange = new Exchange(
      {parts_.document, parts_.preflight, parts_.library, parts_.dialogs, bar, jobs, this, runs_}, actions_);
  auto* bundles = new BundleExchange({.document = parts_.document,
                                      .library = parts_.library,
                                      .notebook = runs_->notebook(),
                                      .files = files_,
                                      .dialogs = parts_.dialogs,
                                      .messages = bar,
                                      .jobs = jobs,
                                      .window = this,
                                      .chosen_runs =
                                          [this] {
                                            const QList<RunSeries*> selected = runs_->selectedRuns();
                                            return selected.size() > 1 ? selected : runs_->shownRuns();
                                          }},
                                     actions_);
  connectImportCommands(actions_, files_, exchange, bundles, parts_.dialogs, this);
}

void MainWindow::restoreLayout() {
  if (!restoreView(this, centre_->plots(), setup_->form(), *parts_.settings)) view_->resetLayout();
  const QSignalBlocker quiet(actions_[Command::fullScreen]);
  actions_[Command::fullScreen]->setChecked(isFullScreen());
}

void MainWindow::drawFrame() {
  if (!isVisible() || isMinimized()) return;
  centre_->plots()->tick();
  status_->countFrame();
}

void MainWindow::showTitle() {
  // The title shows the run's state in the task bar when the window is hidden.
  const RunControl& control = *parts_.control;
  const QString doing =
      control.isLive() ? QStringLiteral(" (%1)").arg(stateWord(control.run(), control.state())) : QString();
  //: Window title; [*] stands for "has unsaved edits", %2 for what the run does
  const QString title = tr("%1[*]%2 - Accrue").arg(parts_.document->displayName(), doing);
  setWindowTitle(title);
  setWindowModified(parts_.document->isModified());
  setWindowFilePath(parts_.document->filePath());
  // The file's path must not replace the title.
  setWindowTitle(title);
}

RunSeries* MainWindow::focusedRun() const {
  return runs_->currentRun();
}

PlotArea* MainWindow::plots() const {
  return centre_->plots();
}

void MainWindow::openPath(const QString& path) {
  files_->openPath(path);
}

void MainWindow::runDemo() {
  documents_->runDemo();
}

QImage MainWindow::picture() {
  frames_->tick();
  return grab().toImage();
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

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  if (shown_before_) return;
  shown_before_ = true;
  // The window is shown before anything that uses the disk.
  QTimer::singleShot(0, this, [this] {
    parts_.preflight->refresh();
    parts_.library->refresh();
    if (parts_.offer_drafts) documents_->offerDraft();
  });
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!close_guard_->mayClose()) {
    event->ignore();
    return;
  }
  view_->leavePresenter();
  lessons_->leave();
  drafts_->keep();
  saveView(*this, *centre_->plots(), *setup_->form(), *parts_.settings);
  event->accept();
  Q_EMIT closed();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls() && event->mimeData()->urls().front().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) openPath(url.toLocalFile());
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
  const QWidget* focus = QApplication::focusWidget();
  const bool in_view = focus && (centre_->plots()->isAncestorOf(focus) || focus == centre_->plots() ||
                                 accumulation_->isAncestorOf(focus));
  if (in_view && isKeyOf(Command::togglePause, *event)) return parts_.control->togglePause();
  QMainWindow::keyPressEvent(event);
}

bool MainWindow::focusNextPrevChild(bool next) {
  const QWidget* focus = focusWidget();
  if (!focus || focus->isEnabled()) return QMainWindow::focusNextPrevChild(next);
  centre_->focusShown();
  return true;
}

}  // namespace accrue::ui

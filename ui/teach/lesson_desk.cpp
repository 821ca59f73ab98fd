// SPDX-License-Identifier: GPL-3.0-or-later
#include "lesson_desk.h"

#include <QAction>
#include <QApplication>
#include <QDialog>
#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QMainWindow>
#include <QSettings>
#include <QShortcut>
#include <QStringList>
#include <QVBoxLayout>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/fields/spec_fields.h"
#include "document/spec_files.h"
#include "kit/actions.h"
#include "kit/theme.h"
#include "lesson_panel.h"
#include "lesson_player.h"
#include "plots/plot_area.h"
#include "runs/runs_panel.h"
#include "series/run_series.h"
#include "setup/field_form.h"
#include "widgets/dock_switch.h"
#include "widgets/layout_restorer.h"
#include "widgets/message_bar.h"
#include "widgets/scrolled.h"

namespace accrue::ui {

namespace {

constexpr auto refused_id = "lockedKey";
constexpr auto done_key = "lessons/done";

/// Joins the lines of a file into paragraphs, which an empty line ends.
QString flowing(const std::string& lines) {
  QStringList paragraphs = QString::fromStdString(lines).trimmed().split(QStringLiteral("\n\n"));
  for (QString& paragraph : paragraphs) paragraph = paragraph.simplified();
  return paragraphs.join(QStringLiteral("\n\n"));
}

}  // namespace

LessonDesk::LessonDesk(LessonPlayer* player, LessonPanel* panel, const LessonDeskParts& parts)
    : QObject(parts.window), player_(player), panel_(panel), parts_(parts) {
  connect(panel_, &LessonPanel::chosen, this, &LessonDesk::openFile);
  connect(player_, &LessonPlayer::begun, this, &LessonDesk::begin);
  connect(player_, &LessonPlayer::closed, this, &LessonDesk::restore);
  connect(player_, &LessonPlayer::stepChanged, parts_.files, &SpecFiles::markBuiltIn);
  connect(player_, &LessonPlayer::stepChanged, this, &LessonDesk::enableActions);
  connect(player_, &LessonPlayer::failed, this, &LessonDesk::say);
  connect(player_, &LessonPlayer::editRefused, this, &LessonDesk::sayRefused);
  connect(player_, &LessonPlayer::stepChanged, this, &LessonDesk::withdrawRefusal);
  connect(player_, &LessonPlayer::stepChanged, this, &LessonDesk::showField);
  connect(parts_.files, &SpecFiles::lessonRequested, this, &LessonDesk::openFile);
  // Another document ends the lesson, whose form would hide that document's fields.
  connect(parts_.files, &SpecFiles::documentOpened, this, [this] { player_->close(); });
  connect(player_, &LessonPlayer::judged, this, &LessonDesk::keepDone);
  const PlotArea* plots = parts_.plots;
  player_->setClock(clockKey(plots->clock()));
  connect(plots, &PlotArea::clockChanged, this, [this](Clock clock) { player_->setClock(clockKey(clock)); });
  showDone();
  connectActions();
  guardStepKeys();
  enableActions();
}

void LessonDesk::guardStepKeys() {
  const auto guard = [this](const QAction* action, const QString& what) {
    auto* key = new QShortcut(action->shortcut(), parts_.window);
    connect(key, &QShortcut::activated, this, [this, what] {
      parts_.messages->post({QStringLiteral("lesson"), RunState::idle, what, {}, {}});
    });
    return key;
  };
  no_next_ = guard((*parts_.actions)[Command::nextStep], tr("This is the last step of the lesson."));
  no_previous_ = guard((*parts_.actions)[Command::previousStep], tr("This is the first step of the lesson."));
}

/// A completed lesson stays completed.
void LessonDesk::keepDone() {
  const Lesson* lesson = player_->lesson();
  if (!lesson || lesson->number <= 0 || player_->stepsDone() < lesson->steps.size()) return;
  QStringList done = parts_.settings->value(QLatin1String(done_key)).toStringList();
  const QString number = QString::number(lesson->number);
  if (done.contains(number)) return;
  done.append(number);
  parts_.settings->setValue(QLatin1String(done_key), done);
  showDone();
}

void LessonDesk::showDone() {
  QSet<int> numbers;
  for (const QString& number : parts_.settings->value(QLatin1String(done_key)).toStringList())
    numbers.insert(number.toInt());
  panel_->setDone(numbers);
}

void LessonDesk::connectActions() {
  const Actions& actions = *parts_.actions;
  connect(actions[Command::openLesson], &QAction::triggered, this, &LessonDesk::show);
  connect(actions[Command::nextStep], &QAction::triggered, player_, &LessonPlayer::next);
  connect(actions[Command::previousStep], &QAction::triggered, player_, &LessonPlayer::previous);
  connect(actions[Command::checkLesson], &QAction::triggered, panel_, &LessonPanel::check);
  connect(actions[Command::lessonHint], &QAction::triggered, panel_, &LessonPanel::showHint);
  connect(actions[Command::resetLesson], &QAction::triggered, this, &LessonDesk::reset);
  connect(actions[Command::leaveLesson], &QAction::triggered, this, &LessonDesk::leave);
  connect(actions[Command::instructorNotes], &QAction::triggered, this, &LessonDesk::showNotes);
}

void LessonDesk::enableActions() {
  const Actions& actions = *parts_.actions;
  const Lesson* lesson = player_->lesson();
  for (QAction* action : {actions[Command::checkLesson], actions[Command::resetLesson], actions[Command::leaveLesson],
                          actions[Command::instructorNotes]})
    action->setEnabled(lesson);
  actions[Command::lessonHint]->setEnabled(lesson && !player_->step().hint.empty());
  const bool in_panel = panel_->isAncestorOf(QApplication::focusWidget());
  actions[Command::previousStep]->setEnabled(lesson && player_->stepIndex() > 0);
  actions[Command::nextStep]->setEnabled(lesson && player_->stepIndex() + 1 < lesson->steps.size());
  // A button that is greyed hands the focus to the plots, or in a floating panel to the one behind it, which would
  // begin the lesson again.
  const bool left = !panel_->isAncestorOf(QApplication::focusWidget());
  if (lesson && in_panel && (left || !actions[Command::nextStep]->isEnabled())) panel_->focusFirst();
  no_next_->setEnabled(lesson && !actions[Command::nextStep]->isEnabled());
  no_previous_->setEnabled(lesson && !actions[Command::previousStep]->isEnabled());
  parts_.messages->withdraw(QStringLiteral("lesson"));
}

void LessonDesk::say(const QString& text) {
  parts_.messages->post({QStringLiteral("lesson"), RunState::failed, text, {}, {}});
}

void LessonDesk::sayRefused(const QString& sentence) {
  parts_.messages->post(
      {QLatin1String(refused_id), RunState::paused, sentence, tr("Leave the lesson"), [this] { leave(); }});
}

void LessonDesk::withdrawRefusal() {
  parts_.messages->withdraw(QLatin1String(refused_id));
}

void LessonDesk::openFirst() {
  if (const QStringList lessons = builtInLessons(); !lessons.isEmpty()) openFile(lessons.front());
}

void LessonDesk::openFile(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return say(tr("%1 cannot be read: %2").arg(path, file.errorString()));
  LessonReading reading = parse_lesson(file.readAll().toStdString(), path.toStdString());
  QStringList problems;
  for (const Finding& finding : reading.findings)
    if (finding.severity == Severity::error && problems.size() < 5)
      problems.append(QString::fromStdString(finding.text()));
  if (!problems.isEmpty()) return say(problems.join(QLatin1Char('\n')));
  if (player_->isTakenByAnother()) {
    QAction* stop = (*parts_.actions)[Command::stop];
    return parts_.messages->post({QStringLiteral("taken"), RunState::failed,
                                  tr("A run has not ended. Stop it before a lesson begins."), tr("Stop"),
                                  [stop] { stop->trigger(); }});
  }
  if (!parts_.files->mayReplace()) return;
  for (const char* message : {"lesson", "draft"}) parts_.messages->withdraw(QLatin1String(message));
  player_->open(std::move(reading.lesson));
  if (player_->canTakeResetBack())
    parts_.messages->post({QStringLiteral("lesson"), RunState::idle, tr("You left this lesson with work in it."),
                           tr("Go on there"), [this] { takeResetBack(); }});
}

void LessonDesk::show() {
  const bool in_front = panel_->dockWidget()->isVisible() && !panel_->visibleRegion().isEmpty();
  raiseDock(panel_->dockWidget());
  panel_->showList(in_front && !panel_->isListShown());
  panel_->focusFirst();
}

void LessonDesk::reset() {
  const QList<RunSeries*> shown = parts_.runs->shownRuns();
  if (!shown.isEmpty()) runs_at_reset_ = QList<QPointer<RunSeries>>(shown.begin(), shown.end());
  player_->reset();
  if (!player_->canTakeResetBack()) return;
  parts_.messages->post({QStringLiteral("lesson"), RunState::idle,
                         tr("The lesson began again, without your edits; what was seen before is not counted."),
                         tr("Take it back"), [this] { takeResetBack(); }});
}

void LessonDesk::takeResetBack() {
  player_->takeResetBack();
  QList<RunSeries*> runs = parts_.runs->shownRuns();
  for (const auto& run : std::exchange(runs_at_reset_, {}))
    if (run) runs.append(run);
  parts_.runs->showOnly(runs);
}

void LessonDesk::leave() {
  player_->close();
}

void LessonDesk::shareDockWith(QDockWidget* other) {
  if (panel_->dockWidget()->isVisible()) parts_.window->tabifyDockWidget(panel_->dockWidget(), other);
}

bool LessonDesk::isOpen() const {
  return player_->lesson();
}

void LessonDesk::begin() {
  (*parts_.actions)[Command::presenter]->setChecked(false);  // the layout to come back to is the one from before it
  if (layout_before_.isEmpty()) {
    layout_before_ = parts_.window->saveState();
    clock_before_ = parts_.plots->clock();
    start_before_ = parts_.is_start_shown();
    runs_before_.clear();
    for (RunSeries* run : parts_.runs->shownRuns()) runs_before_.append(run);
  }
  arrange();
  for (const char* message : {"end", "degraded", "refused"}) parts_.messages->withdraw(QLatin1String(message));
  parts_.show_start(false);
  parts_.runs->showOnly({});
  const std::string& clock = player_->lesson()->clock;
  if (!clock.empty()) parts_.plots->setClock(clockFromKey(QString::fromStdString(clock)));
  restrictForm();
  panel_->focusFirst();
}

void LessonDesk::arrange() {
  forgetSavedLayout(parts_.window);
  const Lesson& lesson = *player_->lesson();
  const auto needed = [&lesson](const QDockWidget* dock) {
    return std::ranges::any_of(lesson.panels, [dock](const std::string& panel) {
      return dock->objectName() == QStringLiteral("%1Dock").arg(QString::fromStdString(panel));
    });
  };
  QDockWidget* setup = nullptr;
  for (QDockWidget* dock : parts_.window->findChildren<QDockWidget*>()) {
    if (dock->objectName() == QLatin1String("setupDock")) setup = dock;
    dock->setVisible(dock == panel_->dockWidget() || dock == setup || needed(dock));
    // The left column has no room for a third panel; leaving the lesson brings it back there.
    if (needed(dock) && parts_.window->dockWidgetArea(dock) == Qt::LeftDockWidgetArea)
      parts_.window->addDockWidget(Qt::RightDockWidgetArea, dock);
  }
  panel_->dockWidget()->setFloating(false);
  parts_.window->addDockWidget(Qt::LeftDockWidgetArea, panel_->dockWidget());
  if (setup) {
    parts_.window->splitDockWidget(panel_->dockWidget(), setup, Qt::Vertical);
    const int height = parts_.window->height();
    parts_.window->resizeDocks({panel_->dockWidget(), setup}, {height / 2, height / 2}, Qt::Vertical);
  }
  panel_->dockWidget()->raise();
}

void LessonDesk::restrictForm() {
  const Lesson& lesson = *player_->lesson();
  std::vector<const SpecField*> fields;
  for (const std::string& key : lesson.fields) fields.push_back(find_field(key));
  for (const auto& [key, why] : lesson.locked) fields.push_back(find_field(key));
  parts_.form->restrictTo(std::move(fields));
}

/// The first key that the learner sets, else one that the step has set, else one that its checks require, else the
/// lesson's first: the previous step's field does not fit this one.
void LessonDesk::showField() {
  const LessonStep& step = player_->step();
  std::vector<std::string> settings;
  for (const auto& answer : step.answer) settings.insert(settings.end(), answer.begin(), answer.end());
  settings.insert(settings.end(), step.set.begin(), step.set.end());
  for (const LessonCheck& check : step.checks) settings.insert(settings.end(), check.where.begin(), check.where.end());
  const auto& shown = player_->lesson()->fields;
  for (const std::string& setting : settings) {
    const std::string key = setting.substr(0, setting.find('='));
    if (std::ranges::find(shown, key) != shown.end()) return parts_.form->reveal(QString::fromStdString(key));
  }
  if (!shown.empty()) parts_.form->reveal(QString::fromStdString(shown.front()));
}

void LessonDesk::restore() {
  (*parts_.actions)[Command::presenter]->setChecked(false);
  parts_.form->restrictTo({});
  withdrawRefusal();
  if (!layout_before_.isEmpty()) parts_.window->restoreState(layout_before_);
  layout_before_.clear();
  parts_.plots->setClock(clock_before_);
  restoreCentre();
  if (notes_) notes_->close();
  enableActions();
  if (panel_->dockWidget()->isVisible())
    show();
  else if (!parts_.is_start_shown())
    parts_.plots->setFocus(Qt::OtherFocusReason);
}

/// Runs of the lesson stay drawn, and one that still trains stays visible. An empty page of plots is not restored.
void LessonDesk::restoreCentre() {
  QList<RunSeries*> before;
  for (const auto& run : std::exchange(runs_before_, {}))
    if (run) before.append(run);
  if (parts_.runs->shownRuns().isEmpty() && !before.isEmpty()) parts_.runs->showOnly(before);
  const QList<RunSeries*> shown = parts_.runs->shownRuns();
  const bool trains = std::ranges::any_of(shown, [](const RunSeries* run) { return run->isLive(); });
  if (!trains && (start_before_ || shown.isEmpty())) parts_.show_start(true);
}

/// In a separate window, which a teacher can keep on another screen.
void LessonDesk::showNotes() {
  const Lesson& lesson = *player_->lesson();
  QString text = flowing(lesson.notes);
  for (const LessonStep& step : lesson.steps)
    if (!step.notes.empty())
      text += QStringLiteral("\n\n%1\n%2").arg(QString::fromStdString(step.title), flowing(step.notes));
  if (notes_) notes_->close();
  notes_ = new QDialog(parts_.window);
  notes_->setObjectName(QStringLiteral("instructorNotes"));
  notes_->setAttribute(Qt::WA_DeleteOnClose);
  notes_->setWindowTitle(tr("Instructor notes: %1").arg(QString::fromStdString(lesson.title)));
  auto* words = new QLabel(text, notes_);
  words->setObjectName(QStringLiteral("instructorText"));
  words->setWordWrap(true);
  words->setTextFormat(Qt::PlainText);
  words->setTextInteractionFlags(Qt::TextSelectableByMouse);
  words->setContentsMargins(space::page, space::page, space::page, space::page);
  words->setAlignment(Qt::AlignTop);
  fillScrolled(notes_, words, Qt::ScrollBarAsNeeded);
  notes_->resize(480, 360);
  notes_->show();
}

}  // namespace accrue::ui

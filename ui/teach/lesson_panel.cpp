// SPDX-License-Identifier: GPL-3.0-or-later
#include "lesson_panel.h"

#include <QEvent>
#include <QFile>
#include <QHBoxLayout>
#include <QListWidget>
#include <QPushButton>
#include <QStackedLayout>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include "kit/actions.h"
#include "lesson_player.h"
#include "runs/dock_panel.h"
#include "widgets/scrolled.h"
#include "widgets/selection_tint.h"

namespace accrue::ui {

namespace {

/// Role of an item of the list; Qt::UserRole is its resource.
constexpr int numberRole = Qt::UserRole + 1;
constexpr int titleRole = Qt::UserRole + 2;
constexpr int minutesRole = Qt::UserRole + 3;
constexpr int teachesRole = Qt::UserRole + 4;

RunState toneOf(CheckState state) {
  switch (state) {
    case CheckState::met:
      return RunState::finished;
    case CheckState::missed:
      return RunState::failed;
    case CheckState::not_here:
      return RunState::degraded;
    case CheckState::open:
      break;
  }
  return RunState::idle;
}

QString wordOf(CheckState state) {
  switch (state) {
    case CheckState::met:
      return LessonPanel::tr("seen");
    case CheckState::missed:
      return LessonPanel::tr("not yet");
    case CheckState::not_here:
      return LessonPanel::tr("not comparable");
    case CheckState::open:
      break;
  }
  return LessonPanel::tr("to do");
}

/// A button for a command of the window, with its key in the tooltip.
QToolButton* commandButton(QAction* action, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setObjectName(QStringLiteral("lesson.%1").arg(action->objectName()));
  button->setDefaultAction(action);
  button->setToolButtonStyle(Qt::ToolButtonTextOnly);
  button->setFocusPolicy(Qt::TabFocus);
  return button;
}

}  // namespace

LessonPanel::LessonPanel(LessonPlayer* player, const Actions& actions, QWidget* parent)
    : QWidget(parent), player_(player), stack_(new QStackedLayout(this)) {
  setObjectName(QStringLiteral("lessonPanel"));
  stack_->addWidget(buildList());
  stack_->addWidget(buildStep(actions));
  connect(player_, &LessonPlayer::begun, this, [this] { showList(false); });
  connect(player_, &LessonPlayer::stepChanged, this, &LessonPanel::showStep);
  connect(player_, &LessonPlayer::judged, this, &LessonPanel::showChecks);
  connect(player_, &LessonPlayer::closed, this, [this] { showList(true); });
}

QWidget* LessonPanel::buildList() {
  auto* page = new QWidget(this);
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(space::betweenGroups, space::inGroup, space::betweenGroups, space::inGroup);
  column->setSpacing(space::inGroup);
  auto* what = new QLabel(tr("Choose a lesson. Each has its own small set-up; yours is kept if you save it."), page);
  what->setWordWrap(true);
  column->addWidget(what);
  list_ = new QListWidget(page);
  list_->setObjectName(QStringLiteral("lessonList"));
  list_->setAccessibleName(tr("Lessons"));
  new SelectionTint(list_);
  list_->setWordWrap(true);
  list_->setSpacing(space::base / 2);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  for (const QString& resource : builtInLessons()) {
    QFile file(resource);
    if (!file.open(QIODevice::ReadOnly)) continue;
    const Lesson lesson = parse_lesson(file.readAll().toStdString(), resource.toStdString()).lesson;
    auto* item = new QListWidgetItem(list_);
    item->setData(Qt::UserRole, resource);
    item->setData(numberRole, static_cast<int>(lesson.number));
    //: %1 number of a lesson, %2 its title
    item->setData(titleRole, tr("%1. %2").arg(lesson.number).arg(QString::fromStdString(lesson.title)));
    item->setData(minutesRole, static_cast<int>(lesson.minutes));
    item->setData(teachesRole, QString::fromStdString(lesson.teaches));
  }
  setDone({});
  column->addWidget(list_, 1);
  connect(list_, &QListWidget::itemActivated, this,
          [this](const QListWidgetItem* item) { Q_EMIT chosen(item->data(Qt::UserRole).toString()); });
  back_ = new QPushButton(tr("Back to the open lesson"), page);
  back_->setObjectName(QStringLiteral("backToLesson"));
  back_->hide();
  connect(back_, &QPushButton::clicked, this, [this] {
    showList(false);
    focusFirst();
  });
  auto* start = new QPushButton(tr("Start the lesson"), page);
  start->setObjectName(QStringLiteral("startLesson"));
  column->addWidget(start);
  column->addWidget(back_);
  connect(start, &QPushButton::clicked, this, [this] {
    if (const auto* item = list_->currentItem()) Q_EMIT chosen(item->data(Qt::UserRole).toString());
  });
  return page;
}

void LessonPanel::setDone(const QSet<int>& numbers) {
  QListWidgetItem* next = nullptr;
  for (int row = 0; row < list_->count(); ++row) {
    QListWidgetItem* item = list_->item(row);
    const bool done = numbers.contains(item->data(numberRole).toInt());
    const bool first = !done && next == nullptr;
    if (first) next = item;
    const QString minutes = tr("%1 min").arg(item->data(minutesRole).toInt());
    //: %1 minutes that a lesson takes
    const QString state = done ? tr("%1, done").arg(minutes) : first ? tr("%1, next").arg(minutes) : minutes;
    //: %1 a lesson's number and title, %2 its minutes and state, %3 what it teaches
    item->setText(tr("%1 (%2)\n%3").arg(item->data(titleRole).toString(), state, item->data(teachesRole).toString()));
    item->setIcon(stateIcon(done ? RunState::finished : RunState::idle));
  }
  list_->setCurrentItem(next != nullptr ? next : list_->item(0));
}

QLabel* LessonPanel::addText(QVBoxLayout* column, const char* name, TextSize size) {
  auto* label = new QLabel(this);
  label->setObjectName(QLatin1String(name));
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setFont(textFont(size));
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  column->addWidget(label);
  return label;
}

QWidget* LessonPanel::buildStep(const Actions& actions) {
  auto* page = new QWidget(this);
  auto* whole = new QVBoxLayout(page);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->setSpacing(0);
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(space::betweenGroups, space::inGroup, space::betweenGroups, space::inGroup);
  column->setSpacing(space::inGroup);
  place_ = addText(column, "lessonPlace", TextSize::small);
  place_->setForegroundRole(QPalette::PlaceholderText);
  title_ = addText(column, "lessonStepTitle", TextSize::title);
  title_->setFont(textFont(TextSize::title, QFont::DemiBold));
  text_ = addText(column, "lessonText", TextSize::body);
  hint_ = addText(column, "lessonHint", TextSize::body);
  hint_button_ = new QPushButton(this);
  hint_button_->setObjectName(QStringLiteral("lessonHintButton"));
  hint_button_->setFlat(true);
  column->addWidget(hint_button_, 0, Qt::AlignLeft);
  connect(hint_button_, &QPushButton::clicked, this, [this] { setHintShown(hint_->isHidden()); });
  checks_ = new QVBoxLayout;
  checks_->setSpacing(space::inGroup);
  column->addLayout(checks_);
  done_ = addText(column, "lessonDone", TextSize::body);
  next_lesson_ = new QPushButton(this);
  next_lesson_->setObjectName(QStringLiteral("nextLesson"));
  column->addWidget(next_lesson_, 0, Qt::AlignLeft);
  connect(next_lesson_, &QPushButton::clicked, this, [this] {
    if (const QListWidgetItem* next = following()) Q_EMIT chosen(next->data(Qt::UserRole).toString());
  });
  processor_ = addText(column, "lessonProcessor", TextSize::small);
  column->addStretch(1);
  scroll_ = scrolled(content, this);
  whole->addWidget(scroll_, 1);
  auto* buttons = new QHBoxLayout;
  buttons->setContentsMargins(space::betweenGroups, space::base, space::betweenGroups, space::inGroup);
  buttons->setSpacing(space::inGroup);
  for (QAction* action : {actions[Command::previousStep], actions[Command::nextStep]})
    buttons->addWidget(commandButton(action, page));
  buttons->addStretch(1);
  for (QAction* action : {actions[Command::resetLesson], actions[Command::leaveLesson]})
    buttons->addWidget(commandButton(action, page));
  whole->addLayout(buttons);
  return page;
}

void LessonPanel::showList(bool shown) {
  back_->setVisible(player_->lesson());
  stack_->setCurrentIndex(shown || !player_->lesson() ? 0 : 1);
}

bool LessonPanel::isListShown() const {
  return stack_->currentIndex() == 0;
}

void LessonPanel::showStep() {
  const Lesson& lesson = *player_->lesson();
  const LessonStep& step = player_->step();
  const QString name = lesson.number > 0
                           ? tr("Lesson %1: %2").arg(lesson.number).arg(QString::fromStdString(lesson.title))
                           : QString::fromStdString(lesson.title);
  showList(false);
  //: %1 the lesson's name
  place_->setText(tr("%1. Step %2 of %3").arg(name).arg(player_->stepIndex() + 1).arg(lesson.steps.size()));
  title_->setText(QString::fromStdString(step.title));
  text_->setText(QString::fromStdString(step.text).trimmed());
  hint_->setText(QString::fromStdString(step.hint));
  setHintShown(false);
  asked_ = false;
  const bool had = hint_button_->hasFocus();
  hint_button_->setVisible(!step.hint.empty());
  if (had && step.hint.empty()) focusFirst();
  showChecks();
  scroll_->ensureVisible(0, 0);
  // Screen readers announce it when the step changes.
  setAccessibleName(place_->text());
  setAccessibleDescription(text_->text());
}

void LessonPanel::showHint() {
  setHintShown(true);
}

/// The button stays, so that the focus does: the next control leaves the step.
void LessonPanel::setHintShown(bool shown) {
  hint_->setVisible(shown);
  hint_button_->setText(shown ? tr("Hide the hint") : tr("Show the hint"));
}

void LessonPanel::check() {
  asked_ = true;
  showChecks();
}

LessonPanel::CheckRow LessonPanel::addCheckRow() {
  auto* row = new QHBoxLayout;
  row->setSpacing(space::inGroup);
  CheckRow check{new QLabel(this), new QLabel(this), new QLabel(this)};
  const std::size_t number = rows_.size();
  check.says->setObjectName(QStringLiteral("lessonCheck.%1").arg(number));
  check.found->setObjectName(QStringLiteral("lessonFound.%1").arg(number));
  check.says->setFont(textFont(TextSize::title));
  check.found->setFont(textFont(TextSize::small));
  check.found->setForegroundRole(QPalette::PlaceholderText);
  auto* words = new QVBoxLayout;
  words->setSpacing(0);
  for (QLabel* label : {check.says, check.found}) {
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    words->addWidget(label);
  }
  row->addWidget(check.icon, 0, Qt::AlignTop);
  row->addLayout(words, 1);
  checks_->addLayout(row);
  return check;
}

void LessonPanel::showChecks() {
  if (!player_->lesson()) return;
  const LessonStep& step = player_->step();
  const auto& results = player_->results();
  while (rows_.size() < step.checks.size()) rows_.push_back(addCheckRow());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const CheckRow& row = rows_[i];
    const bool used = i < step.checks.size() && i < results.size();
    for (QLabel* label : {row.icon, row.says, row.found}) label->setVisible(used);
    if (!used) continue;
    const CheckState state = results[i].state;
    row.icon->setPixmap(stateIcon(toneOf(state)).pixmap(QSize(space::toolIcon, space::toolIcon), devicePixelRatioF()));
    row.icon->setToolTip(wordOf(state));
    row.says->setText(QString::fromStdString(step.checks[i].says));
    //: %1 whether it was seen, %2 what was found
    row.found->setText(state == CheckState::open && !asked_ && !player_->isTried()
                           ? wordOf(state)
                           : tr("%1. %2").arg(wordOf(state), QString::fromStdString(results[i].found)));
    row.says->setAccessibleName(tr("%1: %2").arg(wordOf(state), row.says->text()));
  }
  const bool whole = player_->stepsDone() == player_->lesson()->steps.size();
  const bool last = player_->stepIndex() + 1 == player_->lesson()->steps.size();
  done_->setText(!player_->isStepDone() ? QString()
                 : !last                ? tr("This step is done. Go on with Next (Alt+PgDown).")
                 : whole                ? tr("The lesson is done.")
                                        : tr("This step is done; an earlier one is not."));
  const bool shown = !done_->isHidden();
  done_->setVisible(!done_->text().isEmpty());
  // Makes newly completed checks visible.
  if (!shown && !done_->isHidden() && asked_step_ == player_->stepIndex())
    QTimer::singleShot(0, this, [this] { scroll_->ensureWidgetVisible(done_, 0, space::inGroup); });
  asked_step_ = player_->stepIndex();
  const QListWidgetItem* next = last && whole ? following() : nullptr;
  //: %1 number and title of a lesson
  if (next) next_lesson_->setText(tr("Go on with %1").arg(next->data(titleRole).toString()));
  next_lesson_->setVisible(next);
  const QString processor = player_->processorNote();
  processor_->setText(processor);
  processor_->setVisible(!processor.isEmpty());
}

const QListWidgetItem* LessonPanel::following() const {
  const Lesson* lesson = player_->lesson();
  for (int row = 0; lesson && lesson->number > 0 && row < list_->count(); ++row)
    if (list_->item(row)->data(numberRole).toInt() == lesson->number + 1) return list_->item(row);
  return nullptr;
}

void LessonPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showChecks();
}

void LessonPanel::focusFirst() {
  if (isListShown()) {
    list_->setFocus(Qt::OtherFocusReason);
    return;
  }
  for (const char* name : {"lesson.nextStepAction", "lesson.previousStepAction", "lesson.leaveLessonAction"})
    if (auto* button = findChild<QToolButton*>(QLatin1String(name)); button && button->isEnabled())
      return button->setFocus(Qt::OtherFocusReason);
}

DockPanel LessonPanel::dock() {
  return {.name = "lessonDock",
          .title = tr("Lesson"),
          .panel = this,
          .area = Qt::LeftDockWidgetArea,
          .behind = "setupDock",
          .on_demand = true,
          .focus = [this] { focusFirst(); },
          .docked = [this](QDockWidget* dock) { dock_ = dock; }};
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "narrator.h"

#include <QAccessible>
#include <QAction>
#include <QSettings>
#include <cmath>
#include <utility>

#include "kit/number_text.h"
#include "lesson_player.h"
#include "live/run_control.h"
#include "series/run_text.h"
#include "widgets/elided_label.h"

namespace accrue::ui {

Narrator::Narrator(RunControl* control, LessonPlayer* lesson, ElidedLabel* label, QObject* parent)
    : QObject(parent), control_(control), lesson_(lesson), label_(label) {
  label_->setObjectName(QStringLiteral("narration"));
  label_->hide();
  later_.setSingleShot(true);
  connect(&later_, &QTimer::timeout, this, &Narrator::tell);
  connect(control_, &RunControl::changed, this, &Narrator::tell);
  connect(control_, &RunControl::stateChanged, this, &Narrator::tell);
  connect(lesson_, &LessonPlayer::judged, this, &Narrator::hearLesson);
}

void Narrator::obey(QAction* action, QSettings* settings) {
  const QString key = QStringLiteral("view/narrate");
  connect(action, &QAction::toggled, this, [this, settings, key](bool on) {
    setOn(on);
    settings->setValue(key, on);
  });
  action->setChecked(settings->value(key, false).toBool());
}

void Narrator::setOn(bool on) {
  on_ = on;
  label_->setVisible(on);
  if (on_) tell();
}

void Narrator::tell() {
  if (!on_ || tellState()) return;
  const std::int64_t wait = since_.isValid() ? pause.count() - since_.elapsed() : 0;
  if (wait > 0) {
    if (!later_.isActive()) later_.start(static_cast<int>(wait));
    return;
  }
  QString news = takeNews();
  const RunSeries* run = control_->run();
  if (news.isEmpty()) {
    if (!run || control_->state() != RunState::running || run->last().update == update_) return;
    news = progressSentence();
    update_ = run->last().update;
    loss_ = run->last().loss;
  }
  say(news);
  later_.start(pause);  // more may have happened at the same time
}

bool Narrator::tellState() {
  const RunSeries* run = control_->run();
  if (run != run_) {
    run_ = run;
    told_ = run ? allOf(*run) : Told{};
  }
  const RunState state = control_->state();
  const QString detail = run && state != RunState::running ? stateSentence(*run, state) : QString();
  if (state == state_ && detail == detail_) return false;
  state_ = state;
  detail_ = detail;
  //: A run's state and what is to be said of it: "Paused, after backward, micro 2 of 4, in update 3"
  say(detail.isEmpty() ? stateWord(run, state) : tr("%1, %2").arg(stateWord(run, state), detail));
  if (run && !run->problems().empty() && detail.contains(run->problems().back().message))
    told_.problems = run->problemCount();
  // Events before the end are not news after it.
  if (run && is_over(state)) told_ = allOf(*run);
  later_.start(pause);
  return true;
}

Narrator::Told Narrator::allOf(const RunSeries& run) {
  return {.problems = run.problemCount(),
          .red = run.lamp().light() == ExactnessLamp::Light::different,
          .skipped = run.skippedUpdates().size(),
          .evaluations = run.series(Metric::evaluationLoss).size(),
          .checkpoint = run.checkpointUpdate()};
}

QString Narrator::takeNews() {
  const RunSeries* run = control_->run();
  const auto updateOf = [](const SeriesStore& events) {
    return groupedNumber(std::llround(events.clock(Clock::update)[events.size() - 1]));
  };
  const auto isNew = [](auto now, auto& told) {
    const bool more = now > told;
    told = now;
    return more;
  };
  if (run) {
    const Told now = allOf(*run);
    if (isNew(now.problems, told_.problems)) return run->problems().back().message;
    if (isNew(now.red, told_.red)) return tr("The lamp is red: %1").arg(run->lamp().text());
    if (isNew(now.skipped, told_.skipped)) return tr("Update %1 was skipped").arg(updateOf(run->skippedUpdates()));
  }
  if (!of_lesson_.isEmpty()) return std::exchange(of_lesson_, {});
  if (!run) return {};
  const SeriesStore& evaluations = run->series(Metric::evaluationLoss);
  if (isNew(evaluations.size(), told_.evaluations))
    return tr("Evaluation after update %1: loss %2")
        .arg(updateOf(evaluations), valueText(evaluations.value(evaluations.size() - 1), 3));
  if (isNew(run->checkpointUpdate(), told_.checkpoint))
    return tr("Checkpoint of update %1 saved").arg(groupedNumber(run->checkpointUpdate()));
  return {};
}

void Narrator::hearLesson() {
  const std::size_t done = lesson_->lesson() ? lesson_->stepsDone() : 0;
  if (done < steps_done_ || !on_)
    of_lesson_.clear();  // another lesson, or none: remaining text of the last one is not news
  else if (done > steps_done_)
    of_lesson_ = tr("This step is done: %1").arg(QString::fromStdString(lesson_->step().title));
  steps_done_ = done;
  tell();
}

QString Narrator::progressSentence() const {
  const LastValues& last = control_->run()->last();
  const QString update = last.plannedUpdates > 0
                             ? tr("Update %1 of %2").arg(groupedNumber(last.update), groupedNumber(last.plannedUpdates))
                             : tr("Update %1").arg(groupedNumber(last.update));
  if (!std::isfinite(last.loss)) return tr("%1, the loss is not a number").arg(update);
  const QString loss = valueText(last.loss, 3);
  if (update_ < 0 || update_ > last.update) return tr("%1, loss %2").arg(update, loss);
  constexpr double even = 0.001;  // relative change of the loss below which it is called unchanged
  const double change = last.loss - loss_;
  return std::abs(change) <= even * std::abs(loss_) ? tr("%1, loss %2, unchanged").arg(update, loss)
         : change < 0                               ? tr("%1, loss %2, falling").arg(update, loss)
                                                    : tr("%1, loss %2, rising").arg(update, loss);
}

void Narrator::say(const QString& sentence) {
  since_.start();
  if (sentence == said_) return;
  said_ = sentence;
  label_->setFullText(sentence);
  label_->setAccessibleName(sentence);
  QAccessibleEvent announcement(label_, QAccessible::Alert);
  QAccessible::updateAccessibility(&announcement);
  Q_EMIT said(sentence);
}

}  // namespace accrue::ui

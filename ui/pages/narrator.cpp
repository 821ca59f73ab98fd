// SPDX-License-Identifier: GPL-3.0-or-later
#include "narrator.h"

#include <QAccessible>
#include <QLabel>
#include <cmath>

#include "models/number_text.h"
#include "models/run_control.h"
#include "models/run_text.h"

namespace accrue::ui {

Narrator::Narrator(RunControl* control, QLabel* label, QObject* parent)
    : QObject(parent), control_(control), label_(label) {
  label_->setObjectName(QStringLiteral("narration"));
  label_->hide();
  later_.setSingleShot(true);
  connect(&later_, &QTimer::timeout, this, &Narrator::tell);
  connect(control_, &RunControl::changed, this, &Narrator::tell);
  connect(control_, &RunControl::stateChanged, this, &Narrator::tell);
}

void Narrator::setOn(bool on) {
  on_ = on;
  label_->setVisible(on);
  if (on_) tell();
}

void Narrator::tell() {
  if (!on_) return;
  const RunSeries* run = control_->run();
  const RunState state = control_->state();
  const QString detail = run && state != RunState::running ? stateSentence(*run, state) : QString();
  if (state != state_ || detail != detail_) {
    state_ = state;
    detail_ = detail;
    later_.stop();
    //: A run's state and what is to be said of it: "Paused, after backward, micro 2 of 4, in update 3"
    say(detail.isEmpty() ? stateWord(run, state) : tr("%1, %2").arg(stateWord(run, state), detail));
    return;
  }
  if (!run || state != RunState::running || run->last().update == update_) return;
  const std::int64_t wait = since_.isValid() ? pause.count() - since_.elapsed() : 0;
  if (wait > 0) {
    if (!later_.isActive()) later_.start(static_cast<int>(wait));
    return;
  }
  say(progressSentence());
  update_ = run->last().update;
  loss_ = run->last().loss;
}

QString Narrator::progressSentence() const {
  const LastValues& last = control_->run()->last();
  const QString update = last.plannedUpdates > 0
                             ? tr("Update %1 of %2").arg(groupedNumber(last.update), groupedNumber(last.plannedUpdates))
                             : tr("Update %1").arg(groupedNumber(last.update));
  if (!std::isfinite(last.loss)) return tr("%1, the loss is not a number").arg(update);
  const QString loss = valueText(last.loss, 3);
  if (update_ < 0 || update_ > last.update) return tr("%1, loss %2").arg(update, loss);
  constexpr double even = 0.001;  // of the loss: less is not heard as a change
  const double change = last.loss - loss_;
  return std::abs(change) <= even * std::abs(loss_) ? tr("%1, loss %2, even").arg(update, loss)
         : change < 0                               ? tr("%1, loss %2, falling").arg(update, loss)
                                                    : tr("%1, loss %2, rising").arg(update, loss);
}

void Narrator::say(const QString& sentence) {
  since_.start();
  if (sentence == said_) return;
  said_ = sentence;
  label_->setText(sentence);
  label_->setAccessibleName(sentence);
  QAccessibleEvent announcement(label_, QAccessible::Alert);
  QAccessible::updateAccessibility(&announcement);
  Q_EMIT said(sentence);
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "status_row.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "kit/number_text.h"
#include "kit/theme.h"
#include "runs/run_tag.h"
#include "series/run_series.h"
#include "series/run_text.h"
#include "widgets/elided_label.h"
#include "widgets/state_chip.h"

namespace accrue::ui {

StatusRow::StatusRow(QWidget* parent)
    : QWidget(parent),
      chip_(new StateChip(this)),
      tag_(new RunTag(this)),
      chain_(new QLabel(this)),
      sentence_(new ElidedLabel(this)),
      narration_(new ElidedLabel(this)),
      other_(new QLabel(this)) {
  setObjectName(QStringLiteral("statusRow"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(space::inGroup, space::base, space::inGroup, space::base);
  layout->setSpacing(space::inGroup);
  layout->addWidget(chip_);
  layout->addWidget(tag_);
  layout->addWidget(chain_);
  layout->addWidget(sentence_, 1);
  layout->addWidget(narration_, 1);
  narration_->setMinimumWidth(1);
  layout->addWidget(other_);
  other_->setObjectName(QStringLiteral("statusOther"));
  other_->setForegroundRole(QPalette::PlaceholderText);
  other_->hide();
  sentence_->setObjectName(QStringLiteral("stateSentence"));
  chain_->setObjectName(QStringLiteral("attachedLabel"));
  chain_->hide();
  progress_ = addNumber(
      QStringLiteral("statusProgress"),
      tr("micro %1, update %2 of %3, %4 samples")
          .arg(QStringLiteral("00000"), QStringLiteral("00000"), QStringLiteral("00000"), QStringLiteral("000 000")),
      tr("The run's progress on three clocks"));
  speed_ = addNumber(QStringLiteral("statusSpeed"), tr("%1 samples/s").arg(QStringLiteral("00000")),
                     tr("Samples per second over all ranks"));
  ranks_ = addNumber(QStringLiteral("statusRanks"), QString(), tr("Ranks and the backend that connects them"));
  memory_ = addNumber(QStringLiteral("statusMemory"), QString(), tr("Resident memory of all ranks"));
  frames_ = addNumber(QStringLiteral("statusFrames"), tr("%1 fps").arg(QStringLiteral("00")),
                      tr("Frames that this window drew in the last second"));
  frame_clock_.start();
}

QLabel* StatusRow::addNumber(const QString& object_name, const QString& sample, const QString& help) {
  auto* label = new QLabel(this);
  label->setObjectName(object_name);
  label->setFont(tabularFont(TextSize::small));
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setToolTip(help);
  label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  // Reserves space for the widest number, so that a live one never moves its neighbours.
  if (!sample.isEmpty()) label->setMinimumWidth(label->fontMetrics().horizontalAdvance(sample));
  label->setContentsMargins(0, 0, space::inGroup, 0);
  label->hide();
  layout()->addWidget(label);
  return label;
}

void StatusRow::refresh(const RunSeries* run, RunState state, RunHost host, const QString& backend,
                        const QString& obstacle) {
  state_ = state;
  const bool stopped = isStopped(run, state);
  const bool kept = !run && state == RunState::idle && !obstacle.isEmpty();
  chip_->setLook(stopped ? RunState::idle : state, kept ? tr("Not ready") : stateWord(run, state),
                 stopped ? themedIcon(QStringLiteral("stop")) : stateIcon(state));
  tag_->setRun(run);
  chain_->setVisible(host == RunHost::attached || host == RunHost::viewed);
  chain_->setText(host == RunHost::viewed ? tr("Viewing") : tr("Attached"));
  chain_->setToolTip(host == RunHost::viewed
                         ? tr("Another process hosts this run and takes no commands from this window")
                         : tr("Another process hosts this run; it continues when this window closes"));
  const bool has_run = run != nullptr;
  sentence_->setFullText(host == RunHost::unfollowed    ? tr("as it was when opened; Attach follows it")
                         : has_run                      ? stateSentence(*run, state)
                         : state == RunState::preflight ? tr("spec, data, memory and devices")
                         : kept                         ? obstacle
                                                        : tr("press F5 to run"));
  done_ = -1.0;
  if (has_run)
    showNumbers(*run, backend);
  else
    for (QLabel* label : {progress_, speed_, ranks_, memory_}) label->clear();
  fitNumbers();
  update();
}

void StatusRow::showOther(const RunSeries* run) {
  other_->setVisible(run != nullptr);
  if (!run) return;
  const QString what =
      run->state() == RunState::paused ? tr("%1 is paused: update %2") : tr("%1 is training: update %2");
  other_->setText(what.arg(run->name(), groupedNumber(run->last().update)));
  other_->setToolTip(tr("Pause, the steps and Stop act on that run"));
}

void StatusRow::showNumbers(const RunSeries& run, const QString& backend) {
  const LastValues& last = run.last();
  progress_->setText(last.plannedUpdates > 0 ? tr("micro %1, update %2 of %3, %4 samples")
                                                   .arg(groupedNumber(last.microStep), groupedNumber(last.update),
                                                        groupedNumber(last.plannedUpdates), groupedNumber(last.samples))
                                             : tr("micro %1, update %2, %3 samples")
                                                   .arg(groupedNumber(last.microStep), groupedNumber(last.update),
                                                        groupedNumber(last.samples)));
  const bool live = is_live(run.state());
  speed_->setText(std::isfinite(run.pace()) ? tr("%1 samples/s").arg(groupedNumber(std::llround(run.pace())))
                                            : QString());
  const auto count = static_cast<int>(run.ranks());
  const QString ranks = count == 1 ? tr("1 rank") : tr("%n ranks", nullptr, count);
  //: How many ranks and the backend they use, e.g. "2 ranks, shm"
  ranks_->setText(backend.isEmpty() ? ranks : tr("%1, %2").arg(ranks, backend));
  memory_->setText(last.memoryBytes > 0 ? bytesText(last.memoryBytes) : QString());
  if (live && last.plannedUpdates > 0)
    done_ = static_cast<double>(last.update) / static_cast<double>(last.plannedUpdates);
}

void StatusRow::countFrame() {
  ++frame_count_;
  if (frame_clock_.elapsed() < 1000) return;
  const auto frames =
      static_cast<int>(std::lround(1000.0 * frame_count_ / static_cast<double>(frame_clock_.restart())));
  frame_count_ = 0;
  frames_->setText(tr("%1 fps").arg(frames));
  fitNumbers();
}

QSize StatusRow::minimumSizeHint() const {
  const int needed = chip_->sizeHint().width() + tag_->minimumSizeHint().width() +
                     sentence_->minimumSizeHint().width() + 4 * space::inGroup;
  return {needed, QWidget::minimumSizeHint().height()};
}

void StatusRow::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fitNumbers();
}

void StatusRow::fitNumbers() {
  int room = width() - 2 * space::inGroup;
  for (const QWidget* kept : std::initializer_list<QWidget*>{chip_, tag_, chain_, sentence_, other_})
    if (!kept->isHidden()) room -= kept->sizeHint().width() + space::inGroup;
  // The most important first: if one does not fit, the following ones are dropped too.
  for (QLabel* label : {progress_, speed_, ranks_, memory_, frames_}) {
    if (label->text().isEmpty()) {
      label->hide();
      continue;
    }
    room -= std::max(label->sizeHint().width(), label->minimumWidth()) + space::inGroup;
    label->setVisible(room >= 0);
  }
}

QString StatusRow::sentence() const {
  return sentence_->fullText();
}

QString StatusRow::word() const {
  return chip_->word();
}

void StatusRow::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.fillRect(QRect(0, 0, width(), 1), colors.hairline);
  if (done_ >= 0.0)
    painter.fillRect(QRect(0, 0, static_cast<int>(std::lround(width() * done_)), 2), stateColor(colors, state_));
}

}  // namespace accrue::ui

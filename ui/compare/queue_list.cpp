// SPDX-License-Identifier: GPL-3.0-or-later
#include "queue_list.h"

#include <QAction>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QSignalBlocker>
#include <QToolButton>
#include <algorithm>
#include <tuple>

#include "kit/actions.h"
#include "kit/theme.h"
#include "live/run_queue.h"

namespace accrue::ui {

QueueList::QueueList(RunQueue* queue, QWidget* parent)
    : QWidget(parent),
      queue_(queue),
      list_(new QListWidget(this)),
      up_(new QToolButton(this)),
      down_(new QToolButton(this)),
      remove_(new QToolButton(this)) {
  setObjectName(QStringLiteral("queueList"));
  list_->setObjectName(QStringLiteral("queueRuns"));
  list_->setAccessibleName(tr("Runs that wait"));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setUniformItemSizes(true);
  auto* title = new QLabel(tr("Waiting"), this);
  title->setFont(textFont(TextSize::small, QFont::DemiBold));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::base, space::inGroup, space::base);
  layout->setSpacing(space::inGroup);
  layout->addWidget(title, 0, Qt::AlignTop);
  layout->addWidget(list_, 1);
  const std::tuple<QToolButton*, Command, const char*, QString> buttons[] = {
      {up_, Command::queueUp, "queueUp", tr("Up")},
      {down_, Command::queueDown, "queueDown", tr("Down")},
      {remove_, Command::queueRemove, "queueRemove", tr("Remove")}};
  for (const auto& [button, command, name, text] : buttons) {
    QAction* act = makeAction(command, this);
    act->setIconText(text);
    addAction(act);
    button->setDefaultAction(act);
    button->setObjectName(QLatin1String(name));
    button->setAccessibleName(act->toolTip());
    button->setAutoRaise(true);
    button->setFocusPolicy(Qt::TabFocus);
    layout->addWidget(button, 0, Qt::AlignTop);
  }
  connect(up_->defaultAction(), &QAction::triggered, this, [this] { move(-1); });
  connect(down_->defaultAction(), &QAction::triggered, this, [this] { move(1); });
  connect(remove_->defaultAction(), &QAction::triggered, this, &QueueList::removeCurrent);
  connect(queue_, &RunQueue::changed, this, &QueueList::showQueue);
  connect(queue_, &RunQueue::finished, this, &QueueList::showQueue);
  showQueue();
}

void QueueList::showQueue() {
  const int row = std::max(list_->currentRow(), 0);
  const QSignalBlocker quiet(list_);
  list_->clear();
  const auto& runs = queue_->runs();
  for (std::size_t i = 0; queue_->isActive() && i < runs.size(); ++i) {
    if (runs[i].state != QueuedState::waiting) continue;
    auto* item = new QListWidgetItem(queue_->labelOf(i), list_);
    item->setData(Qt::UserRole, static_cast<int>(i));
  }
  list_->setCurrentRow(std::min(row, list_->count() - 1));
  setVisible(list_->count() > 0);
  constexpr int most_lines = 4;
  const int lines = std::clamp(list_->count(), 1, most_lines);
  list_->setFixedHeight(lines * (list_->sizeHintForRow(0) > 0 ? list_->sizeHintForRow(0) : space::page));
}

int QueueList::current() const {
  const QListWidgetItem* item = list_->currentItem();
  return item ? item->data(Qt::UserRole).toInt() : -1;
}

void QueueList::move(int by) {
  const int row = list_->currentRow();
  if (current() >= 0 && queue_->move(static_cast<std::size_t>(current()), by)) list_->setCurrentRow(row + by);
}

void QueueList::removeCurrent() {
  if (current() >= 0) queue_->remove(static_cast<std::size_t>(current()));
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "place_keeper.h"

#include <QApplication>
#include <QCursor>
#include <QScrollArea>
#include <QScrollBar>
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kit/theme.h"

namespace accrue::ui {

namespace {

/// Within it what follows an edit is laid out, which takes turns of the event loop.
constexpr int hold_ms = 250;

}  // namespace

PlaceKeeper::PlaceKeeper(QScrollArea* area, std::function<std::vector<QWidget*>()> fields)
    : QObject(area), area_(area), fields_(std::move(fields)) {
  hold_.setSingleShot(true);
  hold_.setInterval(hold_ms);
  const auto let_go = [this] { held_ = nullptr; };
  connect(&hold_, &QTimer::timeout, this, let_go);
  connect(area_->verticalScrollBar(), &QScrollBar::valueChanged, this, let_go);
  // Scrolling or focusing another field means that the user looks elsewhere.
  connect(area_->verticalScrollBar(), &QScrollBar::actionTriggered, this, [this] { in_sight_ = nullptr; });
  connect(qApp, &QApplication::focusChanged, this, [this](const QWidget*, const QWidget* now) {
    if (now && now != in_sight_ && area_->widget()->isAncestorOf(now)) in_sight_ = nullptr;
  });
}

QWidget* PlaceKeeper::placeToHold() const {
  const QWidget* view = area_->viewport();
  const QWidget* page = area_->widget();
  const QPoint pointer = view->mapFromGlobal(QCursor::pos());
  if (!view->rect().contains(pointer)) {
    QWidget* focus = area_->window()->focusWidget();
    return focus && page->isAncestorOf(focus) ? focus : nullptr;
  }
  QWidget* pointed = page->childAt(page->mapFrom(view, pointer));
  if (pointed && pointed->focusPolicy() != Qt::NoFocus) return pointed;
  QWidget* nearest = nullptr;
  int least = view->height();
  for (QWidget* field : fields_()) {
    const int away = std::abs(field->mapTo(view, field->rect().center()).y() - pointer.y());
    if (away < least) nearest = field;
    least = std::min(least, away);
  }
  return nearest;
}

void PlaceKeeper::hold() {
  if (held_ || !area_->isVisible()) return;
  held_ = placeToHold();
  if (held_) held_at_ = held_->mapTo(area_->viewport(), QPoint()).y();
  hold_.start();
}

void PlaceKeeper::keepPlace() {
  if (!held_ || !held_->isVisible()) return;
  int moved = held_->mapTo(area_->viewport(), QPoint()).y() - held_at_;
  // Keep the field that has the focus in sight.
  const QWidget* focus = area_->window()->focusWidget();
  if (focus && area_->widget()->isAncestorOf(focus))
    if (const int above = focus->mapTo(area_->viewport(), QPoint()).y(); above >= 0) moved = std::min(moved, above);
  const QPointer<QWidget> held = held_;  // scrolling lets it go
  area_->verticalScrollBar()->setValue(area_->verticalScrollBar()->value() + moved);
  held_ = held;
}

void PlaceKeeper::pageResized() {
  keepPlace();
  keepInSight();
}

void PlaceKeeper::scrollTo(QWidget* field) {
  held_ = nullptr;
  in_sight_ = field;
  area_->ensureWidgetVisible(field, 0, space::page);
  keepInSight();
}

void PlaceKeeper::letGo() {
  held_ = nullptr;
  in_sight_ = nullptr;
}

/// Scrolls after the next layout, when a field that was just opened or resized has its place.
void PlaceKeeper::keepInSight() {
  if (!in_sight_) return;
  QTimer::singleShot(0, this, [this] {
    if (in_sight_ && in_sight_->isVisible()) area_->ensureWidgetVisible(in_sight_, 0, space::page);
  });
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "layout_restorer.h"

#include <QEvent>
#include <QTimer>
#include <chrono>
#include <utility>

namespace accrue::ui {

LayoutRestorer::LayoutRestorer(QMainWindow* window, QSize size, std::function<void()> restore)
    : QObject(window), window_(window), size_(size), restore_(std::move(restore)) {
  window->installEventFilter(this);
}

bool LayoutRestorer::eventFilter(QObject* object, QEvent* event) {
  switch (event->type()) {
    case QEvent::Show:
    case QEvent::Resize:
      if (restore_ && window_->isVisible() && window_->size() == size_) {
        // After the layout for the new size.
        QTimer::singleShot(0, this, [this] {
          if (!restore_ || window_->size() != size_) return;
          restore_();
          // A window manager may set the size more than once, but not for long.
          QTimer::singleShot(std::chrono::seconds(1), this, &LayoutRestorer::disarm);
        });
      }
      break;
    case QEvent::KeyPress:
    case QEvent::MouseButtonPress:
    case QEvent::Close:
      disarm();
      break;
    default:
      break;
  }
  return QObject::eventFilter(object, event);
}

void LayoutRestorer::disarm() {
  restore_ = nullptr;
  window_->removeEventFilter(this);
  deleteLater();
}

void forgetSavedLayout(QMainWindow* window) {
  for (auto* restorer : window->findChildren<LayoutRestorer*>()) restorer->disarm();
}

}  // namespace accrue::ui

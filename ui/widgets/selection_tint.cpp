// SPDX-License-Identifier: GPL-3.0-or-later
#include "selection_tint.h"

#include <QAbstractItemView>
#include <QEvent>
#include <QScopedValueRollback>

#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr double tint = 0.12;

}  // namespace

SelectionTint::SelectionTint(QAbstractItemView* view) : QObject(view), view_(view) {
  view_->installEventFilter(this);
  apply();
}

bool SelectionTint::eventFilter(QObject* object, QEvent* event) {
  const bool done = QObject::eventFilter(object, event);
  if (object == view_ && event->type() == QEvent::PaletteChange && !applying_) apply();
  return done;
}

void SelectionTint::apply() {
  const QScopedValueRollback guard(applying_, true);
  const ThemeColors colors = themeColors(view_->palette());
  QPalette tinted = view_->palette();
  tinted.setColor(QPalette::Highlight, mixed(colors.accent, colors.surface, tint));
  tinted.setColor(QPalette::HighlightedText, colors.text);
  view_->setPalette(tinted);
}

}  // namespace accrue::ui

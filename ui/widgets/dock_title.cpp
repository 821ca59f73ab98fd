// SPDX-License-Identifier: GPL-3.0-or-later
#include "dock_title.h"

#include <QDockWidget>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMainWindow>
#include <QPainter>
#include <QTimer>
#include <QToolButton>
#include <algorithm>

#include "kit/text_scale.h"
#include "kit/theme.h"

namespace accrue::ui {

DockTitle::DockTitle(QDockWidget* dock)
    : QWidget(dock),
      dock_(dock),
      layout_(new QHBoxLayout(this)),
      name_(new QLabel(dock->windowTitle(), this)),
      close_(new QToolButton(this)) {
  layout_->setContentsMargins(space::betweenGroups, space::base, space::inGroup, space::base);
  layout_->setSpacing(space::inGroup);
  name_->setFont(textFont(TextSize::body, QFont::DemiBold));
  layout_->addWidget(name_);
  layout_->addStretch(1);
  layout_->addWidget(close_);
  close_->setObjectName(QStringLiteral("%1.close").arg(dock->objectName()));
  close_->setAutoRaise(true);
  close_->setIcon(themedIcon(QStringLiteral("clear")));
  fitIcon();
  close_->setFocusPolicy(Qt::TabFocus);
  close_->setAccessibleName(tr("Hide %1").arg(dock->windowTitle()));
  close_->setToolTip(close_->accessibleName());
  connect(close_, &QToolButton::clicked, dock, &QDockWidget::close);
  dock->installEventFilter(this);
}

void DockTitle::fitIcon() {
  const int side = iconSide() * 3 / 4;
  close_->setIconSize({side, side});
}

void DockTitle::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) fitIcon();
}

bool DockTitle::hasTab() const {
  const auto* window = qobject_cast<const QMainWindow*>(dock_->window());
  if (!window || dock_->isFloating()) return false;
  const QList<QDockWidget*> beside = window->tabifiedDockWidgets(dock_);
  return std::ranges::any_of(beside, [](const QDockWidget* dock) { return !dock->isHidden(); });
}

/// Tabs appear and disappear with neighbouring docks, which moves this one.
bool DockTitle::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::Show || event->type() == QEvent::Resize || event->type() == QEvent::Move)
    QTimer::singleShot(0, this, [this] { name_->setVisible(!hasTab()); });
  return QWidget::eventFilter(object, event);
}

void DockTitle::addControl(QWidget* control, int stretch) {
  layout_->insertWidget(layout_->count() - 1, control, stretch);
  if (stretch > 0) layout_->setStretch(layout_->indexOf(control) - 1, 0);  // the space before it
}

void DockTitle::addTag(QWidget* tag) {
  layout_->insertWidget(1, tag);
}

QSize DockTitle::minimumSizeHint() const {
  return QWidget::minimumSizeHint().expandedTo(QSize(0, name_->isHidden() ? 24 : 32));
}

void DockTitle::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(QRect(0, height() - 1, width(), 1), themeColors(palette()).hairline);
}

}  // namespace accrue::ui

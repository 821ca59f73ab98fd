// SPDX-License-Identifier: GPL-3.0-or-later
#include "dock_title.h"

#include <QDockWidget>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>

#include "style/theme.h"

namespace accrue::ui {

DockTitle::DockTitle(QDockWidget* dock) : QWidget(dock), layout_(new QHBoxLayout(this)), close_(new QToolButton(this)) {
  layout_->setContentsMargins(space::betweenGroups, space::base, space::inGroup, space::base);
  layout_->setSpacing(space::inGroup);
  auto* name = new QLabel(dock->windowTitle(), this);
  name->setFont(textFont(TextSize::body, QFont::DemiBold));
  layout_->addWidget(name);
  layout_->addStretch(1);
  layout_->addWidget(close_);
  close_->setObjectName(QStringLiteral("%1.close").arg(dock->objectName()));
  close_->setAutoRaise(true);
  close_->setIcon(themedIcon(QStringLiteral("clear")));
  close_->setIconSize(QSize(12, 12));
  close_->setFocusPolicy(Qt::TabFocus);
  close_->setAccessibleName(tr("Hide %1").arg(dock->windowTitle()));
  close_->setToolTip(close_->accessibleName());
  connect(close_, &QToolButton::clicked, dock, &QDockWidget::close);
}

void DockTitle::addControl(QWidget* control, int stretch) {
  layout_->insertWidget(layout_->count() - 1, control, stretch);
}

void DockTitle::addTag(QWidget* tag) {
  layout_->insertWidget(1, tag);
}

QSize DockTitle::minimumSizeHint() const {
  return QWidget::minimumSizeHint().expandedTo(QSize(0, 32));
}

void DockTitle::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(QRect(0, height() - 1, width(), 1), themeColors(palette()).hairline);
}

}  // namespace accrue::ui

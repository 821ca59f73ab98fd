// SPDX-License-Identifier: GPL-3.0-or-later
#include "scrolled.h"

#include <QVBoxLayout>

namespace accrue::ui {

QScrollArea* scrolled(QWidget* page, QWidget* panel, Qt::ScrollBarPolicy sideways) {
  auto* scroll = new QScrollArea(panel);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(sideways);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setWidget(page);
  return scroll;
}

QScrollArea* fillScrolled(QWidget* panel, QWidget* page, Qt::ScrollBarPolicy sideways) {
  QScrollArea* scroll = scrolled(page, panel, sideways);
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);
  return scroll;
}

}  // namespace accrue::ui

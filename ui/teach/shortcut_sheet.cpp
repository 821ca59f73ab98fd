// SPDX-License-Identifier: GPL-3.0-or-later
#include "shortcut_sheet.h"

#include <QGridLayout>
#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>

#include "kit/actions.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

void addRow(QGridLayout* grid, const QString& what, const QString& keys) {
  const int row = grid->rowCount();
  auto* name = new QLabel(what);
  auto* key = new QLabel(keys);
  key->setFont(codeFont());
  grid->addWidget(name, row, 0);
  grid->addWidget(key, row, 1);
}

void addTitle(QGridLayout* grid, const QString& text) {
  const int row = grid->rowCount();
  auto* title = new QLabel(text);
  title->setFont(textFont(TextSize::body, QFont::DemiBold));
  title->setContentsMargins(0, row > 1 ? space::betweenGroups : 0, 0, space::base);
  grid->addWidget(title, row, 0, 1, 2);
}

}  // namespace

ShortcutSheet::ShortcutSheet(const Actions& actions, QWidget* parent) : QDialog(parent) {
  setObjectName(QStringLiteral("shortcutSheet"));
  setWindowTitle(tr("Keyboard shortcuts"));
  auto* content = new QWidget;
  auto* grid = new QGridLayout(content);
  grid->setContentsMargins(space::page, space::page, space::page, space::page);
  grid->setHorizontalSpacing(space::page);
  grid->setVerticalSpacing(space::base);
  grid->setColumnStretch(0, 1);
  addTitle(grid, tr("Everywhere"));
  // Keys that work only while the runs have the focus get their own heading.
  const auto addActions = [&](bool in_runs) {
    for (const QAction* action : actions.all())
      if (!action->shortcuts().isEmpty() && (action->shortcutContext() == Qt::WidgetWithChildrenShortcut) == in_runs)
        addRow(grid, action->iconText(), keysText(*action));
  };
  addActions(false);
  addTitle(grid, tr("In the runs table"));
  addActions(true);
  addTitle(grid, tr("In a focused plot"));
  for (const QAction* action : actions.all())
    if (action->shortcuts().isEmpty() && action->text().contains(QLatin1Char('\t')))
      addRow(grid, action->text().section(QLatin1Char('\t'), 0, 0).remove(QLatin1Char('&')), keysText(*action));
  addRow(grid, tr("Pan, five times as far with Shift"), tr("Arrows"));
  addRow(grid, tr("Zoom in, out"), QStringLiteral("+  -"));
  addRow(grid, tr("Zoom back, forward"), tr("Backspace  Shift+Backspace"));
  addRow(grid, tr("Pause or continue"), tr("Space"));
  addTitle(grid, tr("On the start page"));
  addRow(grid, tr("Choose a card"), QStringLiteral("1 \u2026 9"));
  auto* scroll = new QScrollArea(this);
  scroll->setObjectName(QStringLiteral("shortcutScroll"));
  scroll->setAccessibleName(tr("Keyboard shortcuts"));
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setWidget(content);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);
  resize(480, 560);
}

}  // namespace accrue::ui

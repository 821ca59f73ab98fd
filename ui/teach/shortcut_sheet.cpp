// SPDX-License-Identifier: GPL-3.0-or-later
#include "shortcut_sheet.h"

#include <QGridLayout>
#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>
#include <utility>

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
  const std::pair<KeyPlace, QString> places[] = {{KeyPlace::anywhere, tr("Everywhere")},
                                                 {KeyPlace::inRuns, tr("In the runs table")},
                                                 {KeyPlace::inQueue, tr("In the list of waiting runs")},
                                                 {KeyPlace::inPlots, tr("In a focused plot")},
                                                 {KeyPlace::onStartPage, tr("On the start page")},
                                                 {KeyPlace::inManual, tr("In the manual")}};
  for (const auto& [place, title] : places) {
    addTitle(grid, title);
    for (const ListedCommand& each : actions.list())
      if (const QStringList keys = each.keys(); each.row->place == place && !keys.isEmpty())
        addRow(grid, each.name(), keys.join(QStringLiteral("  ")));
  }
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

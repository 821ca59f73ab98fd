// SPDX-License-Identifier: GPL-3.0-or-later
#include "groups_sheet.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSignalBlocker>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "accrue/run/fields/spec_fields.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "run_library.h"
#include "series/run_groups.h"

namespace accrue::ui {

GroupsSheet::GroupsSheet(RunLibrary* library, QWidget* parent)
    : QDialog(parent),
      library_(library),
      key_(new QComboBox(this)),
      table_(new QTreeWidget(this)),
      said_(new QLabel(this)) {
  setObjectName(QStringLiteral("groupsSheet"));
  setWindowTitle(tr("Groups of runs"));
  key_->setObjectName(QStringLiteral("groupsKey"));
  key_->setAccessibleName(tr("Group by"));
  table_->setObjectName(QStringLiteral("groupsTable"));
  table_->setAccessibleName(windowTitle());
  table_->setHeaderLabels({tr("Group"), tr("Runs"), tr("Mean loss"), tr("Spread"), tr("Least"), tr("Most")});
  table_->headerItem()->setToolTip(3, tr("Standard deviation of one run's last loss"));
  table_->setRootIsDecorated(true);
  table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  table_->setFrameShape(QFrame::NoFrame);
  said_->setObjectName(QStringLiteral("groupsSaid"));
  said_->setWordWrap(true);
  auto* top = new QHBoxLayout;
  top->addWidget(new QLabel(tr("Group by"), this));
  top->addWidget(key_);
  top->addStretch(1);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::page, space::page, space::page, space::betweenGroups);
  layout->setSpacing(space::betweenGroups);
  layout->addLayout(top);
  layout->addWidget(table_, 1);
  layout->addWidget(said_);
  layout->addWidget(buttons);
  resize(680, 420);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
  connect(key_, &QComboBox::currentIndexChanged, this, &GroupsSheet::showGroups);
  connect(table_, &QTreeWidget::itemSelectionChanged, this, &GroupsSheet::showSentence);
  connect(library_, &RunLibrary::refreshed, this, [this] {
    if (isVisible()) refresh();
  });
}

void GroupsSheet::refresh() {
  const QString chosen = key_->currentData().toString();
  {
    const QSignalBlocker quiet(key_);
    key_->clear();
    key_->addItem(tr("all but the seed"), QString());
    for (const QString& key : groupKeys(library_->table()->runs()))
      key_->addItem(fromView(find_field(key.toStdString())->label), key);
    key_->setCurrentIndex(std::max(key_->findData(chosen), 0));
  }
  showGroups();
}

void GroupsSheet::showGroups() {
  {
    const QSignalBlocker quiet(table_);
    table_->clear();
    const QString key = key_->currentData().toString();
    for (const RunGroup& group : runGroups(library_->table()->runs(), key)) {
      const SampleSpread& spread = group.spread;
      auto* row = new QTreeWidgetItem(table_, {group.name, QString::number(group.runs.size()), valueText(spread.mean),
                                               spread.count > 1 ? valueText(spread.deviation, 3) : QString(),
                                               valueText(spread.least), valueText(spread.most)});
      for (int column = 1; column < table_->columnCount(); ++column)
        row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
      for (const RunSeries* run : group.runs) {
        auto* one = new QTreeWidgetItem(row, {run->name(), QString(), valueText(run->last().loss)});
        one->setTextAlignment(2, Qt::AlignRight | Qt::AlignVCenter);
        one->setFlags(Qt::ItemIsEnabled);
      }
    }
    for (int row = 0; row < std::min(table_->topLevelItemCount(), 2); ++row)
      table_->topLevelItem(row)->setSelected(true);
    for (int column = 0; column < table_->columnCount(); ++column) table_->resizeColumnToContents(column);
  }
  showSentence();
}

void GroupsSheet::showSentence() {
  const std::vector<RunGroup> groups = runGroups(library_->table()->runs(), key_->currentData().toString());
  std::vector<const RunGroup*> chosen;
  for (int row = 0; row < table_->topLevelItemCount(); ++row)
    if (table_->topLevelItem(row)->isSelected() && static_cast<std::size_t>(row) < groups.size())
      chosen.push_back(&groups[static_cast<std::size_t>(row)]);
  if (groups.empty())
    said_->setText(tr("No set-up has finished under several seeds. Compare, Run several seeds trains one."));
  else if (chosen.size() == 2)
    said_->setText(noiseSentence(*chosen[0], *chosen[1]));
  else
    said_->setText(tr("Select two groups to see whether their difference is noise."));
}

}  // namespace accrue::ui

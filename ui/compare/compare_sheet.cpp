// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare_sheet.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <cmath>

#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "plots/difference_plot.h"
#include "series/run_pair.h"
#include "series/run_text.h"

namespace accrue::ui {

namespace {

QString finiteText(double value) {
  return std::isfinite(value) ? valueText(value) : QString();
}

QTreeWidgetItem* addPart(QTreeWidget* table, const QString& title) {
  auto* part = new QTreeWidgetItem(table, {title});
  part->setFirstColumnSpanned(true);
  part->setFont(0, textFont(TextSize::body, QFont::DemiBold));
  part->setFlags(Qt::ItemIsEnabled);
  part->setExpanded(true);
  return part;
}

}  // namespace

CompareSheet::CompareSheet(QWidget* parent)
    : QDialog(parent), said_(new QLabel(this)), difference_(new DifferencePlot(this)), table_(new QTreeWidget(this)) {
  setObjectName(QStringLiteral("compareSheet"));
  setWindowTitle(tr("Compare two runs"));
  said_->setObjectName(QStringLiteral("compareSaid"));
  said_->setWordWrap(true);
  table_->setObjectName(QStringLiteral("compareTable"));
  table_->setAccessibleName(windowTitle());
  table_->setColumnCount(3);
  table_->setRootIsDecorated(false);
  table_->setIndentation(space::betweenGroups);
  table_->setFrameShape(QFrame::NoFrame);
  table_->header()->setStretchLastSection(true);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  go_ = buttons->addButton(tr("Go to where they part"), QDialogButtonBox::ActionRole);
  go_->setObjectName(QStringLiteral("compareGo"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::page, space::page, space::page, space::betweenGroups);
  layout->setSpacing(space::betweenGroups);
  layout->addWidget(said_);
  layout->addWidget(difference_);
  layout->addWidget(table_, 1);
  layout->addWidget(buttons);
  resize(680, 520);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
  follow_.setInterval(1000);
  connect(&follow_, &QTimer::timeout, this, &CompareSheet::showRuns);
  connect(go_, &QPushButton::clicked, this, &CompareSheet::partingRequested);
}

void CompareSheet::setRuns(RunSeries* first, RunSeries* second) {
  for (const QPointer<RunSeries>& run : {first_, second_})
    if (run) disconnect(run, nullptr, this, nullptr);
  first_ = first;
  second_ = second;
  for (RunSeries* run : {first, second}) connect(run, &RunSeries::stateChanged, this, &CompareSheet::showRuns);
  showRuns();
}

void CompareSheet::showRuns() {
  if (!first_ || !second_) return;
  table_->clear();
  table_->setHeaderLabels({QString(), first_->name(), second_->name()});
  QTreeWidgetItem* keys = addPart(table_, tr("Keys that differ"));
  for (const SpecDifference& difference : changedKeys(*first_, *second_)) {
    const SpecField* field = find_field(difference.key);
    auto* row =
        new QTreeWidgetItem(keys, {field ? fromView(field->label) : QString::fromStdString(difference.key),
                                   QString::fromStdString(difference.left), QString::fromStdString(difference.right)});
    row->setToolTip(0, QString::fromStdString(difference.key));
  }
  const bool known = first_->spec() && second_->spec();
  if (keys->childCount() == 0)
    new QTreeWidgetItem(keys, {known ? tr("None: the specs are equal") : tr("Not known: an imported log has no spec")});
  QTreeWidgetItem* ends = addPart(table_, tr("How they stand"));
  const LastValues& a = first_->last();
  const LastValues& b = second_->last();
  const auto add = [ends](const QString& name, const QString& left, const QString& right) {
    if (!left.isEmpty() || !right.isEmpty()) new QTreeWidgetItem(ends, {name, left, right});
  };
  add(tr("State"), stateWord(first_, first_->state()), stateWord(second_, second_->state()));
  add(tr("Updates"), groupedNumber(a.update), groupedNumber(b.update));
  add(tr("Samples"), groupedNumber(a.samples), groupedNumber(b.samples));
  add(tr("Loss"), finiteText(a.loss), finiteText(b.loss));
  add(tr("Samples/s"), finiteText(first_->pace()), finiteText(second_->pace()));
  add(tr("Exact"), first_->lamp().word(), second_->lamp().word());
  const QString& left = first_->outcome().weightsSha256;
  const QString& right = second_->outcome().weightsSha256;
  if (!left.isEmpty() && !right.isEmpty())
    add(tr("Final weights"), left == right ? tr("equal in every bit") : tr("differ in at least one bit"), QString());
  table_->expandAll();
  for (const int column : {0, 1}) table_->resizeColumnToContents(column);
  const PairComparison compared = comparisonOf(*first_, *second_);
  difference_->setRuns(first_->name(), second_->name(), plotClock(compared.clock));
  difference_->setPoints(compared.points);
  if (isVisible() && (first_->isLive() || second_->isLive()))
    follow_.start();
  else
    follow_.stop();
  said_->setText(partingSentence(*first_, *second_, compared));
  go_->setEnabled(compared.distance.parting.has_value());
}

}  // namespace accrue::ui

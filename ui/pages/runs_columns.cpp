// SPDX-License-Identifier: GPL-3.0-or-later
#include "runs_columns.h"

#include <QAbstractItemView>
#include <QEvent>
#include <QHeaderView>
#include <QScopedValueRollback>
#include <QTreeView>
#include <algorithm>
#include <cmath>

#include "models/run_table_model.h"
#include "style/text_scale.h"

namespace accrue::ui {

namespace {

struct ColumnWidth {
  RunTableModel::Column column;
  int usual, least;
  bool may_hide;
};

/// In the order in which they are hidden.
constexpr ColumnWidth fixed_widths[] = {
    {RunTableModel::rateColumn, 84, 64, true},       {RunTableModel::ranksColumn, 60, 44, true},
    {RunTableModel::microBatchColumn, 60, 44, true}, {RunTableModel::updatesColumn, 84, 84, true},
    {RunTableModel::stepsColumn, 60, 44, true},      {RunTableModel::exactColumn, 84, 64, true},
    {RunTableModel::weightsColumn, 84, 84, true},    {RunTableModel::stateColumn, 112, 88, false},
    {RunTableModel::nameColumn, 256, 150, false},    {RunTableModel::lossColumn, 84, 64, false},
    {RunTableModel::deltaColumn, 84, 64, false},     {RunTableModel::changesColumn, 220, 110, false}};
/// Of a key in which runs differ.
constexpr int key_usual = 84;
constexpr int key_least = 60;
constexpr int narrowest = 32;
/// Four weights of ten digits are more than this, and the tooltip's.
constexpr int widest_weights = 240;

int scaled(double width) {
  return static_cast<int>(std::lround(width * textScale()));
}

}  // namespace

RunsColumns::RunsColumns(QTreeView* view, const RunTableModel* table) : QObject(view), view_(view), table_(table) {
  QHeaderView* header = view->header();
  header->setMinimumSectionSize(narrowest);
  header->setStretchLastSection(true);
  view->viewport()->installEventFilter(this);
  connect(header, &QHeaderView::sectionResized, this, [this](int section, int, int now) { keepOwn(section, now); });
  const QAbstractItemModel* shown = view->model();
  const auto begin_change = [this] { changing_ = true; };
  const auto end_change = [this] {
    changing_ = false;
    fit();
  };
  connect(shown, &QAbstractItemModel::columnsAboutToBeInserted, this, begin_change);
  connect(shown, &QAbstractItemModel::columnsAboutToBeRemoved, this, begin_change);
  connect(shown, &QAbstractItemModel::columnsInserted, this, end_change);
  connect(shown, &QAbstractItemModel::columnsRemoved, this, end_change);
  // What sorts the table has removed a column before the table itself has.
  connect(table, &QAbstractItemModel::columnsRemoved, this, &RunsColumns::fit);
  connect(shown, &QAbstractItemModel::dataChanged, this, &RunsColumns::widenWeights);
  fit();
}

bool RunsColumns::eventFilter(QObject* object, QEvent* event) {
  const bool done = QObject::eventFilter(object, event);
  if (event->type() == QEvent::Resize || event->type() == QEvent::FontChange) fit();
  return done;
}

QString RunsColumns::nameOf(int section) const {
  for (const ColumnWidth& fixed : fixed_widths)
    if (table_->sectionOf(fixed.column) == section) return QString::number(fixed.column);
  return table_->headerData(section, Qt::Horizontal, RunTableModel::fieldKeyRole).toString();
}

/// The last section takes what the others leave, and the header makes room itself while columns come and go; that says
/// nothing.
void RunsColumns::keepOwn(int section, int width) {
  if (fitting_ || changing_) return;
  const QHeaderView* header = view_->header();
  int last = header->count() - 1;
  while (last > 0 && header->isSectionHidden(header->logicalIndex(last))) --last;
  if (width <= 0 || section == header->logicalIndex(last)) return;
  own_[nameOf(section)] = width / textScale();
  giveNameTheRest(wanted());
}

/// A name is what is cut first, so it takes what the others leave, unless a user has said how wide it is.
void RunsColumns::giveNameTheRest(const std::vector<Width>& widths) {
  QHeaderView* header = view_->header();
  const int name = table_->sectionOf(RunTableModel::nameColumn);
  if (name < 0 || own_.contains(nameOf(name))) return;
  int rest = view_->viewport()->width();
  for (int section = 0; section < static_cast<int>(widths.size()); ++section)
    if (section != name)
      rest -= std::min(header->sectionSize(section), widths[static_cast<std::size_t>(section)].usual);
  const QScopedValueRollback guard(fitting_, true);
  header->resizeSection(name, std::max(rest, widths[static_cast<std::size_t>(name)].least));
}

void RunsColumns::widenWeights() {
  const int section = table_->sectionOf(RunTableModel::weightsColumn);
  if (section < 0 || changing_ || view_->isColumnHidden(section)) return;
  if (wanted()[static_cast<std::size_t>(section)].usual > view_->columnWidth(section)) fit();
}

std::vector<RunsColumns::Width> RunsColumns::wanted() const {
  const auto count = static_cast<std::size_t>(view_->header()->count());
  std::vector<Width> widths(count, Width{scaled(key_usual), scaled(key_least)});
  for (const ColumnWidth& fixed : fixed_widths)
    if (const int section = table_->sectionOf(fixed.column); section >= 0 && section < view_->header()->count())
      widths[static_cast<std::size_t>(section)] = {scaled(fixed.usual), scaled(fixed.least)};
  // Weights are there to be read, digit by digit.
  if (const int section = table_->sectionOf(RunTableModel::weightsColumn);
      section >= 0 && section < static_cast<int>(count)) {
    Width& weights = widths[static_cast<std::size_t>(section)];
    const int needed = static_cast<const QAbstractItemView*>(view_)->sizeHintForColumn(section);
    weights.usual = weights.least = std::clamp(needed, weights.least, scaled(widest_weights));
  }
  for (std::size_t section = 0; section < count; ++section) {
    const auto own = own_.constFind(nameOf(static_cast<int>(section)));
    if (own == own_.constEnd()) continue;
    widths[section].usual = scaled(*own);
    widths[section].least = std::min(widths[section].least, widths[section].usual);
  }
  return widths;
}

void RunsColumns::fit() {
  if (fitting_) return;
  const QScopedValueRollback guard(fitting_, true);
  std::vector<Width> widths = wanted();
  int least = 0;
  int usual = 0;
  for (const Width& width : widths) {
    least += width.least;
    usual += width.usual;
  }
  const int room = view_->viewport()->width();
  for (const ColumnWidth& fixed : fixed_widths) {
    const int section = table_->sectionOf(fixed.column);
    if (!fixed.may_hide || section < 0 || section >= static_cast<int>(widths.size()) || least <= room) continue;
    Width& width = widths[static_cast<std::size_t>(section)];
    width.hidden = true;
    least -= width.least;
    usual -= width.usual;
  }
  const int over = std::max(usual - room, 0);
  const int slack = usual - least;
  for (std::size_t at = 0; at < widths.size(); ++at) {
    const Width& width = widths[at];
    const auto section = static_cast<int>(at);
    view_->header()->setSectionHidden(section, width.hidden);
    if (width.hidden) continue;
    const int own_slack = width.usual - width.least;
    const int less = slack > 0 ? std::min(own_slack, (over * own_slack + slack - 1) / slack) : 0;
    view_->header()->resizeSection(section, width.usual - less);
  }
  giveNameTheRest(widths);
}

}  // namespace accrue::ui

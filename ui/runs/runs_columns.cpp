// SPDX-License-Identifier: GPL-3.0-or-later
#include "runs_columns.h"

#include <QAbstractItemView>
#include <QEvent>
#include <QHeaderView>
#include <QScopedValueRollback>
#include <QTreeView>
#include <algorithm>
#include <chrono>
#include <cmath>

#include "kit/text_scale.h"
#include "run_table_model.h"

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
/// Column of a differing key.
constexpr int key_usual = 84;
constexpr int key_least = 60;
constexpr int narrowest = 32;
/// Columns that are as wide as their texts, within limits. Four weights of ten digits exceed them; the tooltip shows
/// these.
struct TextWidth {
  RunTableModel::Column column;
  int most;
  int kept;  ///< fraction of the needed width that is kept if space is short
  bool is_text;
};
constexpr TextWidth text_widths[] = {{RunTableModel::stateColumn, 160, 112, true},
                                     {RunTableModel::nameColumn, 420, 220, true},
                                     {RunTableModel::exactColumn, 180, 144, true},
                                     {RunTableModel::weightsColumn, 240, 84, false}};
/// Maximum number of measured rows, from the first visible one.
constexpr int most_measured = 100;
constexpr std::chrono::milliseconds widen_after{100};

int scaled(double width) {
  return static_cast<int>(std::lround(width * textScale()));
}

}  // namespace

RunsColumns::RunsColumns(QTreeView* view, const RunTableModel* table) : QObject(view), view_(view), table_(table) {
  QHeaderView* header = view->header();
  header->setMinimumSectionSize(narrowest);
  header->setStretchLastSection(true);
  header->setResizeContentsPrecision(most_measured);
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
  // The sort proxy removes a column before the table itself does.
  connect(table, &QAbstractItemModel::columnsRemoved, this, &RunsColumns::fit);
  // Later: a run that reports may be about to disappear, and a live one reports all the time.
  widening_.setSingleShot(true);
  widening_.setInterval(widen_after);
  connect(&widening_, &QTimer::timeout, this, &RunsColumns::widen);
  const auto widen_soon = [this] {
    if (!widening_.isActive()) widening_.start();
  };
  connect(shown, &QAbstractItemModel::dataChanged, this, widen_soon);
  connect(shown, &QAbstractItemModel::rowsInserted, this, widen_soon);
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

/// The last section takes the remaining space, and the header changes widths itself while columns are added or removed;
/// neither is the user's choice.
void RunsColumns::keepOwn(int section, int width) {
  if (fitting_ || changing_) return;
  const QHeaderView* header = view_->header();
  int last = header->count() - 1;
  while (last > 0 && header->isSectionHidden(header->logicalIndex(last))) --last;
  if (width <= 0 || section == header->logicalIndex(last)) return;
  own_[nameOf(section)] = width / textScale();
  giveNameTheRest(wanted());
}

/// A name is shortened first, so it takes the remaining space, unless the user has set its width.
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

void RunsColumns::measure() {
  needs_.clear();
  for (const TextWidth& text : text_widths)
    if (const int section = table_->sectionOf(text.column); section >= 0 && section < view_->header()->count())
      needs_[text.column] = static_cast<const QAbstractItemView*>(view_)->sizeHintForColumn(section);
}

void RunsColumns::widen() {
  const QHash<int, int> before = needs_;
  measure();
  const auto grown = [&](const TextWidth& text) { return needs_.value(text.column) > before.value(text.column); };
  if (std::ranges::any_of(text_widths, grown))
    fit();
  else
    needs_ = before;
}

std::vector<RunsColumns::Width> RunsColumns::wanted() const {
  const auto count = static_cast<std::size_t>(view_->header()->count());
  std::vector<Width> widths(count, Width{scaled(key_usual), scaled(key_least)});
  for (const ColumnWidth& fixed : fixed_widths)
    if (const int section = table_->sectionOf(fixed.column); section >= 0 && section < view_->header()->count())
      widths[static_cast<std::size_t>(section)] = {scaled(fixed.usual), scaled(fixed.least)};
  for (const TextWidth& text : text_widths) {
    const int section = table_->sectionOf(text.column);
    if (section < 0 || section >= static_cast<int>(count)) continue;
    Width& width = widths[static_cast<std::size_t>(section)];
    width.is_text = text.is_text;
    const int needed = needs_.value(text.column);
    width.usual = std::clamp(needed, width.usual, scaled(text.most));
    width.least = std::clamp(needed, width.least, scaled(text.kept));
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
  measure();
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
  int over = std::max(usual - room, 0);
  for (const bool is_text : {false, true}) {
    const auto shrinks = [is_text](const Width& width) { return !width.hidden && width.is_text == is_text; };
    int slack = 0;
    for (const Width& width : widths)
      if (shrinks(width)) slack += width.usual - width.least;
    const int taken = std::min(over, slack);
    over -= taken;
    for (Width& width : widths)
      if (const int own_slack = width.usual - width.least; shrinks(width) && own_slack > 0)
        width.usual -= std::min(own_slack, (taken * own_slack + slack - 1) / slack);
  }
  for (std::size_t at = 0; at < widths.size(); ++at) {
    const auto section = static_cast<int>(at);
    view_->header()->setSectionHidden(section, widths[at].hidden);
    if (!widths[at].hidden) view_->header()->resizeSection(section, widths[at].usual);
  }
  giveNameTheRest(widths);
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_filter.h"

#include <algorithm>

#include "run_table_model.h"
#include "series/run_text.h"

namespace accrue::ui {

namespace {

bool hasWord(const RunSeries& run, const QString& word) {
  const RunNotes& notes = run.notes();
  if (word == QLatin1String("*")) return notes.starred;
  if (word.startsWith(QLatin1Char('#')))
    return std::ranges::any_of(
        notes.tags, [&](const QString& tag) { return tag.startsWith(QStringView(word).mid(1), Qt::CaseInsensitive); });
  const auto holds = [&](const QString& text) { return text.contains(word, Qt::CaseInsensitive); };
  return holds(run.name()) || holds(stateWord(&run, run.state())) || holds(notes.text) ||
         std::ranges::any_of(notes.tags, holds);
}

}  // namespace

RunFilter::RunFilter(QObject* parent) : QSortFilterProxyModel(parent) {
  setSortRole(RunTableModel::sortRole);
}

const RunTableModel& RunFilter::runs() const {
  return *static_cast<const RunTableModel*>(sourceModel());
}

void RunFilter::setText(const QString& text) {
  words_ = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  invalidateFilter();
  refreshKept();
}

void RunFilter::setKept(const RunSeries* run) {
  if (run == kept_) return;
  kept_ = run;
  if (words_.isEmpty()) return;
  invalidateFilter();
  refreshKept();
}

void RunFilter::refreshKept() {
  for (int row = 0; row < rowCount(); ++row) {
    const QModelIndex name = index(row, RunTableModel::nameColumn);
    if (runs().run(mapToSource(name)) == kept_) Q_EMIT dataChanged(name, name);
  }
}

QVariant RunFilter::data(const QModelIndex& index, int role) const {
  const QVariant value = QSortFilterProxyModel::data(index, role);
  const bool marked = role == RunTableModel::marksRole || role == Qt::AccessibleTextRole || role == Qt::ToolTipRole;
  if (!marked || index.column() != RunTableModel::nameColumn || hasWords(mapToSource(index).row())) return value;
  if (role == RunTableModel::marksRole) return value.toStringList() << tr("not matching");
  //: What a row says, and that the filter does not match it
  if (role == Qt::AccessibleTextRole) return tr("%1, not matching").arg(value.toString());
  return tr("%1\nThe filter does not match this run; it is listed because it has the focus").arg(value.toString());
}

bool RunFilter::filterAcceptsRow(int row, const QModelIndex&) const {
  return runs().run(row) == kept_ || hasWords(row);
}

bool RunFilter::hasWords(int row) const {
  const RunSeries* run = runs().run(row);
  return std::ranges::all_of(words_, [&](const QString& word) { return hasWord(*run, word); });
}

bool RunFilter::matches() const {
  for (int row = 0; row < sourceModel()->rowCount(); ++row)
    if (hasWords(row)) return true;
  return false;
}

}  // namespace accrue::ui

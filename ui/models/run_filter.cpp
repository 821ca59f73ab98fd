// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_filter.h"

#include <algorithm>

#include "models/run_table_model.h"
#include "models/run_text.h"

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

void RunFilter::setText(const QString& text) {
  words_ = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  invalidateFilter();
}

void RunFilter::setKept(const RunSeries* run) {
  if (run == kept_) return;
  kept_ = run;
  if (!words_.isEmpty()) invalidateFilter();
}

bool RunFilter::filterAcceptsRow(int row, const QModelIndex&) const {
  return static_cast<const RunTableModel*>(sourceModel())->run(row) == kept_ || hasWords(row);
}

bool RunFilter::hasWords(int row) const {
  const RunSeries* run = static_cast<const RunTableModel*>(sourceModel())->run(row);
  return std::ranges::all_of(words_, [&](const QString& word) { return hasWord(*run, word); });
}

bool RunFilter::matches() const {
  for (int row = 0; row < sourceModel()->rowCount(); ++row)
    if (hasWords(row)) return true;
  return false;
}

}  // namespace accrue::ui

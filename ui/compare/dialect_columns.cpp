// SPDX-License-Identifier: GPL-3.0-or-later
#include "dialect_columns.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr int letter_gap = 2;
constexpr int column_gap = 8;
constexpr int epoch_gap = 10;
constexpr int jump_gap = 22;
constexpr std::int64_t most_dropped = 12;

using Place = std::pair<std::int64_t, std::int64_t>;  // epoch, batch

struct PlacedCell {
  Place place;
  DialectCell cell;
};

std::vector<PlacedCell> placedCells(const DialectPlan& answer) {
  std::vector<PlacedCell> cells;
  Place before{-1, -1};
  for (const ComparedMicroStep& step : answer.steps) {
    Place place{step.plan.epoch, step.plan.batch};
    // A window that is filled up reuses the epoch's first batches: they are placed after its last.
    if (place.first == before.first && place.second <= before.second) place.second = before.second + 1;
    before = place;
    const bool unused = step.plan.window >= answer.plan->totals.updates;
    cells.push_back({place, {0, unused ? CellKind::unused : CellKind::trained, step}});
    for (std::int64_t i = 1; i <= std::min(step.plan.dropped_after, most_dropped); ++i)
      cells.push_back({{place.first, place.second + i}, {0, CellKind::dropped, {}}});
  }
  return cells;
}

/// Ends of epochs as in most dialects.
bool endsEpoch(const DialectComparison& comparison, const Place& place) {
  for (const DialectPlan& answer : comparison.dialects)
    if (answer.plan && place.second + 1 == answer.plan->window.batches_per_epoch) return true;
  return false;
}

}  // namespace

DialectColumns DialectColumns::of(const DialectComparison& comparison, int glyph) {
  std::vector<std::vector<PlacedCell>> placed;
  std::map<Place, int> letters;  // maximum in a column
  for (const DialectPlan& answer : comparison.dialects) {
    placed.push_back(answer.plan ? placedCells(answer) : std::vector<PlacedCell>{});
    for (const PlacedCell& cell : placed.back()) {
      int& most = letters[cell.place];
      most = std::max({most, 1, static_cast<int>(cell.cell.step.letters.size())});
    }
  }
  DialectColumns layout;
  std::map<Place, int> index;
  int x = 0;
  for (const auto& [place, count] : letters) {
    DialectColumn column{place.first, place.second, x, 0, false, endsEpoch(comparison, place)};
    if (!layout.columns.empty()) {
      const DialectColumn& last = layout.columns.back();
      const bool follows = last.epoch == column.epoch
                               ? last.batch + 1 == column.batch
                               : last.epoch + 1 == column.epoch && column.batch == 0 && last.ends_epoch;
      column.gap_before = !follows;
      x += column.gap_before ? jump_gap : last.ends_epoch ? epoch_gap : 0;
    }
    column.x = x;
    column.width = count * glyph + (count - 1) * letter_gap + column_gap;
    x += column.width;
    index.emplace(place, static_cast<int>(layout.columns.size()));
    layout.columns.push_back(column);
  }
  layout.width = x + epoch_gap;
  for (std::vector<PlacedCell>& row : placed) {
    std::vector<DialectCell>& cells = layout.cells.emplace_back();
    for (PlacedCell& cell : row) {
      cell.cell.column = index.at(cell.place);
      cells.push_back(std::move(cell.cell));
    }
  }
  return layout;
}

QString cellLabel(const DialectPlan& plan, const DialectCell& cell) {
  switch (cell.kind) {
    case CellKind::dropped:
      return fetches_dropped(plan.plan->knobs) ? tr("dropped") : tr("never seen");
    case CellKind::unused:
      return tr("unused");
    case CellKind::trained:
      break;
  }
  const Division& division = cell.step.plan.division;
  if (const auto number = division.number()) return QStringLiteral("\u00f7 %1").arg(QString::number(*number));
  return division.by == Division::By::samples ? tr("\u00f7 samples") : tr("\u00f7 items");
}

QString cellText(const DialectPlan& plan, const DialectCell& cell, const DialectColumn& column) {
  const QString batch =
      tr("Batch %1 of epoch %2").arg(groupedNumber(column.batch + 1), groupedNumber(column.epoch + 1));
  if (cell.kind == CellKind::dropped)
    return fetches_dropped(plan.plan->knobs) ? tr("%1: fetched and dropped.").arg(batch)
                                             : tr("%1: never seen.").arg(batch);
  const MicroPlan& micro = cell.step.plan;
  QStringList lines;
  lines << tr("%1: micro-step %2, %3 of %4 in its window.")
               .arg(batch, groupedNumber(micro.micro_step), groupedNumber(micro.position + 1),
                    groupedNumber(micro.window_size));
  const auto number = micro.division.number();
  QString divided =
      number ? tr("Loss divided by %1").arg(QString::number(*number)) : tr("Loss divided by what its window holds");
  if (micro.division.when == NormalizeWhen::deferred) divided = tr("%1, once, at the boundary").arg(divided);
  lines << divided + QLatin1Char('.');
  if (micro.sync) lines << tr("Gradients are reduced in this backward.");
  if (micro.update) {
    static constexpr const char* reasons[] = {"", QT_TRANSLATE_NOOP("DialectColumns", "its window is full"),
                                              QT_TRANSLATE_NOOP("DialectColumns", "the epoch ends"),
                                              QT_TRANSLATE_NOOP("DialectColumns", "the run ends"),
                                              QT_TRANSLATE_NOOP("DialectColumns", "it was requested")};
    lines << tr("The optimizer steps after it: %1. It uses schedule position %2.")
                 .arg(tr(reasons[static_cast<std::size_t>(micro.reason)]),
                      groupedNumber(micro.schedule_position - micro.schedule_ticks));
  }
  if (cell.kind == CellKind::unused) lines << tr("Its gradients never reach the weights.");
  lines << tr("Schedule position after it: %1, rate %2.")
               .arg(groupedNumber(micro.schedule_position), valueText(cell.step.lr, 3));
  return lines.join(QLatin1Char('\n'));
}

}  // namespace accrue::ui

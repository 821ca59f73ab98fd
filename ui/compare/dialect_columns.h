// SPDX-License-Identifier: GPL-3.0-or-later
// DialectColumns: positions of cells in the strips of a comparison. A column is one batch of one epoch and has the same
// position in every strip. So each dialect's treatment of a batch is aligned.
#pragma once

#include <QString>
#include <vector>

#include "accrue/run/whatif/dialect_comparison.h"

namespace accrue::ui {

struct DialectColumn {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;  ///< in the epoch, from 0; beyond its length if a dialect fills up a window
  int x = 0;
  int width = 0;
  bool gap_before = false;  ///< micro-steps are omitted here
  bool ends_epoch = false;  ///< a hairline follows
};

enum class CellKind {
  trained,
  unused,   ///< trained on, but its window never reaches the weights
  dropped,  ///< never trained on
};

struct DialectCell {
  int column = 0;
  CellKind kind = CellKind::trained;
  ComparedMicroStep step;  ///< empty for a dropped cell
};

struct DialectColumns {
  std::vector<DialectColumn> columns;
  std::vector<std::vector<DialectCell>> cells;  ///< of each dialect, in the comparison's order
  int width = 0;

  /// glyph: side length of a letter's shape.
  static DialectColumns of(const DialectComparison& comparison, int glyph);
};

/// Sentences about a cell, for a tooltip and a screen reader.
QString cellText(const DialectPlan& plan, const DialectCell& cell, const DialectColumn& column);
/// The label below a cell: "÷ 4", "÷ items", "unused", "never seen".
QString cellLabel(const DialectPlan& plan, const DialectCell& cell);

}  // namespace accrue::ui

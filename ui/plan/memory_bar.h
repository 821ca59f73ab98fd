// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QString>
#include <QWidget>
#include <optional>

#include "accrue/run/cost/rank_cost.h"

class QPainter;

namespace accrue::ui {

struct ThemeColors;

struct MemoryKind {
  QString name;
  std::int64_t RankCost::*bytes;
};
const QList<MemoryKind>& memoryKinds();
/// Draws a rank's memory by kind as a bar that ends at `scale` bytes, without the process.
void paintMemory(QPainter& painter, const QRect& bar, const RankCost& cost, std::int64_t scale,
                 const ThemeColors& colors);

/// A rank's memory by kind: one bar, and a line for each kind. The bar ends at `scale` bytes, without the process. A
/// measured rank is a second bar under it, on the same scale, and a second number in each line.
class MemoryBar : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryBar(QWidget* parent = nullptr);
  void setCost(const RankCost& cost, std::int64_t scale);
  void setMeasured(const std::optional<RankCost>& measured);
  /// Memory of the device, without the process; 0: unknown.
  void setLimit(std::int64_t bytes);
  /// Returns "Parameters 1.2 MiB; Gradients ..."
  QString text() const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  int lineHeight() const;
  int linesTop() const;
  void paintLine(QPainter& painter, const MemoryKind& kind, int index, int top) const;

  RankCost cost_;
  std::optional<RankCost> measured_;
  std::int64_t scale_ = 0;
  std::int64_t limit_ = 0;
};

}  // namespace accrue::ui

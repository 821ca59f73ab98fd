// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "series/plan_outline.h"

class QPainter;

namespace accrue::ui {

struct ThemeColors;

/// The first windows of a plan as a strip: a block per micro-step (darker if it reduces), a bar at an optimizer step, a
/// tick at a schedule step, a hairline at the end of an epoch, and a legend of those that occur. Drawn hollow, because
/// it is a plan. Everything comes from AccumulationWindow.
class WindowPreview : public QWidget {
  Q_OBJECT

 public:
  explicit WindowPreview(QWidget* parent = nullptr);

  void setSketch(const PlanSketch& sketch);
  /// Text of the strip: "Micro-steps 1 to 4: update (full) ...".
  QString text() const { return text_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  enum class Mark { microStep, reduction, update, schedule, epoch };
  struct LegendEntry {
    Mark mark;
    QString text;
    QPoint place;  ///< top left
  };

  void describe();
  void layOut();
  void layOutLegend();
  static int markWidth(Mark mark);
  int entryWidth(Mark mark, const QString& text) const;
  int legendLine() const;
  /// Draws a mark of the micro-step whose block has this left edge.
  void drawMark(QPainter& painter, Mark mark, int x, int top, const ThemeColors& colors) const;
  QString tipAt(int x) const;

  struct Block {
    MicroPlan plan;
    int x = 0;
    int width = 0;
  };

  std::int64_t steps_ = 0;
  std::vector<MicroPlan> plans_;
  std::vector<Block> blocks_;
  /// Micro-steps at the end of an epoch to which the strip jumps, so that the tail is always visible.
  std::vector<MicroPlan> tail_;
  int gap_x_ = -1;
  std::vector<LegendEntry> legend_;
  QString text_;
};

}  // namespace accrue::ui

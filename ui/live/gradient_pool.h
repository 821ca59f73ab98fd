// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <optional>

#include "series/rank_status.h"

namespace accrue::ui {

/// Contents of the pools: all ranks, and the end of the newest window.
struct PoolView {
  std::map<std::int64_t, RankStatus> ranks;
  std::optional<WindowEnd> end;
  bool drained = false;  ///< the shown window has ended: its gradients were used in an update or discarded
};

/// Gradients of each rank as a tank with a slot for each micro-batch of the window. Each micro-batch fills its slot to
/// the height of its share of the items. The slot shows their number, or their share of a whole window. After it comes
/// the norm of the sum, if the run was held there. After the reduction all tanks show the same level; when the
/// gradients are cleared, they drain. The tanks use the available height.
class GradientPool : public QWidget {
  Q_OBJECT

 public:
  explicit GradientPool(QWidget* parent = nullptr);

  void setView(const PoolView& view);
  /// Returns "rank 0: 2 of 4, 512 items; rank 1: ..."
  QString text() const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  /// Rectangle of a rank's tank as painted.
  QRect tankRect(std::size_t place) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void paintHeader(QPainter& painter, const QRect& tank, std::int64_t rank, const RankStatus& status) const;
  bool paintWords(QPainter& painter, const QRect& slot, const QRect& bar, const QColor& tint, const QString& text,
                  bool turned) const;
  void paintTank(QPainter& painter, const QRect& tank, const RankStatus& status, std::int64_t fullest) const;
  void paintSlots(QPainter& painter, const QRect& tank, const RankStatus& status, std::int64_t fullest) const;
  void paintLevel(QPainter& painter, const QRect& tank, double height, const RankStatus& status) const;
  /// Text at this point of a tank that is too narrow to paint it; empty elsewhere.
  QString tipAt(const QPoint& at) const;
  void showTip(const QPoint& at);
  double levelHeight(std::int64_t fullest) const;
  QString countText(const RankStatus& status) const;
  int columns() const;
  int rows() const;
  int headerHeight() const;
  int leastTankHeight() const;

  PoolView view_;
  QString tip_;  ///< shown last, and its place
  QPoint tip_at_;
};

/// Sentence about the end of the newest window: "Update 3: weights moved by a gradient of norm 0.82", "Update 3
/// skipped: overflow, ...", with what was flushed, carried or dropped.
QString windowEndText(const WindowEnd& end);
/// Norm of the gradient that the update would use, if the rank was stepped through the boundary; 0 if unknown.
double usedNorm(const RankStatus& status);
/// Effect of unscale and clip on it: "Unscale: norm of the sum 816 x 0.125 = 102"; empty before unscale.
QString boundaryText(const RankStatus& status);
/// Contents of the open window from an earlier epoch: "carried: 2 micro-steps from epoch 1"; empty if none.
QString carriedText(const RankStatus& status);

}  // namespace accrue::ui

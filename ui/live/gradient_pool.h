// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <optional>

#include "series/rank_status.h"

namespace accrue::ui {

/// What the pools show: all ranks, and how the newest window ended.
struct PoolView {
  std::map<std::int64_t, RankStatus> ranks;
  std::optional<WindowEnd> end;
  bool drained = false;  ///< the shown window has ended: its gradients were used in an update or discarded
};

/// The gradients of each rank as a tank with a slot for each micro-batch of the window. Each micro-batch fills its slot
/// to the height of its share of the items and says how many they are, or their share of a whole window, and the norm
/// of the sum after it where the run was held there; when the ranks reduce, all tanks show the same level; when the
/// gradients are cleared, they drain. The tanks take the height that there is.
class GradientPool : public QWidget {
  Q_OBJECT

 public:
  explicit GradientPool(QWidget* parent = nullptr);

  void setView(const PoolView& view);
  /// "rank 0: 2 of 4, 512 items; rank 1: ..."
  QString text() const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  /// Of a rank's tank, as it is painted.
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
  /// What stands in the tank there, where it is too narrow to be written too; empty beside the tanks.
  QString tipAt(const QPoint& at) const;
  void showTip(const QPoint& at);
  double levelHeight(std::int64_t fullest) const;
  QString countText(const RankStatus& status) const;
  int columns() const;
  int rows() const;
  int headerHeight() const;
  int leastTankHeight() const;

  PoolView view_;
  QString tip_;  ///< shown last, and where
  QPoint tip_at_;
};

/// How the newest window ended, as a sentence: "Update 3: weights moved by a gradient of norm 0.82", "Update 3 skipped:
/// overflow, ...", with what was flushed, carried or dropped.
QString windowEndText(const WindowEnd& end);
/// The norm of what the update would use, as far as the rank was stepped through the boundary; 0 where it is not known.
double usedNorm(const RankStatus& status);
/// What unscale and clip did to it: "Unscale: norm of the sum 816 x 0.125 = 102"; empty before unscale.
QString boundaryText(const RankStatus& status);
/// What the open window holds from an earlier epoch: "carried: 2 micro-steps from epoch 1"; empty if nothing.
QString carriedText(const RankStatus& status);

}  // namespace accrue::ui

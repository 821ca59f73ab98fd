// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "models/rank_status.h"

namespace accrue::ui {

/// One bar a rank: the open window as N cells, filled as its micro-steps are done, and "k of N" beside it.
class RankBars : public QWidget {
  Q_OBJECT

 public:
  explicit RankBars(QWidget* parent = nullptr);

  void setRanks(const std::map<std::int64_t, RankStatus>& ranks);
  /// "rank 0: 2 of 4"
  QString text() const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void paintRow(QPainter& painter, int y, std::int64_t rank, const RankStatus& status) const;
  int rowHeight() const;

  std::map<std::int64_t, RankStatus> ranks_;
};

}  // namespace accrue::ui

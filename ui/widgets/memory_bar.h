// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QString>
#include <QWidget>

#include "accrue/run/rank_cost.h"

namespace accrue::ui {

struct MemoryKind {
  QString name;
  std::int64_t RankCost::*bytes;
};
const QList<MemoryKind>& memoryKinds();

/// What a rank holds, by kind: one bar, and a line for each kind. The bar ends at `scale` bytes, the process left out.
class MemoryBar : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryBar(QWidget* parent = nullptr);
  void setCost(const RankCost& cost, std::int64_t scale);
  /// "Parameters 1.2 MiB; Gradients ..."
  QString text() const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  int lineHeight() const;

  RankCost cost_;
  std::int64_t scale_ = 0;
};

}  // namespace accrue::ui

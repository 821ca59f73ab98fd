// SPDX-License-Identifier: GPL-3.0-or-later
// RunKey: key of run colours for a window without the table of runs. Painted in a few rows.
#pragma once

#include <QWidget>
#include <vector>

#include "canvas/plot_header.h"

namespace accrue::ui {

class RunKey final : public QWidget {
  Q_OBJECT

 public:
  explicit RunKey(QWidget* parent = nullptr);
  /// Sets the items, one per run.
  void setItems(std::vector<HeaderItem> items);
  const std::vector<HeaderItem>& items() const { return items_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {0, 0}; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  /// Places the items in rows, and paints them if there is a painter. Returns their height.
  int lay(int width, QPainter* painter) const;

  std::vector<HeaderItem> items_;
};

}  // namespace accrue::ui

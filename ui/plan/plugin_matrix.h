// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "accrue/run/whatif/plugins.h"

namespace accrue::ui {

/// Compatibility of plug-ins with each other and with other choices: a mark per pair, and a sentence for the pair under
/// the pointer or selected by arrow keys.
class PluginMatrix : public QWidget {
  Q_OBJECT

 public:
  explicit PluginMatrix(QWidget* parent = nullptr);

  /// Highlights what the spec has switched on.
  void showSpec(const RunSpec& spec);
  /// Sentence about the current pair.
  QString sentence() const;
  QPoint cellCentre(Capability plugin, Capability other) const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void sentenceChanged(const QString& sentence);

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  int side() const;
  QRect cell(int row, int column) const;
  /// Returns {row, column}; {-1, -1} outside.
  QPoint cellAt(const QPoint& at) const;
  void setCurrent(int row, int column);
  void paintHeads(QPainter& painter) const;
  void paintMark(QPainter& painter, int row, int column) const;

  std::array<bool, all_capabilities.size()> on_{};
  int row_ = 0;
  int column_ = 1;
  int names_width_ = 0;
  int heads_height_ = 0;
};

/// Returns for example "ZeRO excludes exactness checks: evaluate.exactness_every needs ..."
QString pairText(Capability plugin, Capability other);

}  // namespace accrue::ui

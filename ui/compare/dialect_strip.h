// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <memory>

#include "dialect_columns.h"

namespace accrue::ui {

/// One dialect's micro-steps as cells: letters in shapes (b hollow box, B full box, S square, L diamond, Z circle), the
/// windows as bands behind them, the divisor beneath, and unused batches hatched or crossed out. Arrow keys move
/// through the cells; Enter chooses the dialect.
class DialectStrip : public QWidget {
  Q_OBJECT

 public:
  explicit DialectStrip(QWidget* parent = nullptr);

  /// `row`: index of the dialect in the comparison. The strips share both objects.
  void setPlan(std::shared_ptr<const DialectComparison> comparison, std::shared_ptr<const DialectColumns> columns,
               std::size_t row);
  /// Scrolls sideways, together with the other strips.
  void setOffset(int offset);
  /// The cell selected by keys; -1 before the first key.
  int currentCell() const { return current_; }
  /// Text of the strip: letters, updates, divisors, schedule, last batches.
  QString text() const;

  static int glyphSize();
  /// Draws a letter in its shape; also for legends.
  static void paintLetter(QPainter& painter, const QRect& box, QChar letter, const QPalette& palette);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  /// Enter, Space or a double click.
  void chosen();
  /// Text of the cell under the pointer or selected by keys; empty if there is none.
  void described(const QString& text);
  /// The keys have selected a cell, which should be scrolled into view.
  void cellReached(int x, int width);

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  const DialectPlan* plan() const;
  const std::vector<DialectCell>* cells() const;
  int cellAt(int x) const;
  QString textOf(int cell) const;
  void moveTo(int cell);
  void paintBands(QPainter& painter) const;
  void paintCell(QPainter& painter, const DialectCell& cell) const;
  void paintRules(QPainter& painter) const;
  QRect cellRect(const DialectCell& cell) const;

  std::shared_ptr<const DialectComparison> comparison_;
  std::shared_ptr<const DialectColumns> columns_;
  std::size_t row_ = 0;
  int offset_ = 0;
  int current_ = -1;
};

/// Numbers of the batches and epochs, once above all strips.
class DialectRuler : public QWidget {
  Q_OBJECT

 public:
  explicit DialectRuler(QWidget* parent = nullptr);
  void setColumns(std::shared_ptr<const DialectColumns> columns);
  void setOffset(int offset);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::shared_ptr<const DialectColumns> columns_;
  int offset_ = 0;
};

/// Meaning of the letters.
class DialectLegend : public QWidget {
  Q_OBJECT

 public:
  explicit DialectLegend(QWidget* parent = nullptr);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  static std::vector<std::pair<QChar, QString>> entries();
};

}  // namespace accrue::ui

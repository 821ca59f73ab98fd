// SPDX-License-Identifier: GPL-3.0-or-later
#include "dialect_strip.h"

#include <QFontMetrics>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <utility>

#include "kit/number_text.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr int margin = 4;

QColor readableOn(const QColor& fill) {
  const QColor black(Qt::black);
  const QColor white(Qt::white);
  return contrastRatio(black, fill) > contrastRatio(white, fill) ? black : white;
}

QFont letterFont() {
  return textFont(TextSize::body, QFont::DemiBold);
}

int labelHeight() {
  return QFontMetrics(textFont(TextSize::small)).height();
}

}  // namespace

DialectStrip::DialectStrip(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

int DialectStrip::glyphSize() {
  return QFontMetrics(letterFont()).height() + 3;
}

void DialectStrip::setPlan(std::shared_ptr<const DialectComparison> comparison,
                           std::shared_ptr<const DialectColumns> columns, std::size_t row) {
  comparison_ = std::move(comparison);
  columns_ = std::move(columns);
  row_ = row;
  if (!cells() || current_ >= static_cast<int>(cells()->size())) current_ = -1;
  setAccessibleDescription(text());
  update();
}

void DialectStrip::setOffset(int offset) {
  offset_ = offset;
  update();
}

const DialectPlan* DialectStrip::plan() const {
  return comparison_ && row_ < comparison_->dialects.size() ? &comparison_->dialects[row_] : nullptr;
}

const std::vector<DialectCell>* DialectStrip::cells() const {
  return columns_ && row_ < columns_->cells.size() ? &columns_->cells[row_] : nullptr;
}

QString DialectStrip::text() const {
  return plan() ? QString::fromStdString(dialect_text(*plan())).simplified() : QString();
}

QSize DialectStrip::sizeHint() const {
  return {320, glyphSize() + 2 * margin + labelHeight() + space::base};
}

QSize DialectStrip::minimumSizeHint() const {
  return {160, sizeHint().height()};
}

QRect DialectStrip::cellRect(const DialectCell& cell) const {
  const DialectColumn& column = columns_->columns[static_cast<std::size_t>(cell.column)];
  return {column.x - offset_ + margin, 0, column.width, glyphSize() + 2 * margin};
}

void DialectStrip::paintLetter(QPainter& painter, const QRect& box, QChar letter, const QPalette& palette) {
  const ThemeColors colors = themeColors(palette);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF shape = QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5);
  QColor fill = colors.surface;
  QColor line = colors.backward;
  if (letter == QLatin1Char('B')) fill = line = colors.collective;
  if (letter == QLatin1Char('S')) fill = line = colors.optimizerStep;
  if (letter == QLatin1Char('L') || letter == QLatin1Char('Z')) line = colors.muted;
  painter.setPen(QPen(line, 1.0));
  painter.setBrush(fill);
  if (letter == QLatin1Char('L')) {
    const QPointF c = shape.center();
    const double r = shape.width() / 2.0 + 1.0;
    painter.drawPolygon(QPolygonF({c + QPointF(0, -r), c + QPointF(r, 0), c + QPointF(0, r), c + QPointF(-r, 0)}));
  } else if (letter == QLatin1Char('Z')) {
    painter.drawEllipse(shape);
  } else if (letter == QLatin1Char('S')) {
    painter.drawRect(shape);
  } else {
    painter.drawRoundedRect(shape, 4, 4);
  }
  painter.setFont(letterFont());
  painter.setPen(fill == colors.surface ? colors.text : readableOn(fill));
  painter.drawText(box, Qt::AlignCenter, letter);
  painter.restore();
}

void DialectStrip::paintBands(QPainter& painter) const {
  const ThemeColors colors = themeColors(palette());
  const auto& all = *cells();
  painter.setFont(textFont(TextSize::small));
  const auto window_of = [](const DialectCell& cell) {
    return cell.kind == CellKind::dropped ? std::int64_t{-1} : cell.step.plan.window;
  };
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin + 1;
    const QString label = cellLabel(*plan(), all[begin]);
    // One band per window; a window across a gap has one in each part.
    const auto joins = [&](const DialectCell& cell) {
      return window_of(cell) == window_of(all[begin]) &&
             !columns_->columns[static_cast<std::size_t>(cell.column)].gap_before;
    };
    while (end < all.size() && joins(all[end])) ++end;
    const QRect band = cellRect(all[begin]).united(cellRect(all[end - 1])).adjusted(1, 1, -3, -1);
    const bool dropped = all[begin].kind == CellKind::dropped;
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(dropped ? QPen(colors.hairline, 1, Qt::DashLine) : QPen(Qt::NoPen));
    painter.setBrush(dropped ? QBrush(Qt::NoBrush) : QBrush(mixed(colors.forward, palette().window().color(), 0.24)));
    painter.drawRoundedRect(QRectF(band).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
    if (all[begin].kind == CellKind::unused) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(QBrush(mixed(colors.waiting, palette().window().color(), 0.5), Qt::BDiagPattern));
      painter.drawRoundedRect(QRectF(band), 5, 5);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(colors.muted);
    for (std::size_t part = begin; part < end;) {
      std::size_t stop = part + 1;
      while (stop < end && cellLabel(*plan(), all[stop]) == cellLabel(*plan(), all[part])) ++stop;
      QRect under = cellRect(all[part]).united(cellRect(all[stop - 1]));
      const QString words = cellLabel(*plan(), all[part]);
      const int wide = std::max(under.width(), painter.fontMetrics().horizontalAdvance(words));
      under = QRect(under.center().x() - wide / 2, band.bottom() + 3, wide, labelHeight());
      painter.drawText(under, Qt::AlignHCenter | Qt::AlignTop, words);
      part = stop;
    }
    begin = end;
  }
}

void DialectStrip::paintCell(QPainter& painter, const DialectCell& cell) const {
  const QRect rect = cellRect(cell);
  if (rect.right() < 0 || rect.left() > width()) return;
  const int size = glyphSize();
  if (cell.kind == CellKind::dropped) {
    const ThemeColors colors = themeColors(palette());
    const QRect box(rect.center().x() - size / 2, margin, size, size);
    painter.setPen(QPen(colors.muted, 1));
    painter.drawLine(box.topLeft() + QPoint(5, 5), box.bottomRight() - QPoint(5, 5));
    painter.drawLine(box.topRight() + QPoint(-5, 5), box.bottomLeft() + QPoint(5, -5));
    return;
  }
  int x = rect.left() + 3;
  for (const char letter : cell.step.letters) {
    paintLetter(painter, QRect(x, margin, size, size), QLatin1Char(letter), palette());
    x += size + 2;
  }
}

void DialectStrip::paintRules(QPainter& painter) const {
  const ThemeColors colors = themeColors(palette());
  for (const DialectColumn& column : columns_->columns) {
    const int left = column.x - offset_ + margin;
    if (column.gap_before) {
      painter.setPen(colors.muted);
      painter.drawText(QRect(left - 22, 0, 22, glyphSize() + 2 * margin), Qt::AlignCenter, QStringLiteral("\u2026"));
    }
    if (!column.ends_epoch) continue;
    const int x = left + column.width + 5;
    painter.setPen(QPen(colors.muted, 1));
    painter.drawLine(x, 0, x, glyphSize() + 2 * margin);
  }
}

void DialectStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (!plan() || !plan()->plan || !cells()) return;
  paintRules(painter);
  paintBands(painter);
  for (const DialectCell& cell : *cells()) paintCell(painter, cell);
  if (!hasFocus()) return;
  painter.setPen(QPen(themeColors(palette()).accent, 2));
  painter.setBrush(Qt::NoBrush);
  if (current_ >= 0)
    painter.drawRoundedRect(cellRect((*cells())[static_cast<std::size_t>(current_)]).adjusted(1, 1, -1, -1), 5, 5);
  else
    painter.drawRoundedRect(rect().adjusted(1, 1, -1, -1), 5, 5);
}

int DialectStrip::cellAt(int x) const {
  if (!cells()) return -1;
  for (std::size_t i = 0; i < cells()->size(); ++i) {
    const QRect rect = cellRect((*cells())[i]);
    if (x >= rect.left() && x <= rect.right()) return static_cast<int>(i);
  }
  return -1;
}

QString DialectStrip::textOf(int cell) const {
  if (cell < 0 || !plan() || !plan()->plan) return {};
  const DialectCell& at = (*cells())[static_cast<std::size_t>(cell)];
  return cellText(*plan(), at, columns_->columns[static_cast<std::size_t>(at.column)]);
}

void DialectStrip::moveTo(int cell) {
  if (!cells() || cells()->empty()) return;
  current_ = std::clamp(cell, 0, static_cast<int>(cells()->size()) - 1);
  const QRect rect = cellRect((*cells())[static_cast<std::size_t>(current_)]);
  const QString words = textOf(current_);
  setAccessibleDescription(words.simplified());
  Q_EMIT cellReached(rect.left() + offset_, rect.width());
  Q_EMIT described(words);
  update();
}

void DialectStrip::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Right:
      return moveTo(current_ + 1);
    case Qt::Key_Left:
      return moveTo(std::max(current_ - 1, 0));
    case Qt::Key_Home:
      return moveTo(0);
    case Qt::Key_End:
      return cells() ? moveTo(static_cast<int>(cells()->size()) - 1) : void();
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
      Q_EMIT chosen();
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void DialectStrip::mouseMoveEvent(QMouseEvent* event) {
  Q_EMIT described(textOf(cellAt(event->position().toPoint().x())));
}

void DialectStrip::leaveEvent(QEvent*) {
  Q_EMIT described(textOf(hasFocus() ? current_ : -1));
}

void DialectStrip::mouseDoubleClickEvent(QMouseEvent*) {
  Q_EMIT chosen();
}

void DialectStrip::focusInEvent(QFocusEvent*) {
  Q_EMIT described(textOf(current_));
  update();
}

void DialectStrip::focusOutEvent(QFocusEvent*) {
  current_ = -1;
  setAccessibleDescription(text());
  Q_EMIT described(QString());
  update();
}

bool DialectStrip::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QString words = textOf(cellAt(help->pos().x()));
  if (words.isEmpty())
    QToolTip::hideText();
  else
    QToolTip::showText(help->globalPos(), words, this);
  return true;
}

DialectRuler::DialectRuler(QWidget* parent) : QWidget(parent) {
  setFont(tabularFont(TextSize::small));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void DialectRuler::setColumns(std::shared_ptr<const DialectColumns> columns) {
  columns_ = std::move(columns);
  update();
}

void DialectRuler::setOffset(int offset) {
  offset_ = offset;
  update();
}

QSize DialectRuler::sizeHint() const {
  return {320, 2 * fontMetrics().height() + space::base};
}

void DialectRuler::paintEvent(QPaintEvent*) {
  if (!columns_) return;
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.setPen(colors.muted);
  const int line = fontMetrics().height();
  const DialectColumn* before = nullptr;
  for (const DialectColumn& column : columns_->columns) {
    const int left = column.x - offset_ + margin;
    if (!before || before->epoch != column.epoch || column.gap_before)
      painter.drawText(QPoint(left + 3, painter.fontMetrics().ascent()),
                       tr("epoch %1, batch").arg(groupedNumber(column.epoch + 1)));
    painter.drawText(QRect(left, line + 2, column.width, line), Qt::AlignCenter, groupedNumber(column.batch + 1));
    before = &column;
  }
}

DialectLegend::DialectLegend(QWidget* parent) : QWidget(parent) {
  setFont(textFont(TextSize::small));
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  QStringList words;
  for (const auto& [letter, meaning] : entries()) words << QStringLiteral("%1: %2").arg(letter).arg(meaning);
  setAccessibleName(tr("What the letters mean"));
  setAccessibleDescription(words.join(QStringLiteral(", ")));
}

std::vector<std::pair<QChar, QString>> DialectLegend::entries() {
  return {{QLatin1Char('b'), tr("backward")},
          {QLatin1Char('B'), tr("backward that reduces")},
          {QLatin1Char('S'), tr("optimizer steps")},
          {QLatin1Char('L'), tr("schedule moves")},
          {QLatin1Char('Z'), tr("gradients cleared")}};
}

QSize DialectLegend::sizeHint() const {
  int width = 0;
  for (const auto& [letter, meaning] : entries())
    width +=
        DialectStrip::glyphSize() + space::base + 2 + fontMetrics().horizontalAdvance(meaning) + space::betweenGroups;
  return {width, DialectStrip::glyphSize() + 2};
}

void DialectLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  int x = 1;
  const int size = DialectStrip::glyphSize();
  for (const auto& [letter, meaning] : entries()) {
    DialectStrip::paintLetter(painter, QRect(x, 1, size, size), letter, palette());
    x += size + space::base + 2;
    painter.setPen(themeColors(palette()).muted);
    painter.drawText(QRect(x, 0, width() - x, height()), Qt::AlignVCenter | Qt::AlignLeft, meaning);
    x += fontMetrics().horizontalAdvance(meaning) + space::betweenGroups;
  }
}

}  // namespace accrue::ui

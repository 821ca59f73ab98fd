// SPDX-License-Identifier: GPL-3.0-or-later
#include "plugin_matrix.h"

#include <QCoreApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "kit/text.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr int least_cell = 13, most_cell = 18;  ///< side length
constexpr int rows = static_cast<int>(plugin_count);
constexpr int columns = static_cast<int>(all_capabilities.size());

Capability at(int index) {
  return all_capabilities[static_cast<std::size_t>(index)];
}

QString shortName(int index) {
  return fromView(to_string(at(index))).replace(QLatin1Char('_'), QLatin1Char(' '));
}

}  // namespace

QString pairText(Capability plugin, Capability other) {
  const QString left = fromView(title_of(plugin)), right = fromView(title_of(other));
  if (plugin == other) return left;
  const CapabilityRule* rule = rule_between(plugin, other);
  if (!rule) return PluginMatrix::tr("%1 and %2 go together").arg(left, right);
  const QString why = QString::fromStdString(rule->text());
  if (rule->relation == Relation::excludes) return PluginMatrix::tr("%1 excludes %2: %3").arg(left, right, why);
  return rule->plugin == plugin ? PluginMatrix::tr("%1 needs %2: %3").arg(left, right, why)
                                : PluginMatrix::tr("%1 needs %2: %3").arg(right, left, why);
}

PluginMatrix::PluginMatrix(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("pluginMatrix"));
  setFont(textFont(TextSize::small));
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  setAccessibleName(tr("Which plug-ins go together"));
  const QFontMetrics metrics(textFont(TextSize::small, QFont::DemiBold));
  for (int index = 0; index < columns; ++index) {
    const int width = metrics.horizontalAdvance(shortName(index));
    heads_height_ = std::max(heads_height_, width + space::inGroup);
    if (index < rows) names_width_ = std::max(names_width_, width + space::inGroup);
  }
  setAccessibleDescription(sentence());
}

void PluginMatrix::showSpec(const RunSpec& spec) {
  for (std::size_t index = 0; index < on_.size(); ++index) on_[index] = is_on(all_capabilities[index], spec);
  update();
}

QString PluginMatrix::sentence() const {
  return pairText(at(row_), at(column_));
}

int PluginMatrix::side() const {
  return std::clamp((width() - names_width_ - 1) / columns, least_cell, most_cell);
}

QSize PluginMatrix::sizeHint() const {
  return {names_width_ + columns * most_cell + 1, heads_height_ + rows * most_cell + 1};
}

QSize PluginMatrix::minimumSizeHint() const {
  return {names_width_ + columns * least_cell + 1, sizeHint().height()};
}

QRect PluginMatrix::cell(int row, int column) const {
  return {names_width_ + column * side(), heads_height_ + row * side(), side(), side()};
}

QPoint PluginMatrix::cellCentre(Capability plugin, Capability other) const {
  return cell(static_cast<int>(plugin), static_cast<int>(other)).center();
}

QPoint PluginMatrix::cellAt(const QPoint& at) const {
  if (at.x() < names_width_ || at.y() < heads_height_) return {-1, -1};
  const int column = (at.x() - names_width_) / side(), row = (at.y() - heads_height_) / side();
  return row < rows && column < columns ? QPoint(row, column) : QPoint(-1, -1);
}

void PluginMatrix::setCurrent(int row, int column) {
  row_ = std::clamp(row, 0, rows - 1);
  column_ = std::clamp(column, 0, columns - 1);
  setAccessibleDescription(sentence());
  Q_EMIT sentenceChanged(sentence());
  update();
}

bool PluginMatrix::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QPoint found = cellAt(help->pos());
  if (found.x() < 0)
    QToolTip::hideText();
  else
    QToolTip::showText(help->globalPos(), pairText(at(found.x()), at(found.y())), this, cell(found.x(), found.y()));
  return true;
}

void PluginMatrix::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Up:
      return setCurrent(row_ - 1, column_);
    case Qt::Key_Down:
      return setCurrent(row_ + 1, column_);
    case Qt::Key_Left:
      return setCurrent(row_, column_ - 1);
    case Qt::Key_Right:
      return setCurrent(row_, column_ + 1);
    default:
      QWidget::keyPressEvent(event);
  }
}

void PluginMatrix::mousePressEvent(QMouseEvent* event) {
  const QPoint found = cellAt(event->position().toPoint());
  if (found.x() >= 0) setCurrent(found.x(), found.y());
}

void PluginMatrix::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  setCurrent(row_, column_);
}

void PluginMatrix::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  update();
}

void PluginMatrix::paintHeads(QPainter& painter) const {
  const ThemeColors colors = themeColors(palette());
  for (int index = 0; index < columns; ++index) {
    const bool on = on_[static_cast<std::size_t>(index)];
    painter.setFont(textFont(TextSize::small, on ? QFont::DemiBold : QFont::Normal));
    painter.setPen(on ? colors.text : colors.muted);
    const QString title = shortName(index);
    const QRect top = cell(0, index);
    painter.save();
    painter.translate(top.left(), heads_height_ - space::base);
    painter.rotate(-90);
    painter.drawText(QRect(0, 0, heads_height_, side()), Qt::AlignLeft | Qt::AlignVCenter, title);
    painter.restore();
    if (index < rows)
      painter.drawText(QRect(0, cell(index, 0).top(), names_width_ - space::inGroup, side()),
                       Qt::AlignRight | Qt::AlignVCenter, title);
  }
}

void PluginMatrix::paintMark(QPainter& painter, int row, int column) const {
  const ThemeColors colors = themeColors(palette());
  const QRect box = cell(row, column);
  if (row == column) return painter.fillRect(box.adjusted(1, 1, 0, 0), colors.plotGrid);
  const CapabilityRule* rule = rule_between(at(row), at(column));
  painter.setRenderHint(QPainter::Antialiasing);
  const QPointF centre = QRectF(box).center();
  if (!rule) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(colors.muted);
    painter.drawEllipse(centre, 1.5, 1.5);
  } else if (rule->relation == Relation::excludes) {
    painter.setPen(QPen(colors.failed, 1.5));
    painter.drawLine(centre + QPointF(-3.5, -3.5), centre + QPointF(3.5, 3.5));
    painter.drawLine(centre + QPointF(-3.5, 3.5), centre + QPointF(3.5, -3.5));
  } else {
    // A filled or a hollow mark, from the one that requires to the required one.
    painter.setPen(QPen(colors.accent, 1.5));
    painter.setBrush(rule->plugin == at(row) ? QBrush(colors.accent) : QBrush(Qt::NoBrush));
    painter.drawEllipse(centre, 3.5, 3.5);
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void PluginMatrix::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  paintHeads(painter);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const bool both = row != column && on_[static_cast<std::size_t>(row)] && on_[static_cast<std::size_t>(column)];
      if (both) painter.fillRect(cell(row, column), mixed(colors.accent, colors.window, 0.16));
      paintMark(painter, row, column);
    }
  }
  const QRect all = cell(0, 0).united(cell(rows - 1, columns - 1));
  painter.setPen(colors.hairline);
  for (int row = 0; row <= rows; ++row)
    painter.drawLine(all.left(), heads_height_ + row * side(), all.right() + 1, heads_height_ + row * side());
  for (int column = 0; column <= columns; ++column)
    painter.drawLine(names_width_ + column * side(), all.top(), names_width_ + column * side(), all.bottom() + 1);
  painter.setPen(hasFocus() ? QPen(colors.accent, 2) : QPen(colors.muted, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(cell(row_, column_));
}

}  // namespace accrue::ui

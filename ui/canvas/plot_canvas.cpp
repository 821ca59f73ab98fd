// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_canvas.h"

#include <cmath>
#include <limits>

#include "kit/text_scale.h"
#include "kit/theme.h"
#include "series_swatch.h"

namespace accrue::ui {

/// The title of X beside its tick labels; an axis label of QCustomPlot would take a separate row.
class AxisTitle final : public QCPLayerable {
 public:
  explicit AxisTitle(QCustomPlot* plot) : QCPLayerable(plot, QStringLiteral("axes")) {}
  QString text;
  double right = 0.0;  ///< pixel at which it ends
  int below = 0;       ///< the row of tick labels, in pixels

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
  void draw(QCPPainter* painter) override {
    const QCPAxis* x = parentPlot()->xAxis;
    const QRect area = parentPlot()->axisRect()->rect();
    const int top = area.bottom() + 1 + x->tickLengthOut() + x->tickLabelPadding() + below;
    painter->setFont(x->labelFont());
    painter->setPen(x->labelColor());
    painter->drawText(QRectF(area.left(), top, right - area.left(), parentPlot()->viewport().bottom() - top),
                      Qt::AlignRight | Qt::AlignTop | Qt::TextDontClip, text);
  }
};

/// Cursor hairline, its points and the zoom box: on a separate buffered layer, so that moving them repaints no curve.
class CursorLayer final : public QCPLayerable {
 public:
  explicit CursorLayer(QCustomPlot* plot) : QCPLayerable(plot, QStringLiteral("cursor")) {}
  std::optional<double> x;
  std::vector<PlotCanvas::CursorDot> dots;
  QRect box;
  ThemeColors colors;

 protected:
  QRect clipRect() const override { return parentPlot()->axisRect()->rect(); }
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(false); }
  void draw(QCPPainter* painter) override {
    const QRect area = clipRect();
    if (x) {
      const double pixel = std::floor(parentPlot()->xAxis->coordToPixel(*x)) + 0.5;
      painter->setPen(QPen(colors.muted, 1.0));
      painter->drawLine(QPointF(pixel, area.top()), QPointF(pixel, area.bottom()));
    }
    painter->setAntialiasing(true);
    for (const PlotCanvas::CursorDot& dot : dots) {
      const QPointF centre(parentPlot()->xAxis->coordToPixel(dot.x), parentPlot()->yAxis->coordToPixel(dot.y));
      painter->setPen(Qt::NoPen);
      painter->setBrush(colors.surface);
      painter->drawEllipse(centre, 6.0, 6.0);
      paintMarker(*painter, centre, 9.0, dot.seriesIndex, seriesColor(colors, dot.seriesIndex));
    }
    if (box.isEmpty()) return;
    painter->setAntialiasing(false);
    QColor fill = colors.accent;
    fill.setAlphaF(0.12F);
    painter->setPen(QPen(colors.accent, 1.0));
    painter->setBrush(fill);
    painter->drawRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5));
  }
};

namespace {

constexpr int smallestBox = 6;  // pixels; a shorter drag is a click
constexpr double wheelStep = 1.25;
constexpr double focusWidth = 2.0;

}  // namespace

PlotCanvas::PlotCanvas(PlotHub& hub, int plotNumber, QWidget* parent)
    : QCustomPlot(parent), hub_(hub), plotNumber_(plotNumber) {
  setPlottingHint(QCP::phImmediateRefresh, false);
  setPlottingHint(QCP::phFastPolylines, true);
  setNoAntialiasingOnDrag(false);
  setInteractions(QCP::Interactions());
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  addLayer(QStringLiteral("curves"), layer(QStringLiteral("main")), QCustomPlot::limAbove);
  addLayer(QStringLiteral("marks"), layer(QStringLiteral("axes")), QCustomPlot::limAbove);
  addLayer(QStringLiteral("cursor"), layer(QStringLiteral("marks")), QCustomPlot::limAbove);
  layer(QStringLiteral("cursor"))->setMode(QCPLayer::lmBuffered);
  cursor_ = new CursorLayer(this);
  title_ = new AxisTitle(this);
  axisRect()->setAutoMargins(QCP::msNone);
  axisRect()->setMinimumMargins(QMargins());
  plotLayout()->setMargins(QMargins());
  for (QCPAxis* axis : {xAxis, yAxis}) {
    axis->setSubTicks(false);
    axis->setTickLengthIn(0);
    axis->setTickLengthOut(4);
    axis->setTickLabelPadding(4);
  }
  yAxis->setBasePen(Qt::NoPen);
  yAxis->setTickPen(Qt::NoPen);
  xAxis->grid()->setVisible(false);
  yAxis->grid()->setZeroLinePen(Qt::NoPen);
  updateMargins();
  applyTheme();
}

void PlotCanvas::setShowsClock(bool on) {
  showsClock_ = on;
  updateMargins();
}

void PlotCanvas::setLeastHeight(int height) {
  least_ = height;
  updateMargins();
}

int PlotCanvas::scaled(int length) {
  return qRound(length * textScale());
}

void PlotCanvas::updateMargins() {
  setMinimumHeight(scaled(least_));
  xAxis->setTickLabels(showsClock_);
  title_->below = rowForTitle_ ? QFontMetrics(textFont(TextSize::small)).height() : 0;
  axisRect()->setMargins(QMargins(leftMargin(), topMargin(), rightMargin() + moreAtRight_,
                                  showsClock_ ? axisMargin() + title_->below : bottomMargin()));
}

void PlotCanvas::giveRoom(int right, bool rowForTitle) {
  if (moreAtRight_ == right && rowForTitle_ == rowForTitle) return;
  moreAtRight_ = right;
  rowForTitle_ = rowForTitle;
  updateMargins();
}

double PlotCanvas::setClockTitle(const QString& title) {
  constexpr double air = 8.0;
  const double end = axisRect()->right();
  title_->text = showsClock_ ? title : QString();
  title_->right = end;
  if (title_->text.isEmpty() || rowForTitle_) return std::numeric_limits<double>::infinity();
  const double width = QFontMetricsF(xAxis->labelFont()).horizontalAdvance(title);
  const QFontMetricsF numbers(xAxis->tickLabelFont());
  const QVector<double> ticks = xAxis->tickVector();
  const QVector<QString> labels = xAxis->tickVectorLabels();
  if (ticks.size() >= 2 && labels.size() == ticks.size()) {
    // Between the last two labels, if there is room.
    const qsizetype last = ticks.size() - 1;
    const double from = xAxis->coordToPixel(ticks[last - 1]) + numbers.horizontalAdvance(labels[last - 1]) / 2.0 + air;
    const double to = xAxis->coordToPixel(ticks[last]) - numbers.horizontalAdvance(labels[last]) / 2.0 - air;
    const bool lastAtEnd = end - xAxis->coordToPixel(ticks[last]) < width + air;
    if (lastAtEnd && to - from >= width) {
      title_->right = to;
      return std::numeric_limits<double>::infinity();
    }
  }
  return end - width - air - numbers.horizontalAdvance(QStringLiteral("00 000")) / 2.0;
}

void PlotCanvas::layOut(const QSize& size) {
  setViewport(QRect(QPoint(), size));
  updateLayout();
}

void PlotCanvas::applyTheme() {
  useColors(themeColors(palette()));
  Q_EMIT themeApplied();
}

void PlotCanvas::useColors(const ThemeColors& colors) {
  colors_ = colors;
  setBackground(QBrush(colors_.surface));
  const QFont labels = tabularFont(TextSize::small);
  for (QCPAxis* axis : {xAxis, yAxis}) {
    axis->setTickLabelFont(labels);
    axis->setLabelFont(textFont(TextSize::small));
    axis->setTickLabelColor(colors_.muted);
    axis->setLabelColor(colors_.muted);
    axis->grid()->setPen(QPen(colors_.plotGrid, 1.0));
  }
  xAxis->setBasePen(QPen(colors_.hairline, 1.0));
  xAxis->setTickPen(QPen(colors_.hairline, 1.0));
  cursor_->colors = colors_;
}

void PlotCanvas::showCursor(std::optional<double> x, std::vector<CursorDot> dots) {
  cursor_->x = x;
  cursor_->dots = std::move(dots);
  if (isVisible()) cursor_->layer()->replot();
}

void PlotCanvas::paintInto(QCPPainter* painter, int width, int height) {
  cursor_->setVisible(false);
  painter->setMode(QCPPainter::pmNonCosmetic);
  toPainter(painter, width, height);
  cursor_->setVisible(true);
}

void PlotCanvas::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  const bool pan = event->button() == Qt::MiddleButton ||
                   (event->button() == Qt::LeftButton && event->modifiers().testFlag(Qt::ShiftModifier));
  if (!pan && event->button() != Qt::LeftButton) {
    event->ignore();
    return;
  }
  drag_ = pan ? Drag::pan : Drag::box;
  dragFrom_ = event->position().toPoint();
  dragX_ = hub_.x();
  if (pan) setCursor(Qt::ClosedHandCursor);
}

void PlotCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPoint at = event->position().toPoint();
  const QRect area = axisRect()->rect();
  if (drag_ == Drag::pan) {
    const double perPixel = dragX_.size() / std::max(area.width(), 1);
    const double distance = (dragFrom_.x() - at.x()) * perPixel;
    hub_.moveTo({dragX_.low + distance, dragX_.high + distance});
    return;
  }
  if (drag_ == Drag::box) {
    QRect box = QRect(dragFrom_, at).normalized() & area;
    // A flat drag means X alone: the box then spans the plot.
    if (!zoomsY_ || box.height() < 2 * smallestBox) box = QRect(box.left(), area.top(), box.width(), area.height());
    cursor_->box = box;
    cursor_->layer()->replot();
  }
  if (area.contains(at))
    Q_EMIT hovered(xAxis->pixelToCoord(event->position().x()), yAxis->pixelToCoord(event->position().y()));
  else
    Q_EMIT left();
}

void PlotCanvas::mouseReleaseEvent(QMouseEvent*) {
  const QRect box = cursor_->box;
  const Drag drag = drag_;
  cancelDrag();
  if (drag == Drag::box && box.width() >= smallestBox) finishBox(box);
}

void PlotCanvas::finishBox(const QRect& box) {
  const Span x{xAxis->pixelToCoord(box.left()), xAxis->pixelToCoord(box.right() + 1)};
  const bool whole = box.height() >= axisRect()->rect().height();
  if (whole || !zoomsY_)
    hub_.zoomTo(x);
  else
    hub_.zoomTo(x, plotNumber_, Span{yAxis->pixelToCoord(box.bottom() + 1), yAxis->pixelToCoord(box.top())});
}

void PlotCanvas::cancelDrag() {
  drag_ = Drag::none;
  unsetCursor();
  if (cursor_->box.isNull()) return;
  cursor_->box = QRect();
  cursor_->layer()->replot();
}

void PlotCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  cancelDrag();
  if (!zoomsToWindow_ || !hub_.zoomToWindow(xAxis->pixelToCoord(event->position().x()))) hub_.fit();
}

void PlotCanvas::wheelEvent(QWheelEvent* event) {
  const double turns = event->angleDelta().y() / 120.0;
  if (turns == 0.0) {
    event->ignore();
    return;
  }
  const double factor = std::pow(wheelStep, -turns);
  const QPointF at = event->position();
  if (zoomsY_ && at.x() < axisRect()->rect().left()) {
    const QCPRange range = yAxis->range();
    const double around = yAxis->pixelToCoord(at.y());
    Span y{around + (range.lower - around) * factor, around + (range.upper - around) * factor};
    if (yAxis->scaleType() == QCPAxis::stLogarithmic && around > 0.0)
      y = {around * std::pow(range.lower / around, factor), around * std::pow(range.upper / around, factor)};
    hub_.zoomTo(hub_.x(), plotNumber_, y);
  } else {
    hub_.scaleX(factor, xAxis->pixelToCoord(at.x()));
  }
  event->accept();
}

void PlotCanvas::leaveEvent(QEvent* event) {
  QCustomPlot::leaveEvent(event);
  Q_EMIT left();
}

void PlotCanvas::changeEvent(QEvent* event) {
  QCustomPlot::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange) return;
  updateMargins();
  applyTheme();
}

void PlotCanvas::focusInEvent(QFocusEvent* event) {
  QCustomPlot::focusInEvent(event);
  update();
}

void PlotCanvas::focusOutEvent(QFocusEvent* event) {
  QCustomPlot::focusOutEvent(event);
  cancelDrag();
  update();
}

void PlotCanvas::paintEvent(QPaintEvent* event) {
  QCustomPlot::paintEvent(event);
  if (!hasFocus()) return;
  // In the margin, so that it hides no data.
  QPainter painter(this);
  painter.setPen(QPen(colors_.accent, focusWidth, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
  constexpr double half = focusWidth / 2.0;
  painter.drawRect(QRectF(rect()).adjusted(half, half, -half, -half));
}

bool PlotCanvas::event(QEvent* event) {
  // Moving to another screen may change the pixel ratio without a resize.
  if (event->type() == QEvent::ScreenChangeInternal && bufferDevicePixelRatio() != devicePixelRatioF()) {
    setBufferDevicePixelRatio(devicePixelRatioF());
    replot(QCustomPlot::rpQueuedRefresh);
  }
  return QCustomPlot::event(event);
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_view.h"

#include <QContextMenuEvent>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>

#include "axis_tickers.h"
#include "kit/number_text.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr int leastTick = 56;  // pixels between the ticks of X, on paper

}  // namespace

PlotView::PlotView(PlotHub& hub, int number, const QString& objectName, QWidget* parent)
    : QWidget(parent),
      hub_(hub),
      number_(number),
      header_(new PlotHeader(this)),
      canvas_(new PlotCanvas(hub, number, this)),
      clockTicker_(new ClockTicker),
      ticksOnScreen_(clockTicker_->tickCount()) {
  setObjectName(objectName);
  canvas_->setObjectName(objectName + QStringLiteral("Canvas"));
  canvas_->x()->setTicker(clockTicker_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(header_);
  layout->addWidget(canvas_, 1);
  connect(&hub_, &PlotHub::cursorChanged, this, &PlotView::showCursor);
  connect(canvas_, &PlotCanvas::hovered, this, [this](double x, double) { hub_.setCursor(x); });
  connect(canvas_, &PlotCanvas::left, this, [this] { hub_.setCursor({}); });
  connect(canvas_, &PlotCanvas::themeApplied, this, &PlotView::markStale);
}

void PlotView::setShowsClock(bool on) {
  canvas_->setShowsClock(on);
  stale_ = true;
}

bool PlotView::viewChanged() const {
  return canBeSeen() && (stale_ || seenView_ != hub_.revision() || seenSize_ != canvas_->size());
}

bool PlotView::outdated() const {
  return viewChanged() || (canBeSeen() && seenData_ != hub_.dataRevision());
}

bool PlotView::refreshIfNeeded() {
  if (!outdated()) return false;
  seenView_ = hub_.revision();
  seenData_ = hub_.dataRevision();
  seenSize_ = canvas_->size();
  stale_ = false;
  prepare(canvas_->size(), canvas_->devicePixelRatioF());
  canvas_->replot(QCustomPlot::rpQueuedRefresh);
  showCursor();
  canvas_->setAccessibleDescription(summary());
  return true;
}

void PlotView::prepare(const QSize& size, double ratio) {
  prepareAxis(size);
  rebuild(PlotCanvas::areaWidth(size.width()) * ratio);
}

void PlotView::prepareAxis(const QSize& size) {
  const int fit = PlotCanvas::areaWidth(size.width()) / leastTick;
  if (onPaper_) clockTicker_->setTickCount(std::clamp(fit, 2, ticksOnScreen_));
  clockTicker_->setClock(hub_.clock());
  clockTicker_->setLastLabel(std::numeric_limits<double>::infinity());
  canvas_->x()->setRange(hub_.x().low, hub_.x().high);
  canvas_->giveRoom();
  canvas_->layOut(size);
  const QVector<double> ticks = canvas_->x()->tickVector();
  if (onPaper_ && !ticks.isEmpty()) {
    // A label that does not fit into the picture is not painted. Every plot of the stack has the same margin.
    const QFontMetricsF numbers(canvas_->x()->tickLabelFont());
    const double half = numbers.horizontalAdvance(clockTicker_->labelOf(ticks.last())) / 2.0 + 2.0;
    const double beyond = canvas_->x()->coordToPixel(ticks.last()) + half - size.width();
    if (beyond > 0.0) canvas_->giveRoom(static_cast<int>(std::ceil(2.0 * beyond)));
    canvas_->layOut(size);
  }
  const double room = canvas_->setClockTitle(clockAxisTitle(hub_.clock()));
  const double last = std::isfinite(room) ? canvas_->x()->pixelToCoord(room) : room;
  if (onPaper_ && !ticks.isEmpty() && ticks.last() > last) {
    canvas_->giveRoom(PlotCanvas::areaWidth(size.width()) - canvas_->axisRect()->width(), true);
    canvas_->layOut(size);
    canvas_->setClockTitle(clockAxisTitle(hub_.clock()));
  } else if (std::isfinite(room)) {
    clockTicker_->setLastLabel(last);
  }
}

void PlotView::showCursor() {
  const std::optional<double> x = hub_.cursor();
  if (!x) {
    header_->setItems(legend());
    canvas_->showCursor({}, {});
    return;
  }
  Readout readout = this->readout(*x);
  header_->setItems(std::move(readout.items));
  canvas_->showCursor(x, std::move(readout.dots));
}

void PlotView::setYRange(const Span& wanted) {
  const QCPRange range(wanted.low, wanted.high);
  if (QCPRange::validRange(range)) canvas_->y()->setRange(range);
}

Span PlotView::fittedY(double low, double high, bool logarithmic) {
  if (const std::optional<Span> chosen = hub_.y(number_)) return *chosen;
  const Span wanted = padded(low, high, logarithmic);
  const bool comparable = keptY_ && keptClock_ == hub_.clock() && keptLog_ == logarithmic && hub_.anyLive();
  keptY_ = comparable ? settled(*keptY_, wanted, logarithmic) : wanted;
  keptClock_ = hub_.clock();
  keptLog_ = logarithmic;
  return *keptY_;
}

int PlotView::headerHeight() const {
  return header_->sizeHint().height();
}

void PlotView::renderInto(QCPPainter& painter, const QRect& rect, const ThemeColors& colors) {
  canvas_->useColors(colors);
  const qreal ratio = painter.device() != nullptr ? painter.device()->devicePixelRatioF() : 1.0;
  const QRect canvas = rect.adjusted(0, headerHeight(), 0, 0);
  prepare(canvas.size(), ratio);
  std::vector<HeaderItem> atCursor = header_->items();
  header_->setItems(legend());
  header_->paintInto(painter, QRect(rect.topLeft(), QSize(rect.width(), headerHeight())), colors);
  header_->setItems(std::move(atCursor));
  paintCanvas(painter, canvas);
  leavePicture();
}

int PlotView::prepareOnPaper(const QSize& size, double ratio) {
  onPaper_ = true;
  canvas_->useColors(lightColors());
  // The header's text may depend on the space that it leaves.
  int header = headerHeight();
  for (int pass = 0; pass < 3; ++pass) {
    prepare(QSize(size.width(), std::max(size.height() - header, 1)), ratio);
    header_->setItems(legend());
    const int wanted = header_->heightOnPaper(size.width());
    if (wanted == header) break;
    header = wanted;
  }
  return header;
}

void PlotView::renderOnPaper(QCPPainter& painter, const QRect& rect) {
  std::vector<HeaderItem> atCursor = header_->items();
  const qreal ratio = painter.device() != nullptr ? painter.device()->devicePixelRatioF() : 1.0;
  const int header = prepareOnPaper(rect.size(), ratio);
  header_->paintOnPaper(painter, QRect(rect.topLeft(), QSize(rect.width(), header)));
  header_->setItems(std::move(atCursor));
  paintCanvas(painter, rect.adjusted(0, header, 0, 0));
  leavePicture();
}

int PlotView::leastOnPaper(int width, bool whole) {
  std::vector<HeaderItem> atCursor = header_->items();
  int least = 10'000;
  for (int pass = 0; pass < (whole ? 1 : 2); ++pass) {  // shortened text says so, which takes space
    const int header = prepareOnPaper(QSize(width, least), 1.0);
    const QMargins margins = canvas_->axisRect()->margins();
    least = header + margins.top() + margins.bottom() + leastArea(whole);
  }
  header_->setItems(std::move(atCursor));
  leavePicture();
  return least;
}

void PlotView::paintCanvas(QCPPainter& painter, const QRect& canvas) {
  painter.save();
  painter.translate(canvas.topLeft());
  canvas_->paintInto(&painter, canvas.width(), canvas.height());
  painter.restore();
}

void PlotView::leavePicture() {
  onPaper_ = false;
  clockTicker_->setTickCount(ticksOnScreen_);
  canvas_->giveRoom();
  canvas_->layOut(canvas_->size());
  canvas_->applyTheme();
  stale_ = true;
}

void PlotView::contextMenuEvent(QContextMenuEvent* event) {
  const bool byKey = event->reason() == QContextMenuEvent::Keyboard;
  Q_EMIT menuRequested(byKey ? menuPlace() : event->globalPos());
}

void PlotView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), canvas_->colors().surface);
}

void PlotView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  stale_ = true;
}

QString positionText(Clock clock, double x) {
  switch (clock) {
    case Clock::seconds:
    case Clock::computeSeconds: {
      const QString text = durationShort(x);
      return text.contains(QLatin1Char(':')) ? text : text + thinSpace + clockUnit(clock);
    }
    case Clock::epoch:
      return PlotView::tr("epoch %1").arg(QString::number(x, 'f', 3));
    case Clock::microStep:
    case Clock::update:
      return PlotView::tr("%1 %2").arg(clockUnit(clock), groupedNumber(std::llround(x)));
    case Clock::sample:
    case Clock::token:
      return PlotView::tr("%1 %2").arg(groupedNumber(std::llround(x)), clockUnit(clock));
  }
  return {};
}

}  // namespace accrue::ui

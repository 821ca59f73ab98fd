// SPDX-License-Identifier: GPL-3.0-or-later
#include "plots/plot_view.h"

#include <QContextMenuEvent>
#include <QPainter>
#include <QVBoxLayout>
#include <cmath>
#include <limits>

#include "models/number_text.h"
#include "models/run_text.h"
#include "plots/axis_tickers.h"
#include "style/theme.h"

namespace accrue::ui {

PlotView::PlotView(PlotHub& hub, int number, const QString& objectName, QWidget* parent)
    : QWidget(parent),
      hub_(hub),
      number_(number),
      header_(new PlotHeader(this)),
      canvas_(new PlotCanvas(hub, number, this)),
      clockTicker_(new ClockTicker) {
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

bool PlotView::refreshIfNeeded() {
  if (!isVisible() || canvas_->width() < 2 || canvas_->height() < 2) return false;
  const std::uint64_t data = hub_.dataRevision();
  if (!stale_ && seenView_ == hub_.revision() && seenData_ == data && seenSize_ == canvas_->size()) return false;
  seenView_ = hub_.revision();
  seenData_ = data;
  seenSize_ = canvas_->size();
  stale_ = false;
  prepare(canvas_->size(), canvas_->devicePixelRatioF());
  canvas_->replot(QCustomPlot::rpQueuedRefresh);
  showCursor();
  canvas_->setAccessibleDescription(summary());
  return true;
}

void PlotView::prepare(const QSize& size, double ratio) {
  clockTicker_->setClock(hub_.clock());
  clockTicker_->setLastLabel(std::numeric_limits<double>::infinity());
  canvas_->x()->setRange(hub_.x().low, hub_.x().high);
  canvas_->layOut(size);
  const double room = canvas_->setClockTitle(clockAxisTitle(hub_.clock()));
  if (std::isfinite(room)) clockTicker_->setLastLabel(canvas_->x()->pixelToCoord(room));
  rebuild(PlotCanvas::areaWidth(size.width()) * ratio);
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
  painter.save();
  painter.translate(canvas.topLeft());
  canvas_->paintInto(&painter, canvas.width(), canvas.height());
  painter.restore();
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

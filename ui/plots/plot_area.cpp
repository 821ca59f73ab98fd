// SPDX-License-Identifier: GPL-3.0-or-later
#include "plots/plot_area.h"

#include <QApplication>
#include <QEvent>
#include <QKeyEvent>
#include <QLabel>
#include <QSplitter>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "models/series_csv.h"
#include "models/smoothing.h"
#include "plots/learning_rate_plot.h"
#include "plots/loss_plot.h"
#include "plots/plot_accessible.h"
#include "plots/plot_export.h"
#include "plots/plot_hub.h"
#include "plots/sync_strip.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr double keyZoom = 1.25;
constexpr double keyPan = 0.1;
constexpr double farPan = 0.5;
constexpr int exportWidth = 960;

}  // namespace

PlotArea::PlotArea(QWidget* parent)
    : QWidget(parent),
      hub_(std::make_unique<PlotHub>()),
      stack_(new QStackedLayout(this)),
      emptyPage_(new QWidget(this)),
      emptyLabel_(new QLabel(emptyPage_)),
      splitter_(new QSplitter(Qt::Vertical, this)) {
  installPlotAccessibility();
  setObjectName(QStringLiteral("plotArea"));
  setAccessibleName(tr("Plots"));
  loss_ = new LossPlot(*hub_, splitter_);
  learningRate_ = new LearningRatePlot(*hub_, splitter_);
  strip_ = new SyncStrip(*hub_, splitter_);
  strip_->setShowsClock(true);
  splitter_->setObjectName(QStringLiteral("plotSplitter"));
  splitter_->setChildrenCollapsible(true);
  splitter_->setHandleWidth(space::inGroup);
  for (PlotView* view : views()) splitter_->addWidget(view);
  splitter_->setCollapsible(0, false);
  splitter_->setStretchFactor(0, 9);
  splitter_->setStretchFactor(1, 4);
  splitter_->setStretchFactor(2, 7);
  splitter_->setSizes({450, 200, 350});

  emptyLabel_->setObjectName(QStringLiteral("plotEmptyLabel"));
  emptyLabel_->setAlignment(Qt::AlignCenter);
  emptyLabel_->setWordWrap(true);
  emptyLabel_->setText(tr("No run yet. Press Run (F5) to train this set-up."));
  emptyLabel_->setForegroundRole(QPalette::PlaceholderText);
  emptyPage_->setBackgroundRole(QPalette::Base);
  emptyPage_->setAutoFillBackground(true);
  auto* empty = new QVBoxLayout(emptyPage_);
  empty->setContentsMargins(space::page, space::page, space::page, space::page);
  empty->addWidget(emptyLabel_);
  stack_->addWidget(emptyPage_);
  stack_->addWidget(splitter_);
  connectSignals();
  showEmptyState();
}

PlotArea::~PlotArea() {
  // The views hold references to the hub, so they are destroyed first.
  delete splitter_;
}

void PlotArea::connectSignals() {
  PlotHub* hub = hub_.get();
  connect(hub, &PlotHub::clockChanged, this, &PlotArea::clockChanged);
  connect(hub, &PlotHub::logYChanged, this, &PlotArea::logYChanged);
  connect(hub, &PlotHub::smoothingChanged, this, &PlotArea::smoothingChanged);
  connect(hub, &PlotHub::followChanged, this, &PlotArea::followLiveChanged);
  connect(hub, &PlotHub::cursorChanged, this, &PlotArea::reportCursor);
}

std::vector<PlotView*> PlotArea::views() const {
  return {loss_, learningRate_, strip_};
}

void PlotArea::setRuns(const QList<RunSeries*>& runs) {
  hub_->setRuns(runs);
  showEmptyState();
}

QList<RunSeries*> PlotArea::runs() const {
  return hub_->runs();
}

void PlotArea::setFocusedRun(RunSeries* run) {
  hub_->setFocused(run);
}

RunSeries* PlotArea::focusedRun() const {
  return hub_->focused();
}

void PlotArea::setClock(Clock clock) {
  hub_->setClock(clock);
}

Clock PlotArea::clock() const {
  return hub_->clock();
}

void PlotArea::setLogY(bool on) {
  hub_->setLogY(on);
}

bool PlotArea::logY() const {
  return hub_->logY();
}

void PlotArea::setSmoothing(double weight) {
  hub_->setSmoothing(weight);
}

double PlotArea::smoothing() const {
  return hub_->smoothing();
}

void PlotArea::setFollowLive(bool on) {
  hub_->setFollow(on);
}

bool PlotArea::followLive() const {
  return hub_->follow();
}

void PlotArea::fit() {
  hub_->fit();
}

void PlotArea::zoomX(double factor) {
  hub_->scaleX(1.0 / factor, hub_->cursor().value_or((hub_->x().low + hub_->x().high) / 2.0));
}

void PlotArea::panX(double fraction) {
  hub_->panX(fraction);
}

void PlotArea::zoomBack() {
  hub_->zoomBack();
}

void PlotArea::zoomForward() {
  hub_->zoomForward();
}

void PlotArea::goTo(double x) {
  const Span view = hub_->x();
  if (x < view.low || x > view.high) hub_->moveTo({x - view.size() / 2.0, x + view.size() / 2.0});
  hub_->setCursor(x);
}

void PlotArea::tick() {
  showEmptyState();
  if (!isVisible()) return;
  hub_->advance();
  for (PlotView* view : views()) view->refreshIfNeeded();
}

void PlotArea::showEmptyState() {
  const QList<RunSeries*> runs = hub_->runs();
  const bool any =
      std::any_of(runs.begin(), runs.end(), [](const RunSeries* run) { return run->hasEvents() || run->plan(); });
  QWidget* page = any ? static_cast<QWidget*>(splitter_) : emptyPage_;
  if (stack_->currentWidget() == page) return;
  const QWidget* focus = QApplication::focusWidget();
  const bool had = focus != nullptr && (focus == this || isAncestorOf(focus));
  stack_->setCurrentWidget(page);
  // Focus goes to a canvas, which shows a focus mark.
  setFocusProxy(any ? static_cast<QWidget*>(&loss_->canvas()) : nullptr);
  if (had) setFocus();
}

void PlotArea::reportCursor() {
  const std::optional<double> x = hub_->cursor();
  if (!x) {
    Q_EMIT cursorMoved({}, {});
    return;
  }
  QStringList lines;
  const QList<RunSeries*> runs = hub_->runs();
  for (const RunSeries* run : runs) {
    QStringList cells{run->name()};
    for (const PlotView* view : {static_cast<PlotView*>(loss_), static_cast<PlotView*>(learningRate_)})
      if (const QString text = view->valueAt(*run, *x); !text.isEmpty()) cells << text;
    if (cells.size() > 1) lines << cells.join(QStringLiteral("  "));
  }
  Q_EMIT cursorMoved(positionText(hub_->clock(), *x), lines);
}

std::vector<ExportPart> PlotArea::exportParts() const {
  std::vector<ExportPart> parts;
  const QList<int> sizes = splitter_->sizes();
  const std::vector<PlotView*> all = views();
  const bool laidOut =
      splitter_->isVisible() && std::count_if(sizes.begin(), sizes.end(), [](int size) { return size > 0; }) > 0;
  const std::array<int, 3> standard = {320, 140, 220};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int height = laidOut ? sizes[static_cast<qsizetype>(i)] : standard[i];
    if (height > 0) parts.push_back({all[i], height});
  }
  return parts;
}

int PlotArea::exportWidthNow() const {
  return splitter_->isVisible() ? splitter_->width() : std::max(width(), exportWidth);
}

QImage PlotArea::renderImage(qreal devicePixelRatio) const {
  hub_->advance();
  return paintImage(exportParts(), exportWidthNow(), devicePixelRatio);
}

QString PlotArea::exportImage(const QString& file) const {
  hub_->advance();
  return writePicture(exportParts(), exportWidthNow(), file);
}

QByteArray PlotArea::exportCsv() const {
  return seriesCsv(hub_->runs(), hub_->smoothing());
}

QStringList PlotArea::summaries() const {
  QStringList result;
  for (const PlotView* view : views()) result << view->summary();
  return result;
}

QString PlotArea::emptyText() const {
  return emptyLabel_->text();
}

void PlotArea::setEmptyText(const QString& text) {
  emptyLabel_->setText(text);
}

void PlotArea::keyPressEvent(QKeyEvent* event) {
  if (handleKey(event->key(), event->modifiers() & ~Qt::KeypadModifier))
    event->accept();
  else
    QWidget::keyPressEvent(event);
}

bool PlotArea::handleKey(int key, Qt::KeyboardModifiers modifiers) {
  const bool shift = modifiers.testFlag(Qt::ShiftModifier);
  const bool control = modifiers.testFlag(Qt::ControlModifier);
  if (modifiers & (Qt::AltModifier | Qt::MetaModifier)) return false;
  if (control) {
    if (key != Qt::Key_Left && key != Qt::Key_Right) return false;
    hub_->stepCursor(key == Qt::Key_Right ? 1 : -1);
    return true;
  }
  if (key >= Qt::Key_1 && key <= Qt::Key_7 && !shift) {
    setClock(allClocks[static_cast<std::size_t>(key - Qt::Key_1)]);
    return true;
  }
  switch (key) {
    case Qt::Key_A:
      fit();
      return true;
    case Qt::Key_L:
      if (shift) return false;
      setLogY(!logY());
      return true;
    case Qt::Key_End:
      setFollowLive(true);
      return true;
    case Qt::Key_S:
      setSmoothing(nextSmoothing(smoothing(), shift ? -1 : 1));
      return true;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      zoomX(keyZoom);
      return true;
    case Qt::Key_Minus:
    case Qt::Key_Underscore:
      zoomX(1.0 / keyZoom);
      return true;
    case Qt::Key_Left:
      panX(shift ? -farPan : -keyPan);
      return true;
    case Qt::Key_Right:
      panX(shift ? farPan : keyPan);
      return true;
    case Qt::Key_Backspace:
      if (shift)
        zoomForward();
      else
        zoomBack();
      return true;
    case Qt::Key_Escape:
      if (!hub_->cursor()) return false;
      hub_->setCursor({});
      return true;
    default:
      return false;
  }
}

void PlotArea::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange) return;
  if (loss_ == nullptr || strip_ == nullptr) return;
  for (PlotView* view : views()) view->markStale();
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_area.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QKeyEvent>
#include <QLabel>
#include <QScrollArea>
#include <QSplitter>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "canvas/parting_mark.h"
#include "canvas/plot_hub.h"
#include "canvas/plot_table.h"
#include "kit/theme.h"
#include "learning_rate_plot.h"
#include "loss_plot.h"
#include "metric_plot.h"
#include "plot_accessible.h"
#include "plot_export.h"
#include "plot_keys.h"
#include "run_key.h"
#include "series/group_curve.h"
#include "series/run_name.h"
#include "sync_strip.h"

namespace accrue::ui {

namespace {

constexpr int exportWidth = 960;
constexpr int leastAreaHeight = 240;

/// Relative height of a plot, out of `allHeight`.
constexpr int allHeight = 1000;
constexpr int stretchUnit = 50;  // QSplitter takes factors up to 255
int standardHeight(const PlotView& view) {
  if (qobject_cast<const LossPlot*>(&view)) return 450;
  return qobject_cast<const SyncStrip*>(&view) ? 350 : 200;
}

/// Scroll area for plots that do not fit. Keys belong to the plots.
class ScrolledPlots final : public QScrollArea {
 public:
  ScrolledPlots(QWidget* plots, QWidget* parent) : QScrollArea(parent) {
    setObjectName(QStringLiteral("plotScroll"));
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::NoFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setWidgetResizable(true);
    setMinimumHeight(leastAreaHeight);
    setWidget(plots);
  }

 protected:
  void keyPressEvent(QKeyEvent* event) override { event->ignore(); }
};

}  // namespace

PlotArea::PlotArea(QWidget* parent)
    : QWidget(parent),
      hub_(std::make_unique<PlotHub>()),
      stack_(new QStackedLayout),
      key_(new RunKey(this)),
      emptyPage_(new QWidget(this)),
      emptyLabel_(new QLabel(emptyPage_)),
      splitter_(new QSplitter(Qt::Vertical)),
      scrolled_(new ScrolledPlots(splitter_, this)) {
  installPlotAccessibility();
  setObjectName(QStringLiteral("plotArea"));
  setAccessibleName(tr("Plots"));
  splitter_->setObjectName(QStringLiteral("plotSplitter"));
  splitter_->setChildrenCollapsible(true);
  splitter_->setHandleWidth(space::inGroup);
  buildViews();
  setShownPlots({});

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
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(key_);
  column->addLayout(stack_, 1);
  key_->hide();
  stack_->addWidget(emptyPage_);
  stack_->addWidget(scrolled_);
  parting_ = new PartingMark(&all_.front()->canvas());
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
  connect(hub, &PlotHub::groupSeedsChanged, this, &PlotArea::groupSeedsChanged);
}

void PlotArea::buildViews() {
  const auto metric = [this](const char* name, Metric what, MetricPlot::Words words) {
    all_.push_back(
        new MetricPlot(*hub_, static_cast<int>(all_.size()) + 1, QLatin1String(name), what, std::move(words)));
  };
  all_ = {new LossPlot(*hub_), new LearningRatePlot(*hub_)};
  all_.push_back(new SyncStrip(*hub_, 2, QStringLiteral("syncStrip"), SyncStrip::Whose::focused));
  all_.push_back(new SyncStrip(*hub_, 3, QStringLiteral("otherSyncStrip"), SyncStrip::Whose::other));
  metric("validationPlot", Metric::evaluationLoss,
         {tr("Validation"), tr("loss of evaluations"), tr("validation loss")});
  metric("gradNormPlot", Metric::gradNorm,
         {tr("Gradient norm"), tr("of each update, before clipping"), tr("gradient norm")});
  metric("throughputPlot", Metric::samplesPerSecond,
         {tr("Throughput"), tr("samples a second, all ranks"), tr("samples a second")});
  metric("tokensPlot", Metric::tokensPerSecond,
         {tr("Tokens"), tr("tokens a second, all ranks"), tr("tokens a second")});
  const auto number = [this] { return static_cast<int>(all_.size()) + 1; };
  all_.push_back(new MemoryPlot(*hub_, number(), QStringLiteral("memoryPlot")));
  all_.push_back(new LossPartsPlot(*hub_, number(), QStringLiteral("lossPartsPlot")));
  all_.push_back(new LossScalePlot(*hub_, number(), QStringLiteral("lossScalePlot")));
  metric(updateNormPlot, Metric::updateNorm,
         {tr("Update norm"), tr("L2 norm of what an update adds to the weights"), tr("update norm")});
  metric("weightNormPlot", Metric::parameterNorm,
         {tr("Weight norm"), tr("L2 norm of all weights, after each update"), tr("weight norm")});
  metric("gradientZerosPlot", Metric::gradientZeros,
         {tr("Zeros in the gradient"), tr("elements that are exactly 0"), tr("zeros in the gradient")});
  all_.push_back(new ScalarsPlot(*hub_, number(), QStringLiteral("scalarsPlot")));
  for (PlotView* view : all_) {
    splitter_->addWidget(view);
    view->hide();
    connect(view, &PlotView::menuRequested, this, [this, view](const QPoint& at) { Q_EMIT menuRequested(view, at); });
  }
  for (int i = 0; i < splitter_->count(); ++i) splitter_->setCollapsible(i, false);
}

QStringList PlotArea::shownPlots() const {
  QStringList names;
  for (const PlotView* view : shown_) names << view->objectName();
  return names;
}

void PlotArea::setShownPlots(const QStringList& names) {
  shown_.clear();
  for (const QString& name : names) {
    const auto view = std::ranges::find(all_, name, &QObject::objectName);
    if (view != all_.end() && !isPlotShown(*view)) shown_.push_back(*view);
  }
  if (shown_.empty()) shown_ = {all_[0], all_[1], all_[2]};
  arrange();
}

void PlotArea::showBesideLoss(const QString& name) {
  const auto view = std::ranges::find(all_, name, &QObject::objectName);
  if (view == all_.end() || isPlotShown(*view)) return;
  setPlotShown(*view, true);
  const auto loss = std::ranges::find(shown_, all_.front());
  const auto after = loss == shown_.end() ? 0 : loss - shown_.begin() + 1;
  movePlot(*view, static_cast<int>(after - (std::ssize(shown_) - 1)));
}

bool PlotArea::isPlotShown(const PlotView* view) const {
  return std::ranges::find(shown_, view) != shown_.end();
}

void PlotArea::setPlotShown(PlotView* view, bool on) {
  if (on == isPlotShown(view) || (!on && shown_.size() < 2)) return;
  const bool had = view->isAncestorOf(QApplication::focusWidget());
  if (on)
    shown_.push_back(view);
  else
    std::erase(shown_, view);
  arrange();
  if (had) setFocus();
}

void PlotArea::movePlot(PlotView* view, int by) {
  const auto from = std::ranges::find(shown_, view);
  if (from == shown_.end()) return;
  const auto place = from - shown_.begin();
  const auto to = std::clamp<std::ptrdiff_t>(place + by, 0, std::ssize(shown_) - 1);
  if (to == place) return;
  shown_.erase(from);
  shown_.insert(shown_.begin() + to, view);
  arrange();
}

void PlotArea::arrange() {
  // Existing plots keep their heights, as far as a new one allows.
  std::map<const QWidget*, int> heights;
  const int whole = splitter_->isVisible() ? splitter_->height() : allHeight;
  for (const PlotView* view : all_)
    heights[view] = view->isVisible() ? view->height() : standardHeight(*view) * whole / allHeight;
  for (std::size_t i = 0; i < shown_.size(); ++i) splitter_->insertWidget(static_cast<int>(i), shown_[i]);
  QList<int> sizes;
  for (int i = 0; i < splitter_->count(); ++i) {
    auto* view = static_cast<PlotView*>(splitter_->widget(i));
    const bool shown = isPlotShown(view);
    view->setVisible(shown);
    view->setShowsClock(view == shown_.back());
    sizes << (shown ? heights[view] : 0);
    splitter_->setStretchFactor(i, standardHeight(*view) / stretchUnit);
  }
  splitter_->setSizes(sizes);
  if (stack_->currentWidget() == scrolled_) setFocusProxy(&shown_.front()->canvas());
  Q_EMIT shownPlotsChanged();
}

void PlotArea::resetHeights() {
  QList<int> sizes;
  for (int i = 0; i < splitter_->count(); ++i) {
    const auto* view = static_cast<PlotView*>(splitter_->widget(i));
    sizes << (isPlotShown(view) ? standardHeight(*view) : 0);
  }
  splitter_->setSizes(sizes);
}

void PlotArea::showTable(PlotView* view) {
  (new PlotTableWindow(view, this))->show();
}

PlotView* PlotArea::currentView() const {
  for (PlotView* view : shown_)
    if (view->isAncestorOf(QApplication::focusWidget())) return view;
  return shown_.front();
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

void PlotArea::setGroupSeeds(bool on) {
  hub_->setGroupSeeds(on);
}

bool PlotArea::groupSeeds() const {
  return hub_->groupSeeds();
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

void PlotArea::zoomToWindow() {
  hub_->zoomToWindow(hub_->cursor().value_or(std::numeric_limits<double>::max()));
}

void PlotArea::stepWindow(int direction) {
  hub_->stepWindow(direction);
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
  refreshKey();
  if (std::ranges::any_of(shown_, &PlotView::viewChanged))
    drawAll();
  else if (!turn_.isActive() && std::ranges::any_of(shown_, &PlotView::outdated))
    turn_.start(0, this);
  parting_->place(hub_->clock());
}

void PlotArea::drawAll() {
  turn_.stop();
  next_ = 0;
  for (PlotView* view : shown_) view->refreshIfNeeded();
}

/// A frame that comes before the last plot's turn does not restart, or the last would never be drawn.
void PlotArea::drawNext() {
  while (next_ < shown_.size())
    if (shown_[next_++]->refreshIfNeeded()) return;
  turn_.stop();
  next_ = 0;
}

void PlotArea::timerEvent(QTimerEvent* event) {
  if (event->timerId() == turn_.timerId())
    drawNext();
  else
    QWidget::timerEvent(event);
}

void PlotArea::setKeyShown(bool on) {
  key_->setVisible(on);
  refreshKey();
}

/// A run that is drawn as one of several seeds has the group's entry.
void PlotArea::refreshKey() {
  if (key_->isHidden()) return;
  std::vector<HeaderItem> items;
  const auto& groups = hub_->groups();
  const bool grouped = isPlotShown(all_.front());
  const QList<RunSeries*> runs = hub_->runs();
  for (const RunSeries* run : runs) {
    const bool seed = grouped && std::ranges::any_of(groups, [run](const auto& group) { return group->holds(run); });
    if (!seed) items.push_back({HeaderItem::Swatch::run, run->colorIndex(), {}, run->name()});
  }
  if (grouped)
    for (const auto& group : groups) items.push_back({HeaderItem::Swatch::run, group->colorIndex(), {}, group->name()});
  key_->setItems(std::move(items));
}

void PlotArea::setParting(const std::optional<ClockPoint>& at, const QStringList& chips) {
  parting_->setParting(at, chips);
}

void PlotArea::showEmptyState() {
  const QList<RunSeries*> runs = hub_->runs();
  const bool any =
      std::any_of(runs.begin(), runs.end(), [](const RunSeries* run) { return run->hasEvents() || run->plan(); });
  QWidget* page = any ? scrolled_ : emptyPage_;
  if (stack_->currentWidget() == page) return;
  const QWidget* focus = QApplication::focusWidget();
  const bool had = focus != nullptr && (focus == this || isAncestorOf(focus));
  stack_->setCurrentWidget(page);
  // Focus goes to a canvas, which shows a focus mark.
  setFocusProxy(any ? static_cast<QWidget*>(&shown_.front()->canvas()) : nullptr);
  if (had) setFocus();
}

QStringList PlotArea::readOut() const {
  const std::optional<double> x = hub_->cursor();
  if (!x) return {};
  QStringList lines{positionText(hub_->clock(), *x)};
  const QList<RunSeries*> runs = hub_->runs();
  for (const RunSeries* run : runs) {
    QStringList cells{run->name()};
    for (const PlotView* view : shown_)
      if (const QString text = view->valueAt(*run, *x); !text.isEmpty()) cells << text;
    if (cells.size() > 1) lines << cells.join(QStringLiteral("  "));
  }
  return lines;
}

bool PlotArea::copyReadOut() const {
  if (!hub_->cursor()) return false;
  QGuiApplication::clipboard()->setText(readOut().join(u'\n'));
  return true;
}

std::vector<ExportPart> PlotArea::exportParts() const {
  std::vector<ExportPart> parts;
  for (PlotView* view : shown_)
    parts.push_back({view, splitter_->isVisible() && view->height() > 0 ? view->height() : standardHeight(*view)});
  return parts;
}

int PlotArea::exportWidthNow() const {
  return splitter_->isVisible() ? splitter_->width() : std::max(width(), exportWidth);
}

QImage PlotArea::renderImage(qreal devicePixelRatio) const {
  hub_->advance();
  return paintImage(exportParts(), exportWidthNow(), devicePixelRatio);
}

Figure PlotArea::figure(const FigureSize& size) const {
  hub_->advance();
  Figure figure{exportParts(), {}, {}, {}, size};
  QStringList names;
  std::vector<NamedSpec> specs;
  QList<RunSeries*> runs = hub_->runs();
  runs.removeIf([](const RunSeries* run) { return failedUnmeasured(*run); });
  for (const RunSeries* run : runs) {
    if (!names.contains(run->givenName())) names << run->givenName();
    specs.push_back({run->givenName(), run->spec() ? &*run->spec() : nullptr});
    figure.legend.push_back({HeaderItem::Swatch::run, run->colorIndex(), {}, run->name()});
  }
  const bool grouped = isPlotShown(all_.front()) && !hub_->groups().empty();
  if (grouped)
    for (const auto& curve : hub_->groups())
      figure.legend.push_back({HeaderItem::Swatch::run, curve->colorIndex(), {}, curve->name()});
  figure.title = names.join(QStringLiteral(", "));
  std::optional<RunSpec> planned;  // settings of a single run, as planned
  if (runs.size() == 1) planned = runs.front()->plannedSpec();
  if (planned) specs.front().spec = &*planned;
  const QString settings = differencesText(specs);
  QStringList sentences;
  // The title already has the name of a single run.
  if (runs.size() == 1 && !settings.isEmpty()) figure.legend.front().text = settings;
  if (runs.size() > 1 && !settings.isEmpty()) sentences << tr("The runs differ: %1.").arg(settings);
  if (grouped)
    sentences << tr("Loss: thick line, mean over seeds; band, minimum to maximum; thin lines, single seeds.");
  // Only the loss is smoothed.
  const bool smoothed = hub_->smoothing() > 0.0 && isPlotShown(all_.front()) &&
                        std::ranges::any_of(runs, [](auto* run) { return !run->series(Metric::updateLoss).empty(); });
  if (smoothed)
    sentences << (grouped ? tr("Smoothed, each run by itself: %1.") : tr("Smoothed: %1."))
                     .arg(smoothingFormula(hub_->smoothing()));
  figure.caption = sentences.join(u' ');
  return figure;
}

SeriesSnapshot PlotArea::snapshot() const {
  return {hub_->runs(), hub_->smoothing()};
}

QStringList PlotArea::summaries() const {
  QStringList result;
  for (const PlotView* view : shown_) result << view->summary();
  return result;
}

QString PlotArea::emptyText() const {
  return emptyLabel_->text();
}

void PlotArea::setEmptyText(const QString& text) {
  emptyLabel_->setText(text);
}

void PlotArea::keyPressEvent(QKeyEvent* event) {
  if (pressPlotKey(*this, *hub_, event->key(), event->modifiers() & ~Qt::KeypadModifier))
    event->accept();
  else
    QWidget::keyPressEvent(event);
}

void PlotArea::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange) return;
  for (PlotView* view : shown_) view->markStale();
}

}  // namespace accrue::ui

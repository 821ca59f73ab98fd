// SPDX-License-Identifier: GPL-3.0-or-later
#include "sync_strip.h"

#include <QScrollBar>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

#include "canvas/lane_clock.h"
#include "kit/number_text.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

/// Number of operations after a micro-step's first that are searched.
constexpr int furthest = 1024;
/// Number of lanes whose height the strip requests; fewer in a low window.
constexpr int lanesWanted = 4;
constexpr int lanesWantedLow = 3;
constexpr int lowWindow = 560;

/// Time of a micro-step's operations on this lane, over all chunks of a pipeline.
double secondsOf(const SpanTrack& spans, const MicroPlace& place) {
  double seconds = 0.0;
  auto span = std::lower_bound(spans.begin(), spans.end(), place.begin,
                               [](const ComputeSpan& each, double t) { return each.begin < t; });
  for (int passed = 0; span != spans.end() && passed < furthest; ++span, ++passed)
    if (span->microStep == place.microStep) seconds += static_cast<double>(span->seconds);
  return seconds;
}

}  // namespace

SyncStrip::SyncStrip(PlotHub& hub, int number, const QString& objectName, Whose whose, QWidget* parent)
    : PlotView(hub, number, objectName, parent),
      whose_(whose),
      lanes_(new SyncLanes(canvas().x(), canvas().y(), QStringLiteral("curves"))),
      bar_(new QScrollBar(Qt::Vertical, &canvas())),
      ticker_(new QCPAxisTickerText) {
  bar_->setObjectName(QStringLiteral("syncScroll"));
  bar_->setAccessibleName(tr("Lanes"));
  bar_->hide();
  connect(bar_, &QScrollBar::valueChanged, this, &SyncStrip::markStale);
  canvas().setAccessibleName(whose == Whose::focused ? tr("Sync strip") : tr("Sync strip of another run"));
  canvas().setZoomsY(false);
  canvas().setZoomsToWindow(true);
  canvas().y()->setTicker(ticker_);
  canvas().y()->setRangeReversed(true);
  canvas().y()->grid()->setVisible(false);
  header().setTitle(title(), {});
  header().setBadgeBelow(true);
  connect(&canvas(), &PlotCanvas::hovered, this, [this](double, double y) { hoveredLane_ = y; });
}

const RunSeries* SyncStrip::shown() const {
  const RunSeries* first = hub().leading();
  if (whose_ == Whose::focused) return first;
  const QList<RunSeries*> runs = hub().runs();
  const auto other = std::find_if(runs.rbegin(), runs.rend(), [first](const RunSeries* run) { return run != first; });
  return other == runs.rend() ? nullptr : *other;
}

bool SyncStrip::isNamed(const RunSeries* run) const {
  const QList<RunSeries*> runs = hub().runs();
  return runs.size() > 1 || std::ranges::find(runs, run) == runs.end();
}

QString SyncStrip::title() const {
  return whose_ == Whose::focused ? tr("Sync") : tr("Sync B");
}

QString SyncStrip::reductions(const RunSeries& run) const {
  const SyncTimeline& timeline = run.timeline();
  const std::int64_t count = timeline.reductions();
  if (count == 0) return tr("no gradient reductions");
  const QString sent = count == 1 ? tr("1 gradient reduction, %1").arg(bytesText(timeline.reducedBytes()))
                                  : tr("%1 gradient reductions, %2")
                                        .arg(countText(static_cast<double>(count)), bytesText(timeline.reducedBytes()));
  const std::int64_t micro = timeline.lanes().begin()->second.microSteps();
  const auto windows = static_cast<std::int64_t>(run.series(Metric::updateLoss).size());
  const std::int64_t reducing = timeline.reducingMicroSteps();
  if (windows == 0 || micro <= windows) return sent;
  return 2 * reducing < windows + micro
             ? tr("%1 (every micro-step: %2)").arg(sent, bytesText(timeline.bytesIfReduced(micro)))
             : tr("%1 (once a window: %2)").arg(sent, bytesText(timeline.bytesIfReduced(windows)));
}

QString SyncStrip::badge(const RunSeries& run) const {
  const SyncTimeline& timeline = run.timeline();
  QStringList others;
  if (const std::int64_t count = timeline.otherCollectives(); count > 0)
    others << (count == 1 ? tr("1 other collective")
                          : tr("%1 other collectives").arg(countText(static_cast<double>(count))));
  if (timeline.messages() > 0) others << tr("%1 messages").arg(countText(static_cast<double>(timeline.messages())));
  if (others.isEmpty()) return timeline.collectives() > 0 ? reductions(run) : tr("no collectives");
  others << bytesText(timeline.bytes() - timeline.reducedBytes());
  return QStringLiteral("%1; %2").arg(reductions(run), others.join(QStringLiteral(", ")));
}

QString SyncStrip::badgeHelp(const RunSeries& run) const {
  QStringList help;
  if (run.timeline().reductions() > 0)
    help << tr(
        "A reduction is counted once, however many ranks take part; bytes are what all ranks together hand in. "
        "The planner says what is sent: when n ranks all-reduce, 2 (n - 1) / n of that, the same on two ranks.");
  if (run.lamp().checks() > 0 && !run.timeline().saysPurposes())
    help << tr(
        "Where an earlier version of Accrue recorded this run, exactness checks are counted as reductions, too.");
  if (run.timeline().otherCollectives() > 0)
    help << tr(
        "Others: the weights sent at the start, the counts of items and whatever else the ranks agree on, and what "
        "exactness checks exchange, each once a rank.");
  return help.join(QLatin1Char('\n'));
}

void SyncStrip::updateLabels(const RunSeries* run) {
  ticker_->clear();
  if (run == nullptr) return;
  const QFontMetrics metrics(canvas().y()->tickLabelFont());
  double lane = 0.5;
  for (const SyncLanes::Row& row : SyncLanes::rowsOf(*run)) {
    const QString name = row.use == nullptr ? tr("rank %1").arg(row.rank) : run->timeline().axes()[row.use->axis];
    ticker_->addTick(lane, metrics.elidedText(name, Qt::ElideRight, PlotCanvas::leftMargin() - space::inGroup));
    lane += 1.0;
  }
}

void SyncStrip::placeLanes() {
  constexpr double place = SyncLanes::leastLane + SyncLanes::laneGap;
  const int count = std::max(lanes_->laneCount(), 1);
  const int below = canvas().showsClock() ? PlotCanvas::axisMargin() : PlotCanvas::bottomMargin();
  const int height = canvas().viewport().height() - PlotCanvas::topMargin() - below;
  const int fits = std::clamp(static_cast<int>(height / place), 1, count);
  shownLanes_ = {std::min(bar_->value(), count - fits), fits};
  if (onPaper()) {
    setYRange({static_cast<double>(shownLanes_.first), static_cast<double>(shownLanes_.first + fits)});
    return;
  }
  const int wanted = window()->height() < lowWindow ? lanesWantedLow : lanesWanted;
  const int lanes = PlotCanvas::topMargin() + below + static_cast<int>(place) * std::min(count, wanted);
  setMinimumHeight(headerHeight() + std::max(lanes, canvas().minimumHeight()));
  bar_->setGeometry(canvas().width() - PlotCanvas::rightMargin() + space::base, PlotCanvas::topMargin(),
                    PlotCanvas::rightMargin() - space::base, std::max(height, 1));
  bar_->setPageStep(fits);
  bar_->setRange(0, count - fits);
  bar_->setVisible(fits < count);
  setYRange({static_cast<double>(bar_->value()), static_cast<double>(bar_->value() + fits)});
}

int SyncStrip::leastArea(bool whole) const {
  constexpr int place = static_cast<int>(SyncLanes::leastLane + SyncLanes::laneGap);
  const int count = std::max(lanes_->laneCount(), 1);
  return std::max(leastDrawing, place * (whole ? count : std::min(count, lanesWanted)));
}

void SyncStrip::rebuild(double) {
  const RunSeries* run = shown();
  lanes_->show(run, hub().clock(), canvas().colors());
  updateLabels(run);
  placeLanes();
  if (run == nullptr || run->timeline().empty()) {
    const bool untold = run != nullptr && !run->isLive() && !run->series(Metric::updateLoss).empty();
    header().setTitle(title(), whose_ == Whose::other && run == nullptr
                                   ? tr("show a second run to set its ranks above or below these")
                               : untold ? tr("the run's record says nothing of its ranks")
                                        : tr("ranks and their collectives appear here while a run trains"));
    header().setBadge({});
    return;
  }
  const SyncTimeline& timeline = run->timeline();
  const QString whose = isNamed(run)                 ? run->name()
                        : timeline.axes().size() > 1 ? tr("by rank and axis")
                                                     : tr("one lane a rank");
  QString shows = tr("collectives by bytes");
  if (lanes_->showsShares()) {
    const std::size_t windows = lanes_->windowsPerColumn();
    shows = windows == 0   ? tr("each column: time of several micro-steps")
            : windows == 1 ? tr("each column: time of one window")
                           : tr("each column: time of %1 windows").arg(windows);
  }
  QString unit = tr("%1, %2").arg(whose, shows);
  if (onPaper() && shownLanes_.count < lanes_->laneCount())
    unit = tr("%1; lanes %2 to %3 of %4")
               .arg(unit)
               .arg(shownLanes_.first + 1)
               .arg(shownLanes_.first + shownLanes_.count)
               .arg(lanes_->laneCount());
  header().setTitle(title(), unit);
  header().setBadge(badge(*run), badgeHelp(*run));
}

std::vector<HeaderItem> SyncStrip::legend() const {
  const RunSeries* run = shown();
  if (run == nullptr || run->timeline().empty()) return {};
  const ThemeColors& colors = canvas().colors();
  using Swatch = HeaderItem::Swatch;
  std::vector<HeaderItem> items;
  if (isNamed(run)) items.push_back({Swatch::run, run->colorIndex(), {}, {}});
  //: Short for forward, backward, collective, waiting where a legend has little room
  const QString forward = tr("fwd"), backward = tr("bwd"), collective = tr("coll."), waiting = tr("wait");
  items.insert(items.end(), {{Swatch::block, 0, colors.forward, tr("forward"), {}, forward},
                             {Swatch::block, 0, colors.backward, tr("backward"), {}, backward},
                             {Swatch::block, 0, colors.optimizerStep, tr("step")}});
  const std::vector<QString>& axes = run->timeline().axes();
  if (axes.size() < 2)
    items.push_back({Swatch::bar,
                     0,
                     axes.empty() ? colors.collective : axisColor(colors, axes.front()),
                     tr("collective"),
                     {},
                     collective});
  if (axes.size() >= 2)
    for (const std::uint8_t axis : run->timeline().shownAxes())
      items.push_back({Swatch::bar, 0, axisColor(colors, axes[axis]), tr("%1 axis").arg(axes[axis]), {}, axes[axis]});
  if (run->timeline().sendsAside())
    items.push_back({lanes_->showsShares() ? Swatch::block : Swatch::foot,
                     0,
                     colors.muted,
                     tr("agreeing or checking"),
                     {},
                     tr("agree")});
  items.push_back({Swatch::hatch,
                   0,
                   colors.waiting,
                   run->lamp().checks() > 0 ? tr("waiting or checking") : tr("waiting"),
                   {},
                   waiting});
  return items;
}

QString SyncStrip::laneText(const RunSeries& run, const SyncLanes::Row& row, double x) const {
  const Lane& lane = *row.lane;
  if (lane.micro.empty()) return {};
  const LaneClock clock(lane, run.series(Metric::microLoss).clocks(), hub().clock());
  if (!clock.covers(x)) return {};
  const double time = clock.toTime(x);
  const auto after = std::upper_bound(lane.micro.begin(), lane.micro.end(), time,
                                      [](double t, const MicroPlace& place) { return t < place.begin; });
  const MicroPlace& span = after == lane.micro.begin() ? *after : *(after - 1);
  if (span.microStep <= lane.condensedTo()) {
    const auto [begin, end] = clock.period(static_cast<std::size_t>(&span - lane.micro.data()));
    const LaneShare before = lane.spent(begin);
    const LaneShare past = lane.spent(end);
    const QString which =
        span.count == 1
            ? tr("micro-step %1").arg(groupedNumber(span.microStep))
            : tr("micro-steps %1 to %2 together").arg(groupedNumber(span.microStep), groupedNumber(span.last()));
    const QString spent =
        tr("rank %1, %2: forward %3, backward %4, transfer %5")
            .arg(row.rank)
            .arg(which, spanText(past.forward - before.forward), spanText(past.backward - before.backward),
                 spanText(past.collective - before.collective));
    const double aside = past.aside - before.aside;
    return aside > 0.0 ? tr("%1, agreeing or checking %2").arg(spent, spanText(aside)) : spent;
  }
  QString text = tr("rank %1, micro-step %2: forward %3, backward %4")
                     .arg(row.rank)
                     .arg(groupedNumber(span.microStep), spanText(secondsOf(lane.forward, span)),
                          spanText(secondsOf(lane.backward, span)));
  struct Sent {
    double seconds = 0.0;
    std::int64_t bytes = 0;
    int count = 0;
  } reduced, other;
  double waited = 0.0;
  auto sync = std::lower_bound(lane.sync.begin(), lane.sync.end(), span.begin,
                               [](const SyncSpan& item, double t) { return item.begin < t; });
  for (int passed = 0; sync != lane.sync.end() && passed < furthest; ++sync, ++passed) {
    if (sync->microStep != span.microStep || (row.use != nullptr && sync->axis != row.use->axis)) continue;
    Sent& sent = sync->reducesGradients ? reduced : other;
    sent.seconds += sync->end - sync->transfer;
    sent.bytes += sync->bytes;
    ++sent.count;
    waited += sync->transfer - sync->begin;
  }
  const auto tell = [&](const Sent& sent, QString which) {
    if (sent.count == 0) return;
    if (row.use != nullptr) which = tr("%1 over the %2 axis").arg(which, run.timeline().axes()[row.use->axis]);
    text += tr(", %1 of %2 in %3").arg(which, bytesText(sent.bytes), spanText(sent.seconds));
  };
  tell(reduced, reduced.count == 1 ? tr("1 gradient reduction") : tr("%1 gradient reductions").arg(reduced.count));
  tell(other, reduced.count == 0 ? (other.count == 1 ? tr("1 collective") : tr("%1 collectives").arg(other.count))
              : other.count == 1 ? tr("1 other collective")
                                 : tr("%1 other collectives").arg(other.count));
  return waited > 0.0 ? text + tr(", waited %1").arg(spanText(waited)) : text;
}

PlotView::Readout SyncStrip::readout(double x) const {
  Readout result;
  const RunSeries* run = shown();
  if (run == nullptr || run->timeline().empty()) return result;
  const std::vector<SyncLanes::Row> rows = SyncLanes::rowsOf(*run);
  const auto index = static_cast<std::size_t>(std::clamp(hoveredLane_, 0.0, static_cast<double>(rows.size()) - 0.5));
  const QString text = laneText(*run, rows[index], x);
  result.items.push_back({HeaderItem::Swatch::none,
                          0,
                          {},
                          text.isEmpty() ? tr("rank %1: nothing measured here").arg(rows[index].rank) : text});
  return result;
}

QString SyncStrip::valueAt(const RunSeries& run, double x) const {
  if (&run != shown() || run.timeline().empty()) return {};
  return laneText(run, SyncLanes::rowsOf(run).front(), x);
}

PlotTable SyncStrip::table() const {
  PlotTable table;
  table.headers = {
      tr("Update"),  tr("Rank"), tr("Forward"), tr("Backward"), tr("Step"), tr("Transfer"), tr("Agreeing or checking"),
      tr("Waiting"), tr("Bytes")};
  const QPointer<const RunSeries> run = shown();
  if (!run || run->timeline().empty()) return table;
  const std::size_t ranks = run->timeline().lanes().size();
  table.rows = run->series(Metric::updateLoss).size() * ranks;
  table.cell = [run, ranks](std::size_t row, int column) {
    if (!run || run->timeline().lanes().size() != ranks) return QString();
    const std::size_t window = row / ranks;
    const auto& [rank, lane] = *std::next(run->timeline().lanes().begin(), static_cast<std::ptrdiff_t>(row % ranks));
    if (column == 0) return groupedNumber(static_cast<std::int64_t>(window) + 1);
    if (column == 1) return groupedNumber(rank);
    const ClockColumn& ends = run->series(Metric::updateLoss).clock(Clock::microStep);
    if (window >= ends.size() || lane.micro.empty()) return QString();
    if ((window > 0 ? ends[window - 1] : 0.0) < static_cast<double>(lane.condensedTo())) return tr("not kept");
    const LaneClock clock(lane, run->series(Metric::microLoss).clocks(), Clock::microStep);
    const double begin = clock.toTime(window > 0 ? ends[window - 1] : 0.0);
    const double end = clock.toTime(ends[window]);
    const LaneShare before = lane.spent(begin);
    const LaneShare after = lane.spent(end);
    const std::array times = {after.forward - before.forward, after.backward - before.backward,
                              after.step - before.step, after.collective - before.collective,
                              after.aside - before.aside};
    if (column < 7) return spanText(times[static_cast<std::size_t>(column) - 2]);
    if (column == 7)
      return spanText(
          std::max(std::accumulate(times.begin(), times.end(), clock.shown(begin, end), std::minus()), 0.0));
    std::int64_t bytes = 0;
    for (auto sync = lane.syncReaching(begin); sync != lane.sync.end() && sync->begin < end; ++sync)
      if (sync->begin >= begin) bytes += sync->bytes;
    return bytesText(bytes);
  };
  return table;
}

QString SyncStrip::summary() const {
  const RunSeries* run = shown();
  if (run == nullptr || run->timeline().empty()) return tr("sync strip: nothing measured yet");
  const std::size_t ranks = run->timeline().lanes().size();
  return (ranks == 1 ? tr("sync strip: 1 rank") : tr("sync strip: %1 ranks").arg(ranks)) + QStringLiteral(", ") +
         badge(*run);
}

}  // namespace accrue::ui

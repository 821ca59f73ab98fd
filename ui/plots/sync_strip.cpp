// SPDX-License-Identifier: GPL-3.0-or-later
#include "plots/sync_strip.h"

#include <algorithm>
#include <cmath>

#include "models/number_text.h"
#include "models/run_text.h"
#include "plots/lane_clock.h"
#include "plots/sync_lanes.h"

namespace accrue::ui {

namespace {

/// A micro-step's operations are searched among this many after its first.
constexpr int furthest = 1024;

/// Time of a micro-step's operations on this lane, over all chunks of a pipeline.
double secondsOf(const std::vector<ComputeSpan>& spans, const MicroPlace& place) {
  double seconds = 0.0;
  auto span = std::lower_bound(spans.begin(), spans.end(), place.begin,
                               [](const ComputeSpan& each, double t) { return each.begin < t; });
  for (int passed = 0; span != spans.end() && passed < furthest; ++span, ++passed)
    if (span->microStep == place.microStep) seconds += static_cast<double>(span->seconds);
  return seconds;
}

}  // namespace

SyncStrip::SyncStrip(PlotHub& hub, QWidget* parent)
    : PlotView(hub, 2, QStringLiteral("syncStrip"), parent),
      lanes_(new SyncLanes(canvas().x(), canvas().y(), QStringLiteral("curves"))),
      ticker_(new QCPAxisTickerText) {
  canvas().setAccessibleName(tr("Sync strip"));
  canvas().setZoomsY(false);
  canvas().y()->setTicker(ticker_);
  canvas().y()->setRangeReversed(true);
  canvas().y()->grid()->setVisible(false);
  header().setTitle(tr("Sync"), {});
  connect(&canvas(), &PlotCanvas::hovered, this, [this](double, double y) { hoveredLane_ = y; });
}

const RunSeries* SyncStrip::shown() const {
  if (hub().focused() != nullptr) return hub().focused();
  const QList<RunSeries*> runs = hub().runs();
  return runs.isEmpty() ? nullptr : runs.last();
}

void SyncStrip::updateLabels(const RunSeries* run) {
  ticker_->clear();
  if (run == nullptr) return;
  double lane = 0.5;
  const auto& lanes = run->timeline().lanes();
  const std::size_t stride =
      std::max<std::size_t>(lanes.size() * 16 / static_cast<std::size_t>(std::max(canvas().height(), 1)), 1);
  std::size_t index = 0;
  for (const auto& [rank, spans] : lanes) {
    if (index++ % stride == 0) ticker_->addTick(lane, tr("rank %1").arg(rank));
    lane += 1.0;
  }
}

void SyncStrip::rebuild(double) {
  const RunSeries* run = shown();
  lanes_->show(run, hub().clock(), canvas().colors());
  updateLabels(run);
  const int count = std::max(lanes_->laneCount(), 1);
  setYRange({0.0, static_cast<double>(count)});
  if (run == nullptr || run->timeline().empty()) {
    header().setTitle(tr("Sync"), tr("ranks and their collectives appear here while a run trains"));
    header().setBadge({});
    return;
  }
  const SyncTimeline& timeline = run->timeline();
  const QString whose = hub().runs().size() > 1 ? run->name() : tr("one lane a rank");
  header().setTitle(tr("Sync"), lanes_->showsShares() ? tr("%1, columns show shares of time").arg(whose)
                                                      : tr("%1, collectives by bytes").arg(whose));
  header().setBadge(timeline.collectives() == 0 ? tr("no collectives")
                                                : tr("%1 collectives, %2")
                                                      .arg(countText(static_cast<double>(timeline.collectives())),
                                                           bytesText(timeline.bytes())));
}

std::vector<HeaderItem> SyncStrip::legend() const {
  const RunSeries* run = shown();
  if (run == nullptr || run->timeline().empty()) return {};
  const ThemeColors& colors = canvas().colors();
  using Swatch = HeaderItem::Swatch;
  std::vector<HeaderItem> items{{Swatch::block, 0, colors.forward, tr("forward")},
                                {Swatch::block, 0, colors.backward, tr("backward")},
                                {Swatch::block, 0, colors.optimizerStep, tr("step")}};
  const std::vector<QString>& axes = run->timeline().axes();
  if (axes.size() < 2) items.push_back({Swatch::bar, 0, colors.collective, tr("collective")});
  if (axes.size() >= 2)
    for (const QString& axis : axes)
      items.push_back({Swatch::bar, 0, axisColor(colors, axis), tr("%1 axis").arg(axis)});
  items.push_back({Swatch::hatch, 0, colors.waiting, tr("waiting")});
  return items;
}

QString SyncStrip::laneText(const RunSeries& run, std::int64_t rank, const Lane& lane, double x) const {
  if (lane.micro.empty()) return {};
  const LaneClock clock(lane, run.series(Metric::microLoss).clocks(), hub().clock());
  const double time = clock.toTime(x);
  const auto after = std::upper_bound(lane.micro.begin(), lane.micro.end(), time,
                                      [](double t, const MicroPlace& place) { return t < place.begin; });
  const MicroPlace& span = after == lane.micro.begin() ? *after : *(after - 1);
  QString text = tr("rank %1, micro-step %2: forward %3, backward %4")
                     .arg(rank)
                     .arg(groupedNumber(span.microStep), spanText(secondsOf(lane.forward, span)),
                          spanText(secondsOf(lane.backward, span)));
  double seconds = 0.0;
  std::int64_t bytes = 0;
  int count = 0;
  auto sync = std::lower_bound(lane.sync.begin(), lane.sync.end(), span.begin,
                               [](const SyncSpan& item, double t) { return item.begin < t; });
  for (; sync != lane.sync.end() && sync->microStep == span.microStep; ++sync, ++count) {
    seconds += sync->end - sync->begin;
    bytes += sync->bytes;
  }
  if (count > 0) {
    const QString which = count == 1 ? tr("1 collective") : tr("%1 collectives").arg(count);
    text += tr(", %1 of %2 in %3").arg(which, bytesText(bytes), spanText(seconds));
  }
  return text;
}

PlotView::Readout SyncStrip::readout(double x) const {
  Readout result;
  const RunSeries* run = shown();
  if (run == nullptr || run->timeline().empty()) return result;
  const auto& lanes = run->timeline().lanes();
  const auto index =
      static_cast<std::size_t>(std::clamp(hoveredLane_, 0.0, static_cast<double>(lanes.size() - 1) + 0.5));
  const auto lane = std::next(lanes.begin(), static_cast<std::ptrdiff_t>(std::min(index, lanes.size() - 1)));
  if (const QString text = laneText(*run, lane->first, lane->second, x); !text.isEmpty())
    result.items.push_back({HeaderItem::Swatch::none, 0, {}, text});
  return result;
}

QString SyncStrip::valueAt(const RunSeries& run, double x) const {
  if (&run != shown() || run.timeline().empty()) return {};
  const auto& [rank, lane] = *run.timeline().lanes().begin();
  return laneText(run, rank, lane, x);
}

QString SyncStrip::summary() const {
  const RunSeries* run = shown();
  if (run == nullptr || run->timeline().empty()) return tr("sync strip: nothing measured yet");
  const SyncTimeline& timeline = run->timeline();
  const std::size_t ranks = timeline.lanes().size();
  return (ranks == 1 ? tr("sync strip: 1 rank") : tr("sync strip: %1 ranks").arg(ranks)) +
         tr(", %1 collectives, %2").arg(groupedNumber(timeline.collectives()), bytesText(timeline.bytes()));
}

}  // namespace accrue::ui

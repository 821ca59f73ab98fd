// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_hub.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "points/smoothing.h"
#include "series/group_curve.h"

namespace accrue::ui {

namespace {

/// Limits of a span: beyond them an axis shows nothing useful.
constexpr double smallestSpan = 1e-6;
constexpr double largestSpan = 1e15;
/// Fraction of the plan's length from which a live plot shows the whole plan.
constexpr double showWholePlanFrom = 0.1;
constexpr std::size_t longestHistory = 100;
/// Fraction of a window's length that is shown on both sides of it.
constexpr double aroundWindow = 0.06;

}  // namespace

PlotHub::PlotHub(QObject* parent) : QObject(parent) {}

PlotHub::~PlotHub() = default;

void PlotHub::setRuns(const QList<RunSeries*>& runs) {
  QList<QPointer<RunSeries>> guarded;
  for (RunSeries* run : runs)
    if (run != nullptr) guarded.append(run);
  if (guarded == runs_) return;
  runs_ = guarded;
  for (const RunSeries* run : guarded) {
    connect(run, &RunSeries::specChanged, this, &PlotHub::regroup, Qt::UniqueConnection);
    connect(run, &RunSeries::givenNameChanged, this, &PlotHub::regroup, Qt::UniqueConnection);
  }
  ++revision_;
  advance();
}

QList<RunSeries*> PlotHub::runs() const {
  QList<RunSeries*> result;
  for (const QPointer<RunSeries>& run : runs_)
    if (run && run != focused_) result.append(run);
  for (const QPointer<RunSeries>& run : runs_)
    if (run && run == focused_) result.append(run);
  return result;
}

void PlotHub::setFocused(RunSeries* run) {
  if (run == focused_) return;
  focused_ = run;
  ++revision_;
}

bool PlotHub::anyLive() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const QPointer<RunSeries>& run) { return run && run->isLive(); });
}

void PlotHub::setClock(Clock clock) {
  if (clock == clock_) return;
  clock_ = clock;
  back_.clear();
  forward_.clear();
  y_.clear();
  // Fitted to the new clock at once; it grows further only if it follows.
  fitted_ = true;
  cursor_.reset();
  ++revision_;
  advance();
  fitted_ = follow_;
  Q_EMIT clockChanged(clock);
  Q_EMIT cursorChanged();
}

void PlotHub::setLogY(bool on) {
  if (on == logY_) return;
  logY_ = on;
  y_.clear();
  ++revision_;
  Q_EMIT logYChanged(on);
}

void PlotHub::setSmoothing(double weight) {
  weight = std::isfinite(weight) ? std::clamp(weight, 0.0, SmoothedSeries::largestWeight) : 0.0;
  if (weight == smoothing_) return;
  smoothing_ = weight;
  ++revision_;
  Q_EMIT smoothingChanged(weight);
}

void PlotHub::setGroupSeeds(bool on) {
  if (on == groupSeeds_) return;
  groupSeeds_ = on;
  groups_.clear();
  regroup();
  ++revision_;
  Q_EMIT groupSeedsChanged(on);
}

void PlotHub::regroup() {
  regroup_ = true;
  ++revision_;
}

const std::vector<std::shared_ptr<const GroupCurve>>& PlotHub::groups() const {
  if (!groupSeeds_) return groups_;
  std::vector<Finished> finished;
  for (const QPointer<RunSeries>& run : runs_) {
    if (!run || run->isLive() || run->outcome().outcome != QLatin1String("finished")) continue;
    const SeriesStore& losses = run->series(Metric::updateLoss);
    finished.emplace_back(run, losses.size(), losses.generation());
  }
  if (!regroup_ && finished == grouped_) return groups_;
  regroup_ = false;
  grouped_ = std::move(finished);
  const auto before = std::exchange(groups_, {});
  QList<RunSeries*> runs;
  for (const Finished& run : grouped_) runs.append(std::get<0>(run));
  for (RunGroup& group : runGroups(runs)) {
    const auto kept = std::ranges::find_if(before, [&](const auto& curve) {
      return curve->isCurrent() && curve->group().runs == group.runs && curve->group().name == group.name;
    });
    auto curve = kept != before.end() ? *kept : std::make_shared<const GroupCurve>(std::move(group));
    if (!curve->mean().empty()) groups_.push_back(std::move(curve));
  }
  return groups_;
}

void PlotHub::setFollow(bool on) {
  if (!on && fitted_) {  // a fitted view would keep growing with the run
    remember();
    fitted_ = false;
  }
  moveFollow(on);
  advance();
}

void PlotHub::moveFollow(bool on) {
  if (on == follow_) return;
  follow_ = on;
  ++revision_;
  Q_EMIT followChanged(on);
}

std::optional<Span> PlotHub::y(int plot) const {
  const auto found = y_.find(plot);
  return found == y_.end() ? std::nullopt : std::optional(found->second);
}

void PlotHub::setX(const Span& x) {
  if (!std::isfinite(x.low) || !std::isfinite(x.high) || x.size() < smallestSpan || x.size() > largestSpan) return;
  if (x == x_) return;
  x_ = x;
  ++revision_;
}

void PlotHub::remember() {
  forward_.clear();
  back_.push_back({x_, fitted_, y_});
  if (back_.size() > longestHistory) back_.erase(back_.begin());
}

void PlotHub::userMoved() {
  fitted_ = false;
  moveFollow(false);
}

void PlotHub::zoomTo(const Span& x, int plot, std::optional<Span> y) {
  remember();
  setX(x);
  if (plot >= 0 && y) {
    y_[plot] = *y;
    ++revision_;
  }
  userMoved();
}

void PlotHub::moveTo(const Span& x) {
  if (fitted_) remember();
  setX(x);
  userMoved();
}

void PlotHub::scaleX(double factor, double around) {
  if (!(factor > 0.0)) return;
  moveTo({around + (x_.low - around) * factor, around + (x_.high - around) * factor});
}

void PlotHub::panX(double fraction) {
  const double distance = x_.size() * fraction;
  moveTo({x_.low + distance, x_.high + distance});
}

void PlotHub::fit() {
  if (!fitted_ || !y_.empty()) remember();
  fitted_ = true;
  y_.clear();
  ++revision_;
  moveFollow(true);
  advance();
}

void PlotHub::show(const View& view) {
  fitted_ = view.fitted;
  y_ = view.y;
  ++revision_;
  setX(view.x);
  moveFollow(view.fitted);
  advance();
}

void PlotHub::zoomBack() {
  if (back_.empty()) return;
  forward_.push_back({x_, fitted_, y_});
  const View view = back_.back();
  back_.pop_back();
  show(view);
}

void PlotHub::zoomForward() {
  if (forward_.empty()) return;
  back_.push_back({x_, fitted_, y_});
  const View view = forward_.back();
  forward_.pop_back();
  show(view);
}

const RunSeries* PlotHub::leading() const {
  if (focused_) return focused_;
  const QList<RunSeries*> shown = runs();
  return shown.isEmpty() ? nullptr : shown.last();
}

std::optional<std::size_t> PlotHub::windowAt(double x) const {
  const RunSeries* run = leading();
  if (run == nullptr || run->series(Metric::updateLoss).empty()) return {};
  const ClockColumn& ends = run->series(Metric::updateLoss).clock(clock_);
  return std::min(ends.lowerBound(x), ends.size() - 1);
}

Span PlotHub::windowSpan(std::size_t window) const {
  const ClockColumn& ends = leading()->series(Metric::updateLoss).clock(clock_);
  return {window > 0 ? ends[window - 1] : 0.0, ends[window]};
}

Span PlotHub::viewOfWindow(std::size_t window) const {
  const Span span = windowSpan(window);
  const double air = span.size() * aroundWindow;
  return {span.low - air, span.high + air};
}

void PlotHub::showWindow(std::size_t window) {
  if (const Span view = viewOfWindow(window); view.size() > 0.0) zoomTo(view);
}

bool PlotHub::zoomToWindow(double x) {
  const auto window = windowAt(x);
  if (!window) return false;
  if (!fitted_ && x_ == viewOfWindow(*window))
    fit();
  else
    showWindow(*window);
  return true;
}

void PlotHub::stepWindow(int direction) {
  const auto here = windowAt((x_.low + x_.high) / 2.0);
  if (!here) return;
  // A view of many windows first goes to one of them.
  const bool zoomed = x_.size() < 1.9 * windowSpan(*here).size();
  const std::size_t last = leading()->series(Metric::updateLoss).size() - 1;
  if (!zoomed)
    showWindow(*here);
  else if (direction > 0 ? *here < last : *here > 0)
    showWindow(direction > 0 ? *here + 1 : *here - 1);
}

double PlotHub::newest() const {
  double latest = 0.0;
  for (const RunSeries* run : runs()) latest = std::max(latest, run->latest(clock_));
  return latest;
}

Span PlotHub::fittedX() const {
  double end = 0.0;
  for (const RunSeries* run : runs()) {
    const double latest = run->latest(clock_);
    double wanted = latest;
    if (run->isLive() || !run->hasEvents()) {
      const std::optional<double> planned = run->plannedEnd(clock_);
      wanted = niceCeiling(latest * 1.02);
      if (planned && (latest <= 0.0 || latest >= *planned * showWholePlanFrom))
        wanted = std::max(*planned, latest);
      else if (planned)
        wanted = std::min(wanted, std::max(*planned, latest));
    }
    end = std::max(end, wanted);
  }
  return {0.0, end > 0.0 ? end : 1.0};
}

void PlotHub::advance() {
  if (fitted_) {
    setX(fittedX());
    return;
  }
  if (!follow_) return;
  const double latest = newest();
  const double air = x_.size() * 0.03;
  if (latest > 0.0 && latest + air > x_.high) setX({latest + air - x_.size(), latest + air});
}

void PlotHub::setCursor(std::optional<double> x) {
  if (x == cursor_) return;
  cursor_ = x;
  Q_EMIT cursorChanged();
}

void PlotHub::stepCursor(int direction) {
  const RunSeries* run = leading();
  if (run == nullptr) return;
  const SeriesStore& store = run->series(Metric::updateLoss);
  if (store.empty()) return;
  const ClockColumn& clock = store.clock(clock_);
  std::size_t index = direction > 0 ? 0 : store.size() - 1;
  if (cursor_) {
    index = direction > 0 ? clock.upperBound(*cursor_) : clock.lowerBound(*cursor_);
    if (direction < 0) index = index > 0 ? index - 1 : 0;
    index = std::min(index, store.size() - 1);
  }
  const double x = clock[index];
  if (x < x_.low || x > x_.high) moveTo({x - x_.size() / 2.0, x + x_.size() / 2.0});
  setCursor(x);
}

std::uint64_t PlotHub::dataRevision() const {
  std::uint64_t sum = 0;
  for (const QPointer<RunSeries>& run : runs_)
    if (run) sum += run->revision();
  if (focused_) sum += focused_->revision();
  return sum;
}

double niceCeiling(double value) {
  if (!(value > 0.0)) return 1.0;
  const double base = std::pow(10.0, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0})
    if (value <= base * step * (1.0 + 1e-12)) return base * step;
  return base * 10.0;
}

Span padded(double low, double high, bool logarithmic) {
  if (!(low <= high)) return logarithmic ? Span{0.1, 10.0} : Span{0.0, 1.0};
  if (logarithmic) {
    const double air = high > low ? std::pow(high / low, 0.05) : 1.5;
    return {low / air, high * air};
  }
  double air = (high - low) * 0.05;
  if (high - low <= std::max(std::abs(low), std::abs(high)) * 1e-9)
    air = std::abs(high) > 0.0 ? std::abs(high) * 0.05 : 1.0;
  return {low - air, high + air};
}

bool failedUnmeasured(const RunSeries& run) {
  return run.state() == RunState::failed && run.series(Metric::updateLoss).empty() &&
         run.series(Metric::microLoss).empty() && run.series(Metric::evaluationLoss).empty() && run.timeline().empty();
}

Span settled(const Span& current, const Span& wanted, bool logarithmic) {
  const bool usable = !logarithmic || (current.low > 0.0 && wanted.low > 0.0);
  const auto length = [logarithmic](const Span& span) {
    return logarithmic ? std::log(span.high / span.low) : span.size();
  };
  if (!usable || wanted.low < current.low || wanted.high > current.high) return wanted;
  return length(wanted) < 0.7 * length(current) ? wanted : current;
}

}  // namespace accrue::ui

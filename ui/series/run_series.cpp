// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_series.h"

#include <QFileInfo>
#include <algorithm>

#include "accrue/run/events/steps_record.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/record/run_store.h"
#include "kit/number_text.h"
#include "kit/text.h"

namespace accrue::ui {

namespace {

/// A curve with a bug must not pass for one without, in a legend as little as in a file.
QString bugMark(const accrue::RunSpec& spec) {
  if (spec.teaching.bug == accrue::Bug::none) return {};
  //: Follows the name of a run that was given a bug
  return RunSeries::tr(" (bug: %1)").arg(fromView(to_name(spec.teaching.bug)));
}

accrue::RunState stateOf(const accrue::RunSummary& summary) {
  if (summary.state == "running") return accrue::RunState::running;
  const bool ended = summary.state == "finished" || summary.state == "stopped";
  return ended ? accrue::RunState::finished : accrue::RunState::failed;
}

}  // namespace

RunSeries::RunSeries(QString id, int colorIndex, QObject* parent)
    : QObject(parent), id_(std::move(id)), colorIndex_(colorIndex) {}

RunSeries::~RunSeries() {
  Q_EMIT leaving();
  *outlineCancelled_ = true;
}

QString RunSeries::givenName() const {
  if (!notes_.name.isEmpty()) return notes_.name;
  if (!name_.isEmpty()) return name_;
  if (spec_) return fromView(accrue::run_name(*spec_, plannedSteps_)) + bugMark(*spec_);
  return folder_.isEmpty() ? id_ : QFileInfo(folder_).fileName();
}

void RunSeries::setColorIndex(int index) {
  if (index == colorIndex_) return;
  colorIndex_ = index;
  ++revision_;
  Q_EMIT changed();
}

void RunSeries::setShown(Shown shown) {
  if (shown == shown_) return;
  shown_ = shown;
  Q_EMIT shownChanged();
}

void RunSeries::setName(const QString& name) {
  if (name == name_) return;
  name_ = name;
  notes_.called.clear();
  Q_EMIT givenNameChanged();
  Q_EMIT changed();
}

void RunSeries::setDistinctName(const QString& name) {
  if (name == distinctName()) return;
  notes_.called = name;
  ++revision_;
  Q_EMIT changed();
}

void RunSeries::setNotes(const RunNotes& notes) {
  if (notes == notes_) return;
  const bool renamed = notes.name != notes_.name;
  notes_ = notes;
  ++revision_;
  if (renamed) Q_EMIT givenNameChanged();
  Q_EMIT changed();
}

void RunSeries::setFolder(const QString& folder) {
  folder_ = folder;
}

void RunSeries::takeSpec(const accrue::RunSpec& spec) {
  if (spec_ && *spec_ == spec) return;
  spec_ = spec;
  series_.timeline().setGrid(accrue::make_grid(spec));
  Q_EMIT specChanged();
}

void RunSeries::setTracesNotDrawn(std::int64_t count) {
  if (count == tracesNotDrawn_) return;
  tracesNotDrawn_ = count;
  ++revision_;
}

void RunSeries::setSpec(const accrue::RunSpec& spec) {
  takeSpec(spec);
  if (!plan_) series_.join().expectRanks(spec.parallel.data);
  Q_EMIT changed();
}

void RunSeries::setPlan(const accrue::RunPlan& plan) {
  plan_ = plan;
  plannedSteps_ = plan.window.steps;
  plannedMicroBatch_ = plan.order.micro_batch;
  takeSpec(plan.spec);
  series_.join().expectRanks(plan.spec.parallel.data);
  takeWindow();
  if (!hasEvents()) resetTracker();
  ++revision_;
  Q_EMIT changed();
}

void RunSeries::resetTracker() {
  tracker_ = plan_ ? RankTracker(*plan_) : RankTracker();
}

/// Computes results of the plan. It is walked in the background; a newer plan cancels the walk.
void RunSeries::takeWindow() {
  series_.setPlannedUpdates(plan_->totals.updates);
  series_.join().setEpochLength(plan_->window.batches_per_epoch);
  *outlineCancelled_ = true;
  outlineCancelled_ = std::make_shared<std::atomic<bool>>(false);
  jobs_.run([plan = *plan_, cancelled = outlineCancelled_] { return outlineOf(plan, *cancelled); },
            [this, cancelled = outlineCancelled_](PlanOutline outline) {
              if (!*cancelled) takeOutline(std::move(outline));
            });
}

void RunSeries::takeOutline(PlanOutline outline) {
  plan_->totals = outline.totals;
  series_.setPlannedUpdates(outline.totals.updates);
  planned_ = std::move(outline.points);
  ++revision_;
  Q_EMIT changed();
}

std::optional<accrue::RunSpec> RunSeries::plannedSpec() const {
  std::optional<accrue::RunSpec> planned = spec_;
  if (planned) planned->accumulation.steps = plannedSteps_;
  if (planned) planned->accumulation.micro_batch = plannedMicroBatch_;
  return planned;
}

std::int64_t RunSeries::steps() const {
  if (plan_) return plan_->window.steps_now();
  return steps_ > 0 ? steps_ : plannedSteps_;
}

void RunSeries::setSummary(const accrue::RunSummary& summary) {
  // A run with a spec is named after it, as while it trained.
  name_ = accrue::is_imported(summary) ? fromView(summary.name) : QString();
  folder_ = QString::fromStdString(summary.dir.string());
  report_.recall(summary);
  // The training of an imported run is unknown.
  if (!plan_ && !accrue::is_imported(summary)) {
    plannedSteps_ = summary.steps;
    plannedMicroBatch_ = summary.micro_batch;
    setSpec(summary.spec);
  }
  summaryCheck_ = summary.plan_check;
  series_.setPlannedUpdates(summary.planned_updates);
  if (!hasEvents()) {
    series_.recall(summary);
    report_.recallChecks(summary.exactness);
    setState(stateOf(summary), fromView(summary.message));
  }
  Q_EMIT changed();
}

std::vector<accrue::PlanFigure> RunSeries::planCheck() const {
  return plan_ && !counted_.empty() ? accrue::check_plan(*plan_, counted_) : summaryCheck_;
}

void RunSeries::setState(accrue::RunState state, const QString& detail) {
  if (!report_.setState(state, detail)) return;
  ++revision_;
  Q_EMIT stateChanged();
}

std::int64_t RunSeries::ranks() const {
  if (spec_) return spec_->parallel.data * spec_->parallel.tensor * spec_->parallel.pipeline;
  return static_cast<std::int64_t>(std::max(places_.size(), timeline().lanes().size()));
}

void RunSeries::append(const std::vector<accrue::RunEvent>& events) {
  if (events.empty()) return;
  for (const accrue::RunEvent& event : events) take(event);
  tracker_.take(events);
  series_.takeJoined();
  eventsTaken_ += static_cast<std::int64_t>(events.size());
  ++revision_;
  const bool moved = report_.takeStateMoved();
  Q_EMIT changed();
  if (moved) Q_EMIT stateChanged();
}

void RunSeries::take(const accrue::RunEvent& event) {
  if (plan_ && accrue::take_steps(plan_->window, event)) takeWindow();
  const auto visitor = [&](const auto& body) {
    using Body = std::decay_t<decltype(body)>;
    if constexpr (std::is_same_v<Body, accrue::RunStarted>)
      takeStarted(body);
    else if constexpr (std::is_same_v<Body, accrue::RankReady>)
      takeReady(event.rank, body);
    else if constexpr (std::is_same_v<Body, accrue::StepsChanged>)
      steps_ = body.steps;
    else if constexpr (std::is_same_v<Body, accrue::Measured>)
      counted_[event.rank] = body;
  };
  std::visit(visitor, event.body);
  series_.take(event);
  report_.take(event);
}

void RunSeries::takeStarted(const accrue::RunStarted& body) {
  if (!body.resumed) return;
  series_.rewindTo(body.resumed_update, body.resumed_position);
  resetTracker();
}

void RunSeries::takeReady(std::int64_t rank, const accrue::RankReady& body) {
  places_[rank] = {.data = body.data, .pipeline = body.pipeline, .tensor = body.tensor};
  series_.join().addRank(rank, body.tensor == 0 && (!spec_ || body.pipeline == spec_->parallel.pipeline - 1));
}

void RunSeries::clear() {
  series_.clear();
  report_.clear();
  resetTracker();
  counted_.clear();
  places_.clear();
  eventsTaken_ = tracesNotDrawn_ = 0;
  ++revision_;
  Q_EMIT changed();
}

QString RunSeries::windowText() const {
  if (last().windowSize <= 0) return {};
  return tr("%1 of %2").arg(last().windowPosition).arg(last().windowSize);
}

QString RunSeries::progressText() const {
  QString result = last().plannedUpdates > 0
                       ? tr("update %1 of %2").arg(groupedNumber(last().update), groupedNumber(last().plannedUpdates))
                       : tr("update %1").arg(groupedNumber(last().update));
  if (const QString window = windowText(); !window.isEmpty() && isLive())
    result = tr("%1, micro-step %2").arg(result, window);
  return result;
}

std::vector<std::pair<double, double>> RunSeries::plannedLearningRate(Clock clock) const {
  std::vector<std::pair<double, double>> result;
  const bool timed = clock == Clock::seconds || clock == Clock::computeSeconds;
  double pace = 1.0;
  if (timed) {
    const ClockTable& clocks = series_.updateClocks();
    const std::size_t count = clocks.size();
    if (count < 2) return result;
    pace = clocks[clock][count - 1] / std::max(clocks[Clock::update][count - 1], 1.0);
  }
  const bool known = timed || clock == Clock::microStep || clock == Clock::update || plannedEnd(clock).has_value();
  if (!known) return result;
  result.reserve(planned_.size());
  for (const PlannedPoint& point : planned_)
    result.emplace_back(timed ? point.at[Clock::update] * pace : point.at[clock], point.lr);
  return result;
}

std::optional<double> RunSeries::plannedEnd(Clock clock) const {
  if (planned_.empty() || clock == Clock::seconds || clock == Clock::computeSeconds) return {};
  const double end = planned_.back().at[clock];
  return end > 0.0 ? std::optional(end) : std::nullopt;
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner_panel.h"

#include <QLabel>
#include <QSignalBlocker>
#include <QSlider>
#include <QVBoxLayout>
#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <optional>

#include "accrue/run/fields/accumulation_knobs.h"
#include "accrue/run/fields/sample_lock.h"
#include "accrue/run/plan/forecast.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "live/run_control.h"
#include "measured_cost.h"
#include "memory_bar.h"
#include "runs/dock_panel.h"
#include "runs/run_library.h"
#include "series/run_text.h"
#include "widgets/scrolled.h"
#include "widgets/wheel_guard.h"

namespace accrue::ui {

namespace {

std::optional<RankCost> fullest(const std::vector<RankCost>& stages) {
  if (stages.empty()) return std::nullopt;
  return *std::ranges::max_element(stages, {}, heldBytes);
}

/// Returns "data 922.6 KiB, tensor 1.1 MiB" of the rank that sends most; empty if none sends anything.
QString mostSent(const RunSpec& spec) {
  const auto stages = stage_costs(spec);
  const auto most = std::ranges::max_element(
      stages, {}, [](const RankCost& cost) { return std::reduce(cost.wire.begin(), cost.wire.end()); });
  if (most == stages.end()) return {};
  QStringList axes;
  for (std::size_t axis = 0; axis < most->wire.size(); ++axis)
    if (most->wire[axis] > 0)
      axes << QStringLiteral("%1 %2").arg(fromView(to_string(static_cast<Axis>(axis))), bytesText(most->wire[axis]));
  return axes.join(QStringLiteral(", "));
}

/// Fills in the planned micro-batch and N, which may follow from a global batch or the memory of a rank.
RunSpec plannedSpec(const RunPlan& plan) {
  RunSpec spec = plan.spec;
  spec.accumulation.micro_batch = plan.order.micro_batch;
  spec.accumulation.steps = plan.window.steps;
  return spec;
}

/// Over all ranks and axes.
std::int64_t allSent(const RunSpec& spec) {
  std::int64_t sum = 0;
  for (const RankCost& cost : rank_costs(spec)) sum = std::reduce(cost.wire.begin(), cost.wire.end(), sum);
  return sum;
}

}  // namespace

PlannerPanel::PlannerPanel(SpecDocument* document, PreflightRunner* preflight, RunLibrary* library, RunControl* control,
                           QWidget* parent)
    : QWidget(parent),
      document_(document),
      preflight_(preflight),
      library_(library),
      title_(new QLabel(tr("What the fullest rank holds"), this)),
      memory_(new MemoryBar(this)),
      fits_(new QLabel(this)),
      split_title_(new QLabel(this)),
      split_(new QSlider(Qt::Horizontal, this)),
      split_ends_(new QLabel(this)),
      sent_(new QLabel(this)),
      time_(new QLabel(this)),
      measured_(new QLabel(this)),
      empty_(new QLabel(tr("The plan is shown here once the spec can run."), this)),
      content_(new QWidget) {
  setObjectName(QStringLiteral("plannerPanel"));
  memory_->setObjectName(QStringLiteral("plannerMemory"));
  fits_->setObjectName(QStringLiteral("plannerFits"));
  split_title_->setObjectName(QStringLiteral("plannerSplitTitle"));
  split_->setObjectName(QStringLiteral("plannerSplit"));
  split_ends_->setObjectName(QStringLiteral("plannerSplitEnds"));
  sent_->setObjectName(QStringLiteral("plannerSent"));
  time_->setObjectName(QStringLiteral("plannerTime"));
  measured_->setObjectName(QStringLiteral("plannerMeasured"));
  title_->setFont(textFont(TextSize::body, QFont::DemiBold));
  split_title_->setFont(textFont(TextSize::body, QFont::DemiBold));
  split_->setAccessibleName(tr("Micro-batch and N of one product"));
  split_->setToolTip(
      tr("Divides the samples of an update: larger micro-batches need more memory, more micro-steps "
         "more time"));
  split_->setTickPosition(QSlider::TicksBelow);
  split_->setPageStep(1);
  WheelGuard::protect(split_);
  for (QLabel* label : {title_, fits_, split_title_, split_ends_, sent_, time_, measured_, empty_})
    label->setWordWrap(true);
  for (QLabel* label : {fits_, split_ends_, sent_, time_, measured_}) label->setFont(tabularFont(TextSize::small));
  split_ends_->setForegroundRole(QPalette::PlaceholderText);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  auto* column = new QVBoxLayout(content_);
  column->setContentsMargins(space::betweenGroups, space::inGroup, space::inGroup, space::inGroup);
  column->setSpacing(space::base);
  for (QWidget* widget : std::initializer_list<QWidget*>{title_, memory_, fits_, split_title_, split_, split_ends_,
                                                         sent_, time_, measured_}) {
    if (widget == split_title_ || widget == sent_) column->addSpacing(space::inGroup);
    column->addWidget(widget);
  }
  column->addWidget(empty_);
  column->addStretch(1);
  fillScrolled(this, content_);
  connectSignals(control);
}

void PlannerPanel::connectSignals(const RunControl* control) {
  // While the slider is dragged the bar follows, and the set-up when it is let go; a key changes the set-up at once.
  connect(split_, &QSlider::valueChanged, this, [this] {
    showSpec(specAtSlider());
    if (!split_->isSliderDown()) commit();
  });
  connect(split_, &QSlider::sliderReleased, this, &PlannerPanel::commit);
  connect(preflight_, &PreflightRunner::finished, this, &PlannerPanel::refresh);
  connect(library_, &RunLibrary::refreshed, this, &PlannerPanel::refresh);
  connect(library_, &RunLibrary::loaded, this, &PlannerPanel::refresh);
  connect(control, &RunControl::ended, this, &PlannerPanel::refresh);
}

void PlannerPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  showPlan();
}

void PlannerPanel::refresh() {
  if (isVisible() && !split_->isSliderDown()) showPlan();
}

void PlannerPanel::showPlan() {
  const bool any = preflight_->result().plan.has_value();
  for (QWidget* widget : std::initializer_list<QWidget*>{title_, memory_, fits_, split_title_, split_, split_ends_,
                                                         sent_, time_, measured_})
    widget->setVisible(any);
  empty_->setVisible(!any);
  if (!any) return;
  showSplits();
  showSpec(plannedSpec(*preflight_->result().plan));
}

void PlannerPanel::showSplits() {
  const RunSpec spec = plannedSpec(*preflight_->result().plan);
  const std::int64_t product = spec.accumulation.micro_batch * spec.accumulation.steps;
  micros_ = divisors_of(product);
  const auto at = std::ranges::find(micros_, spec.accumulation.micro_batch);
  const QSignalBlocker quiet(split_);
  split_->setRange(0, static_cast<int>(micros_.size()) - 1);
  split_->setValue(static_cast<int>(at - micros_.begin()));
  // If something else determines N or the micro-batch, they are changed there.
  const LoweredMegatron& lowered = preflight_->lowered();
  const AccumulationSpec& written = lowered.spec.accumulation;
  const bool free = spec.accumulation.steps == written.steps && spec.accumulation.micro_batch == written.micro_batch &&
                    !preflight_->result().plan->window.rampup && !lowered.setter_of("accumulation.steps") &&
                    !lowered.setter_of("accumulation.micro_batch");
  split_->setEnabled(free && micros_.size() > 1);
}

RunSpec PlannerPanel::specAtSlider() const {
  RunSpec spec = preflight_->lowered().spec;
  const std::int64_t product = spec.accumulation.micro_batch * spec.accumulation.steps;
  spec.accumulation.micro_batch = micros_.at(static_cast<std::size_t>(split_->value()));
  spec.accumulation.steps = product / spec.accumulation.micro_batch;
  return spec;
}

void PlannerPanel::commit() {
  const RunSpec wanted = specAtSlider();
  RunSpec spec = document_->spec();
  spec.accumulation.micro_batch = wanted.accumulation.micro_batch;
  spec.accumulation.steps = wanted.accumulation.steps;
  document_->setSpec(spec, tr("Change micro-batch and N"));
}

void PlannerPanel::showSpec(const RunSpec& spec) {
  const auto cost = fullest(stage_costs(spec));
  if (!cost) return;
  const RunSeries* run = measuredRun(spec);
  const auto measured = run ? measuredCost(run->planCheck()) : std::nullopt;
  const std::int64_t samples = spec.accumulation.micro_batch * spec.accumulation.steps * spec.parallel.data;
  split_title_->setText(tr("Micro-batch %1, N = %2")
                            .arg(groupedNumber(spec.accumulation.micro_batch), groupedNumber(spec.accumulation.steps)));
  split_ends_->setText(split_->isEnabled()
                           ? tr("The slider keeps the %1 samples of an update").arg(groupedNumber(samples))
                           : tr("%1 samples per update; no other split is possible here").arg(groupedNumber(samples)));
  if (cost_is_known(spec))
    showMemory(spec, *cost, measured);
  else
    showLibraryModel(measured);
  split_->setAccessibleDescription(split_title_->text() + QStringLiteral(". ") + fits_->text());
  showTime(spec);
  measured_->setVisible(measured.has_value());
  if (measured) showMeasured(*run, *measured);
}

void PlannerPanel::showLibraryModel(const std::optional<RankCost>& measured) {
  title_->setText(measured ? tr("What the fullest rank held") : tr("What the fullest rank holds"));
  memory_->setVisible(measured.has_value());
  if (measured) {
    memory_->setCost(*measured, heldBytes(*measured));
    memory_->setMeasured(std::nullopt);
    memory_->setLimit(0);
  }
  fits_->setText(measured ? tr("This is measured: a library\u2019s model has no plan of its memory and its traffic")
                          : unknownCostText());
  sent_->hide();
}

void PlannerPanel::showMemory(const RunSpec& spec, const RankCost& cost, const std::optional<RankCost>& measured) {
  title_->setText(tr("What the fullest rank holds"));
  const std::int64_t room = preflight_->result().plan->memory_per_rank;
  const std::int64_t limit = std::max<std::int64_t>(room - cost.process, 0);
  // Over all splits, so that the bar grows and shrinks while the slider moves; with the limit once it is visible.
  std::int64_t scale = std::max(heldBytes(cost), measured ? heldBytes(*measured) : 0);
  RunSpec largest = spec;
  largest.accumulation.micro_batch *= largest.accumulation.steps;
  largest.accumulation.steps = 1;
  if (const auto most = fullest(stage_costs(largest)); most && split_->isEnabled())
    scale = std::max(scale, std::min(heldBytes(*most), 4 * scale));
  if (room > 0 && limit < 2 * scale) scale = std::max(scale, limit);
  memory_->setCost(cost, scale);
  memory_->setMeasured(measured);
  memory_->setLimit(limit);
  const QString total = bytesText(cost.total());
  if (room <= 0)
    fits_->setText(tr("%1 in total; the memory of the device is not known").arg(total));
  else if (cost.total() > room)
    fits_->setText(tr("\u2717 %1 in total exceeds the %2 available per rank").arg(total, bytesText(room)));
  else
    fits_->setText(tr("\u2713 %1 in total fits into the %2 available per rank").arg(total, bytesText(room)));
  showSent(spec);
}

void PlannerPanel::showMeasured(const RunSeries& run, const RankCost& measured) {
  const std::int64_t updates = run.last().update;
  const QString length = updates == 1 ? tr("1 update") : tr("%1 updates").arg(groupedNumber(updates));
  const bool paused = run.last().unpausedSeconds < run.last().seconds;
  const QString took = durationText(run.last().unpausedSeconds);
  measured_->setText(tr("Measured in \u201C%1\u201D: %2 excluding the process; %3 took %4")
                         .arg(run.name(), bytesText(heldBytes(measured)), length,
                              paused ? tr("%1 without the pauses").arg(took) : took));
}

void PlannerPanel::showSent(const RunSpec& spec) {
  const QString sent = mostSent(spec);
  sent_->setVisible(!sent.isEmpty());
  if (sent.isEmpty()) return;
  RunSpec other = spec;
  const bool each = resolve_knobs(spec.accumulation).reduce_when == ReduceWhen::every_micro_step;
  other.accumulation.knobs.reduce_when = each ? ReduceWhen::boundary : ReduceWhen::every_micro_step;
  const QString instead = mostSent(other);
  QString text = tr("Sent per update by the rank that sends most: %1; by all ranks together: %2")
                     .arg(sent, bytesText(allSent(spec)));
  if (instead != sent)
    text += QLatin1Char('\n') + (each ? tr("If gradients were reduced once a window: %1").arg(instead)
                                      : tr("If gradients were reduced in every micro-step: %1").arg(instead));
  sent_->setText(text);
}

void PlannerPanel::showTime(const RunSpec& spec) {
  const RunPlan& plan = *preflight_->result().plan;
  std::vector<EarlierRun> earlier;
  for (const RunSeries* run : runs()) {
    // One run of a pair had fewer threads than its spec alone would give it.
    if (run->plan() && run->plan()->threads_per_rank != plan.threads_per_rank) continue;
    earlier.push_back(
        {run->name().toStdString(), *run->plannedSpec(), run->last().unpausedSeconds, run->last().samples});
  }
  const auto forecast = forecast_time(spec, plan.totals.samples, earlier);
  if (!forecast) {
    time_->setText(tr("Duration unknown until this model has run once in this layout"));
    return;
  }
  const QString from = QString::fromStdString(forecast->from);
  const QString about = tr("About %1").arg(durationText(forecast->seconds));
  time_->setText(
      forecast->same_micro_batch
          ? tr("%1, at the pace of \u201C%2\u201D").arg(about, from)
          : tr("%1, assuming the time per sample of \u201C%2\u201D, which used another micro-batch").arg(about, from));
}

/// Runs with a spec, the newest first.
std::vector<const RunSeries*> PlannerPanel::runs() const {
  std::vector<const RunSeries*> all;
  for (int row = 0; row < library_->table()->rowCount(); ++row)
    if (const RunSeries* run = library_->table()->run(row); run->spec()) all.push_back(run);
  std::ranges::stable_sort(all, std::ranges::greater{}, &RunSeries::startedAt);
  return all;
}

const RunSeries* PlannerPanel::measuredRun(const RunSpec& spec) const {
  for (const RunSeries* run : runs())
    if (holds_alike(spec, *run->plannedSpec()) && !run->planCheck().empty()) return run;
  return nullptr;
}

DockPanel PlannerPanel::dock() {
  return {.name = "plannerDock",
          .title = tr("Planner"),
          .panel = this,
          .area = Qt::LeftDockWidgetArea,
          .behind = "setupDock"};
}

}  // namespace accrue::ui

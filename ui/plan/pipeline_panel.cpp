// SPDX-License-Identifier: GPL-3.0-or-later
#include "pipeline_panel.h"

#include <QAbstractSpinBox>
#include <QCheckBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QMainWindow>
#include <QSignalBlocker>
#include <QSpinBox>
#include <algorithm>
#include <cmath>

#include "accrue/run/fields/accumulation_knobs.h"
#include "canvas/plot_header.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "runs/dock_panel.h"
#include "series/run_series.h"
#include "setup/field_editor.h"
#include "widgets/dock_height.h"
#include "widgets/scrolled.h"
#include "widgets/value_drag.h"
#include "widgets/wheel_guard.h"

namespace accrue::ui {

namespace {

/// Maximum zoom.
constexpr double most_zoom = 1e4;

QString percentText(double part) {
  return QStringLiteral("%1%2%").arg(QString::number(100.0 * part, 'f', 1), QString(thinSpace));
}

}  // namespace

PipelinePanel::PipelinePanel(SpecDocument* document, PreflightRunner* preflight, QWidget* parent)
    : QWidget(parent),
      document_(document),
      preflight_(preflight),
      controls_(new QWidget(this)),
      planned_header_(new PlotHeader(this)),
      planned_(new PipelineView(PipelineView::Kind::planned, this)),
      problem_(new QLabel(this)),
      measured_header_(new PlotHeader(this)),
      measured_(new PipelineView(PipelineView::Kind::measured, this)) {
  setObjectName(QStringLiteral("pipelinePanel"));
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::Base);
  planned_->setObjectName(QStringLiteral("pipelinePlanned"));
  planned_->setAccessibleName(tr("Planned window"));
  measured_->setObjectName(QStringLiteral("pipelineMeasured"));
  measured_->setAccessibleName(tr("Measured window"));
  problem_->setObjectName(QStringLiteral("pipelineProblem"));
  problem_->setWordWrap(true);
  problem_->setContentsMargins(space::betweenGroups, 0, space::betweenGroups, 0);
  problem_->hide();

  auto* content = new QWidget;
  auto* row = new QHBoxLayout(controls_);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(space::base);
  addField(row, "accumulation.steps", tr("Micro-steps"));
  addField(row, "parallel.pipeline", tr("Stages"));
  addField(row, "parallel.virtual_pipeline", tr("Chunks"));
  addField(row, "parallel.pipeline_order", tr("Order"));
  row->addStretch(1);
  halves_ = new QVBoxLayout(content);
  halves_->setContentsMargins(0, 0, 0, 0);
  halves_->setSpacing(0);
  halves_->addWidget(planned_header_);
  halves_->addWidget(problem_);
  halves_->addWidget(planned_, 1);
  halves_->addLayout(buildMeasuredRow());
  halves_->addWidget(measured_, 1);
  halves_->addStretch(0);
  fillScrolled(this, content, Qt::ScrollBarAsNeeded);
  content->setBackgroundRole(QPalette::Base);
  connectSignals();
  showFields();
  showWindow();
}

QHBoxLayout* PipelinePanel::buildMeasuredRow() {
  auto* row = new QHBoxLayout;
  row->setContentsMargins(0, 0, space::betweenGroups, 0);
  row->setSpacing(space::base);
  row->addWidget(measured_header_, 1);
  replica_ = addChooser(row, "pipelineReplica", tr("Replica"));
  tensor_ = addChooser(row, "pipelineTensor", tr("Tensor rank"));
  update_ = addChooser(row, "pipelineUpdate", tr("Update"));
  update_->setMinimum(1);
  newest_ = new QCheckBox(tr("newest"), this);
  newest_->setObjectName(QStringLiteral("pipelineNewest"));
  newest_->setFont(textFont(TextSize::small));
  newest_->setToolTip(tr("Follow the newest window that all stages have reported"));
  newest_->setChecked(true);
  row->addWidget(newest_);
  return row;
}

void PipelinePanel::connectSignals() {
  connect(document_, &SpecDocument::changed, this, [this] {
    showFields();
    plan();
  });
  connect(preflight_, &PreflightRunner::finished, this, &PipelinePanel::plan);
  connect(&planner_, &PipelinePlanner::finished, this, &PipelinePanel::showPlan);
  for (PipelineView* view : {planned_, measured_}) {
    connect(view, &PipelineView::pointed, this, &PipelinePanel::light);
    connect(view, &PipelineView::rangeWanted, this, &PipelinePanel::setRange);
    connect(view, &PipelineView::fitWanted, this, [this] {
      fitted_ = true;
      showRange();
    });
  }
  connect(update_, &QSpinBox::valueChanged, this, [this] {
    newest_->setChecked(false);
    takeWindow();
  });
  for (QSpinBox* chooser : {replica_, tensor_})
    connect(chooser, &QSpinBox::valueChanged, this, &PipelinePanel::takeWindow);
  connect(newest_, &QCheckBox::toggled, this, [this](bool on) {
    if (on) takeWindow();
  });
  later_.setSingleShot(true);
  connect(&later_, &QTimer::timeout, this, &PipelinePanel::refresh);
}

void PipelinePanel::addField(QHBoxLayout* row, const char* key, const QString& name) {
  const SpecField& field = *find_field(key);
  auto* label = new QLabel(name, controls_);
  FieldEditor* editor = FieldEditor::create(field, controls_);
  QWidget* widget = editor->widget();
  widget->setObjectName(QStringLiteral("pipeline.%1").arg(QLatin1String(key)));
  widget->setToolTip(fromView(field.help));
  widget->setMaximumWidth(field.type == FieldType::choice ? 112 : widget->minimumSizeHint().width());
  label->setFont(textFont(TextSize::small));
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setToolTip(widget->toolTip());
  label->setBuddy(widget);
  label->setObjectName(QStringLiteral("pipeline.%1.name").arg(QLatin1String(key)));
  if (auto* number = qobject_cast<QAbstractSpinBox*>(widget)) {
    ValueDrag::install(label, number);
    label->setToolTip(tr("%1\nDrag the name sideways to change it.").arg(widget->toolTip()));
  }
  row->addWidget(label);
  row->addWidget(widget);
  connect(editor, &FieldEditor::edited, this,
          [this, &field](const SpecValue& value) { document_->setField(field, value); });
  fields_.emplace_back(&field, editor);
}

QSpinBox* PipelinePanel::addChooser(QHBoxLayout* row, const char* object_name, const QString& name) {
  auto* label = new QLabel(name, this);
  auto* chooser = new QSpinBox(this);
  chooser->setObjectName(QLatin1String(object_name));
  chooser->setAccessibleName(name);
  chooser->setAlignment(Qt::AlignRight);
  chooser->setMaximum(0);
  chooser->setMinimumWidth(50);
  WheelGuard::protect(chooser);
  label->setObjectName(QStringLiteral("%1.label").arg(QLatin1String(object_name)));
  label->setFont(textFont(TextSize::small));
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setBuddy(chooser);
  row->addWidget(label);
  row->addWidget(chooser);
  row->addSpacing(space::base);
  return chooser;
}

void PipelinePanel::setEditable(bool editable) {
  editable_ = editable;
  showFields();
}

void PipelinePanel::showFields() {
  const LoweredMegatron& lowered = preflight_->lowered();
  const RunSpec defaults;
  for (const auto& [field, editor] : fields_) {
    editor->show(lowered.spec);
    // A key that a field of the Megatron-LM plug-in sets is edited in that field.
    const LoweredKey* setter = lowered.setter_of(field->key);
    const bool follows = setter && field->get(document_->spec()) == field->get(defaults);
    editor->widget()->setEnabled(editable_ && !follows);
    editor->widget()->setToolTip(
        follows ? tr("Set by %1 of the Megatron-LM plug-in").arg(QString::fromStdString(setter->by))
                : fromView(field->help));
  }
}

void PipelinePanel::setRun(const RunSeries* run) {
  if (run && run == run_) return;
  run_ = run;
  window_.reset();  // it belonged to the other run, even while the panel was hidden
  newest_->setChecked(true);
  takeWindow();
}

void PipelinePanel::refresh() {
  if (!isVisible() || !run_ || run_->revision() == seen_revision_) return;
  if (since_window_.isValid() && since_window_.elapsed() < window_interval.count()) {
    if (!later_.isActive()) later_.start(window_interval);
    return;
  }
  takeWindow();
}

void PipelinePanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  asked_height_ = 0;
  takeWindow();
}

void PipelinePanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  askForRoom();
}

void PipelinePanel::shareHeight() {
  const int lanes = height() - planned_header_->height() - measured_header_->height();
  const int planned_axis = planned_->axisHeight();
  const int measured_axis = measured_->isHidden() ? 0 : measured_->axisHeight();
  const int both = std::max(lanes - planned_axis - measured_axis, 2);
  halves_->setStretchFactor(planned_, both / 2 + planned_axis);
  halves_->setStretchFactor(measured_, both / 2 + measured_axis);
}

void PipelinePanel::askForRoom() {
  shareHeight();
  // After the layout of the newly shown widgets.
  QTimer::singleShot(0, this, [this] {
    const int needed = halves_->totalMinimumSize().height();
    if (visibleRegion().isEmpty() || needed <= height() || needed <= asked_height_) return;
    asked_height_ = needed;
    if (!dock_ || dock_->isFloating()) return;
    if (auto* window = qobject_cast<QMainWindow*>(dock_->parentWidget()))
      window->resizeDocks({dock_}, {heightWithTabs(*dock_) + needed - height()}, Qt::Vertical);
  });
}

/// One that comes to the front of its tabs comes in sight.
void PipelinePanel::followDock(QDockWidget* dock) {
  dock_ = dock;
  connect(dock, &QDockWidget::visibilityChanged, this, &PipelinePanel::askForRoom);
}

void PipelinePanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showHeaders();
}

/// Once the panel is shown.
void PipelinePanel::plan() {
  if (!isVisible()) return;
  const RunSpec& spec = preflight_->lowered().spec;
  const std::int64_t steps =
      preflight_->isCurrent() && preflight_->sketch() ? preflight_->sketch()->steps : spec.accumulation.steps;
  const PipelineShape shape = pipeline_shape(spec.parallel, steps);
  planner_.plan(shape, window_ ? window_->pace(shape.stages) : PipelinePace{});
}

void PipelinePanel::showPlan() {
  const PlannedPipeline& result = planner_.result();
  problem_->setText(result.problem);
  problem_->setVisible(!result.problem.isEmpty());
  planned_->setVisible(result.problem.isEmpty());
  planned_->setTimeline(result.timeline, window_.has_value());
  askForRoom();
  showRange();
  showHeaders();
}

void PipelinePanel::takeWindow() {
  if (!isVisible()) return;
  later_.stop();
  since_window_.start();
  seen_revision_ = run_ ? run_->revision() : 0;
  window_.reset();
  if (run_) {
    const auto most = [this](auto coordinate) {
      std::int64_t last = 0;
      for (const auto& [rank, at] : run_->places()) last = std::max(last, coordinate(at));
      return static_cast<int>(last);
    };
    const auto limit = [](QSpinBox* chooser, int last) {
      const QSignalBlocker quiet(chooser);
      chooser->setMaximum(last);
    };
    limit(replica_, most([](const GridCoordinate& at) { return at.data; }));
    limit(tensor_, most([](const GridCoordinate& at) { return at.tensor; }));
    limit(update_, static_cast<int>(std::max<std::int64_t>(run_->last().update, 1)));
    window_ = newest_->isChecked() ? newestPipeline(*run_, replica_->value(), tensor_->value())
                                   : measuredPipeline(*run_, update_->value(), replica_->value(), tensor_->value());
  }
  showWindow();
  plan();
}

void PipelinePanel::showWindow() {
  const auto reveal = [this](QSpinBox* chooser, bool visible) {
    chooser->setVisible(visible);
    findChild<QLabel*>(QStringLiteral("%1.label").arg(chooser->objectName()))->setVisible(visible);
  };
  const bool any = run_ && run_->last().update > 0;
  reveal(replica_, any && replica_->maximum() > 0);
  reveal(tensor_, any && tensor_->maximum() > 0);
  reveal(update_, any);
  newest_->setVisible(any);
  measured_->setVisible(window_.has_value());
  planned_->setShowsAxis(!window_);
  if (window_) {
    if (newest_->isChecked()) {
      const QSignalBlocker quiet(update_);
      update_->setValue(static_cast<int>(window_->update));
    }
    measured_->setTimeline(window_->timeline, true, window_->steps);
  } else {
    measured_->setTimeline({}, true);
  }
  askForRoom();
  showRange();
  showHeaders();
}

double PipelinePanel::wholeEnd() const {
  // A plan that is still drawn at another pace does not match the window's scale.
  const PipelinePace pace = planner_.result().pace;
  const bool together = !window_ || pace == window_->pace(planner_.result().shape.stages);
  return std::max(together ? planned_->timeline().end() : 0.0, window_ ? window_->end() : 0.0);
}

void PipelinePanel::showRange() {
  const double end = wholeEnd();
  if (end <= 0.0) return;
  if (fitted_)
    for (PipelineView* view : {planned_, measured_}) view->setRange(0.0, end);
  else
    setRange(planned_->range().first, planned_->range().second);
}

void PipelinePanel::setRange(double from, double to) {
  const double end = wholeEnd();
  const double length = std::clamp(to - from, end / most_zoom, end);
  from = std::clamp(from, 0.0, end - length);
  fitted_ = length >= end;
  for (PipelineView* view : {planned_, measured_}) view->setRange(from, from + length);
}

void PipelinePanel::light(const std::optional<PipelineSpot>& spot) {
  for (PipelineView* view : {planned_, measured_}) view->setLit(spot);
  showHeaders();
}

QString PipelinePanel::textOf(const PipelineView& view, const PipelineSpot& spot) const {
  const PipelineBlock* block = view.find(spot);
  if (!block) return tr("this window has no such block");
  const auto time = [this](double t) { return window_ ? spanText(t) : valueText(t, 3); };
  QString what = spot.action == PipelineAction::forward ? tr("forward of micro-step %1").arg(spot.micro_step + 1)
                                                        : tr("backward of micro-step %1").arg(spot.micro_step + 1);
  if (planner_.result().shape.chunks > 1 || spot.chunk > 0) what = tr("%1, chunk %2").arg(what).arg(spot.chunk);
  return tr("stage %1, %2: %3, from %4 to %5")
      .arg(QString::number(spot.stage), what, time(block->end - block->begin), time(block->begin), time(block->end));
}

void PipelinePanel::showHeaders() {
  const auto scheduleName = [](const PipelineShape& shape) {
    if (shape.schedule == PipelineSchedule::all_forward_all_backward) return tr("all forwards first");
    return shape.schedule == PipelineSchedule::interleaved ? tr("one forward, one backward, interleaved")
                                                           : tr("one forward, one backward");
  };
  const PlannedPipeline& plan = planner_.result();
  const ThemeColors colors = themeColors(palette());
  using Swatch = HeaderItem::Swatch;
  const auto legend = [&](const PipelineView& view) {
    using enum PipelineAction;
    const auto block = [&](PipelineAction action, const QString& name) {
      return HeaderItem{Swatch::block, 0, view.fill(action, colors), name, view.outline(action, colors)};
    };
    std::vector<HeaderItem> entries{block(forward, tr("forward")), block(backward, tr("backward"))};
    if (&view == measured_) entries.push_back({Swatch::block, 0, colors.optimizerStep, tr("step")});
    if (view.chunks() > 1) entries.push_back({Swatch::foot, 0, colors.optimizerStep, tr("which chunk")});
    entries.push_back({Swatch::hatch, 0, colors.waiting, tr("waiting")});
    return entries;
  };
  const bool drawn = plan.timeline.blocks() > 0;
  QString pace = scheduleName(plan.shape);
  pace += window_ ? tr("; at the measured pace, forward %1, backward %2")
                        .arg(spanText(plan.pace.forward), spanText(plan.pace.backward))
                  : tr("; forward 1, backward 2");
  planned_header_->setTitle(tr("Planned"), drawn ? pace : QString());
  const double ideal = static_cast<double>(plan.shape.micro_steps) * (plan.pace.forward + plan.pace.backward);
  const auto time = [this](double t) { return window_ ? spanText(t) : valueText(t, 4); };
  planned_header_->setBadge(drawn
                                ? tr("%1 where %2 is ideal, bubble %3")
                                      .arg(time(plan.timeline.end()), time(ideal), percentText(plan.timeline.bubble()))
                                : QString());
  const auto& lit = planned_->lit();
  const auto items = [&](const PipelineView& view) {
    return std::vector<HeaderItem>{{Swatch::none, 0, {}, textOf(view, *lit)}};
  };
  planned_header_->setItems(!drawn ? std::vector<HeaderItem>{} : lit ? items(*planned_) : legend(*planned_));
  if (!window_ || !run_) {
    const bool gone = run_ && run_->last().update > 0;
    const bool condensed = gone && std::ranges::any_of(run_->timeline().lanes(), [](const auto& entry) {
                             return entry.second.condensedTo() > 0;
                           });
    measured_header_->setTitle(tr("Measured"),
                               gone ? condensed ? tr("operations are kept of the newest micro-steps only")
                                                : tr("the operations of this window are not in the run's events")
                                    : tr("train this set-up: its windows appear here, on the same scale"));
    measured_header_->setBadge({});
    measured_header_->setItems({});
    return;
  }
  QString which = tr("update %1 of %2").arg(groupedNumber(window_->update), run_->name());
  if (!window_->whole) which = tr("%1; some operations were not reported").arg(which);
  measured_header_->setTitle(tr("Measured"), which);
  measured_header_->setBadge(
      tr("%1, bubble %2")
          .arg(spanText(window_->timeline.end() - window_->timeline.begin()), percentText(window_->timeline.bubble())));
  std::vector<HeaderItem> shown = lit ? items(*measured_) : legend(*measured_);
  shown.insert(shown.begin(), {HeaderItem::Swatch::run, run_->colorIndex(), {}, run_->name()});
  measured_header_->setItems(std::move(shown));
  planned_->setAccessibleDescription(planned_header_->badge());
  measured_->setAccessibleDescription(measured_header_->badge());
}

DockPanel PipelinePanel::dock() {
  return {.name = "pipelineDock",
          .title = tr("Pipeline"),
          .panel = this,
          .area = Qt::BottomDockWidgetArea,
          .behind = "runsDock",
          .control = controls_,
          .focus = [this] { planned_->setFocus(Qt::ShortcutFocusReason); },
          .docked = [this](QDockWidget* dock) { followDock(dock); },
          .set_run = [this](RunSeries* run) { setRun(run); },
          .refresh = [this] { refresh(); },
          .set_editable = [this](bool editable) { setEditable(editable); }};
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "accumulation_panel.h"

#include <QGridLayout>
#include <QLabel>
#include <QScrollBar>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gradient_pool.h"
#include "kit/number_text.h"
#include "kit/theme.h"
#include "kit/theme_colors.h"
#include "run_control.h"
#include "runs/dock_panel.h"
#include "series/rank_status.h"
#include "series/run_text.h"
#include "widgets/scrolled.h"
#include "widgets/state_chip.h"
#include "widgets/tip_text.h"

namespace accrue::ui {

AccumulationPanel::AccumulationPanel(RunControl* control, QWidget* parent)
    : QWidget(parent),
      control_(control),
      title_(new QLabel(this)),
      count_(new QLabel(this)),
      phase_(new QLabel(this)),
      pool_(new GradientPool(this)),
      said_(new QLabel(this)),
      facts_(new QWidget(this)),
      empty_(
          new QLabel(tr("While a run trains, its open accumulation window fills here, rank by rank.\n\nF10 starts the "
                        "run paused and goes through it phase by phase; F11, micro-step by micro-step."),
                     this)),
      lamp_(new StateChip(this)),
      lamp_text_(new QLabel(this)) {
  setObjectName(QStringLiteral("windowPanel"));
  title_->setObjectName(QStringLiteral("windowTitle"));
  title_->setFont(tabularFont(TextSize::body));
  count_->setObjectName(QStringLiteral("windowCount"));
  count_->setFont(tabularFont(TextSize::title));
  phase_->setObjectName(QStringLiteral("windowPhase"));
  phase_->setFont(textFont(TextSize::title, QFont::DemiBold));
  phase_->setToolTip(tr("Where the window is, at the moment that the tanks show"));
  said_->setObjectName(QStringLiteral("windowSaid"));
  said_->setFont(tabularFont(TextSize::body));
  said_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  for (QLabel* label : {count_, phase_, said_, empty_, lamp_text_}) {
    label->setWordWrap(true);
    label->setMinimumWidth(1);
  }
  later_.setSingleShot(true);
  connect(&later_, &QTimer::timeout, this, &AccumulationPanel::showAll);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  lamp_->setObjectName(QStringLiteral("windowLamp"));
  lamp_->setFocusPolicy(Qt::StrongFocus);  // so that F1 explains it
  lamp_->setWhatsThis(tr("lamp"));
  lamp_text_->setObjectName(QStringLiteral("windowLampText"));
  lamp_text_->setFont(textFont(TextSize::small));
  buildFacts();
  auto* panel = new QWidget(this);
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(space::betweenGroups, space::inGroup, space::betweenGroups, space::inGroup);
  layout->setSpacing(space::inGroup);
  layout->addWidget(empty_);
  layout->addWidget(title_);
  layout->addWidget(count_);
  layout->addWidget(phase_);
  layout->addWidget(pool_, 1);
  layout->addWidget(said_);
  layout->addWidget(lamp_, 0, Qt::AlignLeft);
  layout->addWidget(lamp_text_);
  layout->addWidget(facts_);
  layout->addStretch(0);
  // Low windows scroll; the tanks keep their height.
  scroll_ = fillScrolled(this, panel);
  scroll_->setObjectName(QStringLiteral("windowScroll"));
  scroll_->setAccessibleName(tr("Accumulation window"));
  scroll_->setFocusPolicy(Qt::StrongFocus);  // the keys scroll it
  refresh();
}

void AccumulationPanel::buildFacts() {
  auto* grid = new QGridLayout(facts_);
  grid->setContentsMargins(0, space::base, 0, 0);
  grid->setHorizontalSpacing(space::inGroup);
  grid->setVerticalSpacing(space::base);
  grid->setColumnStretch(1, 1);
  tokens_ =
      addRow(grid, tr("Counted"), QStringLiteral("windowTokens"),
             tr("The items that the window holds so far, and each replica's share of them. An item is what the loss "
                "counts: a token of a text, else an output of a sample"));
  sync_ = addRow(grid, tr("Last sync"), QStringLiteral("windowSync"),
                 tr("Bytes that each rank contributed to the last reduction of gradients"));
  norm_ = addRow(grid, tr("Gradient"), QStringLiteral("windowNorm"), tr("Norm of the last update's gradient"));
  weights_ = addRow(grid, tr("Weights"), QStringLiteral("windowWeights"),
                    tr("After the last update; run.record_weights records them"));
}

QLabel* AccumulationPanel::addRow(QGridLayout* grid, const QString& name, const QString& object_name,
                                  const QString& help) {
  const int row = grid->rowCount();
  auto* label = new QLabel(name, facts_);
  auto* value = new QLabel(facts_);
  label->setFont(textFont(TextSize::small));
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setToolTip(tipText(help));
  value->setFont(tabularFont(TextSize::small));
  value->setObjectName(object_name);
  value->setToolTip(tipText(help));
  value->setMinimumWidth(1);
  value->setWordWrap(true);
  label->setBuddy(value);
  grid->addWidget(label, row, 0, Qt::AlignRight | Qt::AlignTop);
  grid->addWidget(value, row, 1);
  return value;
}

void AccumulationPanel::setRun(RunSeries* run) {
  if (run == run_) return;
  run_ = run;
  reduced_window_ = 0;
  refresh();
  if (run_) showAll();
}

const RankTracker& AccumulationPanel::tracker() const {
  static const RankTracker none;
  return run_ ? run_->tracker() : none;
}

RunState AccumulationPanel::state() const {
  if (!run_) return RunState::idle;
  return run_ == control_->run() ? control_->state() : run_->state();
}

void AccumulationPanel::refresh() {
  const RunSeries* run = run_;
  const auto ranks = tracker().inWindow();
  const bool any = run && !ranks.empty();
  empty_->setVisible(!any);
  for (QWidget* part : std::initializer_list<QWidget*>{title_, count_, phase_, pool_, said_, facts_, lamp_, lamp_text_})
    part->setVisible(any);
  if (!any) return;
  const bool moving = state() == RunState::running;
  if (moving && since_shown_.isValid() && since_shown_.elapsed() < shown_interval.count())
    later_.start(shown_interval);
  else
    showAll();
}

void AccumulationPanel::showAll() {
  later_.stop();
  since_shown_.start();
  if (!run_ || tracker().inWindow().empty()) return;
  const auto ranks = tracker().atOneMoment();
  showPools();
  tokens_->setText(tokensText(ranks));
  sync_->setText(syncText(ranks));
  const double norm = run_->last().gradNorm;
  norm_->setText(std::isnan(norm) ? tr("none yet") : tr("norm %1").arg(valueText(norm, 3)));
  showLamp(run_->lamp());
  const QString weights = lastWeightsText(*run_);
  weights_->setText(weights.isEmpty() ? tr("not recorded") : weights);
  phase_->setText(phaseText());
  // It scrolls only vertically, so nothing may be cut at the sides.
  scroll_->setMinimumWidth(scroll_->widget()->minimumSizeHint().width() +
                           scroll_->verticalScrollBar()->sizeHint().width());
}

QString AccumulationPanel::syncText(const std::map<std::int64_t, RankStatus>& ranks) const {
  const RankStatus& first = ranks.begin()->second;
  if (first.last_sync_update >= 0) return bytesText(first.last_sync_bytes);
  if (ranks.size() == 1) return tr("no other rank");
  const bool alone = std::ranges::all_of(ranks, [](const auto& entry) { return entry.second.at.data == 0; });
  return alone ? tr("no other replica") : tr("none yet");
}

QString AccumulationPanel::phaseText() const {
  const RunState state = this->state();
  if (!is_live(state)) return tr("Ended");
  if (state == RunState::paused) {
    //: "Paused after backward", "Paused between micro-steps"
    if (run_->held() && run_->held()->phase != StepPhase::none)
      return tr("Paused after %1").arg(phaseName(run_->held()->phase));
    return tracker().window() == 0 || tracker().drained() ? tr("Paused between updates")
                                                          : tr("Paused between micro-steps");
  }
  if (tracker().window() == 0) return tr("Not started");
  // A heartbeat belongs to another moment than the tanks: it names only phases outside a window.
  const auto ranks = tracker().atOneMoment();
  const std::string& told = ranks.begin()->second.phase;
  if (told == "checkpoint" || told == "evaluate" || told == "verify" || told == "finish")
    return QString::fromStdString(told);
  if (shows_reduction_) return tr("Reduced");
  if (tracker().drained()) return tr("Between windows");
  if (allReduced(ranks)) return tr("Reduced");
  const auto full = [](const auto& entry) { return entry.second.filled == entry.second.window_size; };
  return std::ranges::all_of(ranks, full) ? tr("Window full") : tr("Accumulating");
}

void AccumulationPanel::showLamp(const ExactnessLamp& lamp) {
  const bool checked = lamp.checks() > 0;
  RunState tone = RunState::idle;
  if (lamp.light() == ExactnessLamp::Light::exact) tone = RunState::finished;
  if (lamp.light() == ExactnessLamp::Light::close) tone = RunState::degraded;
  if (lamp.light() == ExactnessLamp::Light::different) tone = RunState::failed;
  // The chip paints an icon instead of the word's own sign.
  lamp_->setLook(tone, checked ? lamp.word().mid(2) : tr("not checked"), stateIcon(tone));
  const bool asked = run_->spec() && run_->spec()->evaluate.exactness_every > 0;
  const QString text = checked ? lamp.text()
                       : asked
                           ? tr("No window has been checked yet.")
                           : tr("Set \u201cCheck exactness every\u201d to compare windows with the same samples in one "
                                "batch.");
  lamp_text_->setText(text);
  lamp_->setAccessibleDescription(text);
}

void AccumulationPanel::showPools() {
  const RankTracker& tracker = this->tracker();
  title_->setText(tr("Update %1").arg(groupedNumber(std::max<std::int64_t>(tracker.window(), 1))));
  count_->setText(countText());
  shows_reduction_ = showsReductionFirst();
  pool_->setView({tracker.atOneMoment(), tracker.lastEnd(), tracker.drained() && !shows_reduction_});
  // Reserves two lines, so that the widgets below do not move.
  said_->setMinimumHeight(2 * said_->fontMetrics().lineSpacing());
  said_->setText(shows_reduction_ ? tr("Reduced: all ranks hold the same gradient") : stateText());
  if (shows_reduction_) later_.start(reduced_time);
  pool_->setAccessibleDescription(text());
}

bool AccumulationPanel::showsReductionFirst() {
  const RankTracker& tracker = this->tracker();
  if (!tracker.drained() || style()->styleHint(QStyle::SH_Widget_Animation_Duration, nullptr, this) <= 0) return false;
  const auto holds = [](const auto& entry) { return entry.second.filled > 0; };
  if (!allReduced(tracker.ranks()) || std::ranges::none_of(tracker.atOneMoment(), holds)) return false;
  if (reduced_window_ != tracker.window()) {
    reduced_window_ = tracker.window();
    since_reduced_.start();
    return true;
  }
  return since_reduced_.elapsed() < reduced_time.count();
}

QString AccumulationPanel::countText() const {
  const auto ranks = tracker().atOneMoment();
  if (ranks.empty()) return {};
  const auto most = std::ranges::max_element(ranks, {}, [](const auto& entry) { return entry.second.filled; });
  return tr("%1 of %2 micro-steps").arg(groupedNumber(most->second.filled), groupedNumber(most->second.window_size));
}

QString AccumulationPanel::stateText() const {
  const RankTracker& tracker = this->tracker();
  const auto ranks = tracker.atOneMoment();
  if (ranks.empty()) return {};
  if (tracker.drained()) return windowEndText(*tracker.lastEnd());
  QStringList parts;
  const auto most = std::ranges::max_element(ranks, {}, [](const auto& entry) { return entry.second.filled; });
  const RankStatus& first = most->second;
  if (run_ && is_over(state()) && first.filled > 0)
    parts << (first.filled == 1
                  ? tr("1 micro-step is left in the gradients and never used")
                  : tr("%1 micro-steps are left in the gradients and never used").arg(groupedNumber(first.filled)));
  else if (const QString boundary = boundaryText(ranks.begin()->second); !boundary.isEmpty())
    parts << boundary;
  else if (first.filled == 0)
    parts << tr("The gradients are empty");
  else if (allReduced(ranks))
    parts << tr("Reduced: all ranks hold the same gradient");
  else if (first.filled == first.window_size)
    parts << (ranks.size() > 1 ? tr("The window is full; next the ranks reduce") : tr("The window is full"));
  else
    parts << tr("%1 of %2 micro-steps are in the gradients")
                 .arg(groupedNumber(first.filled), groupedNumber(first.window_size));
  if (const QString carried = carriedText(first); !carried.isEmpty()) parts << carried;
  // An unusual end of the previous window is shown until the next one ends.
  if (const auto& end = tracker.lastEnd();
      end && (end->outcome != StepOutcome::updated || end->reason != "full" || end->dropped_batches > 0))
    parts << windowEndText(*end);
  return parts.join(QStringLiteral("; "));
}

QString AccumulationPanel::text() const {
  return tr("%1. %2").arg(pool_->text(), said_->text());
}

QString AccumulationPanel::tokensText(const std::map<std::int64_t, RankStatus>& ranks) const {
  // The ranks that share a model count the same items. Uses the micro-steps that each has reported.
  std::int64_t reported = RankTracker::most_slots;
  for (const auto& [rank, status] : ranks)
    if (status.has_loss) reported = std::min(reported, static_cast<std::int64_t>(status.slots.size()));
  std::vector<std::int64_t> counted;
  for (const auto& [rank, status] : ranks) {
    if (!status.has_loss) continue;
    std::int64_t items = status.window_tokens;
    if (status.window_size <= RankTracker::most_slots) {
      items = 0;
      for (std::int64_t slot = 0; slot < reported; ++slot) items += status.slots[static_cast<std::size_t>(slot)].tokens;
    }
    counted.push_back(items);
  }
  const std::int64_t total = std::accumulate(counted.begin(), counted.end(), std::int64_t{0});
  const QString number = total == 1 ? tr("1 item") : tr("%1 items").arg(groupedNumber(total));
  if (total == 0 || counted.size() < 2 || counted.size() > 4) return number;
  QStringList shares;
  for (const std::int64_t items : counted)
    shares.append(QString::number(std::lround(100.0 * static_cast<double>(items) / static_cast<double>(total))));
  //: A count and each replica's share, e.g. "4 096 items (50 + 50 %)"
  return tr("%1 (%2 %)").arg(number, shares.join(QStringLiteral(" + ")));
}

DockPanel AccumulationPanel::dock() {
  return {.name = "windowDock",
          .title = tr("Window"),
          .panel = this,
          .area = Qt::RightDockWidgetArea,
          .size = 280,
          .takes_focus = false,
          .set_run = [this](RunSeries* run) { setRun(run); },
          .refresh = [this] { refresh(); },
          .speaks_of = [this] { return run_.data(); }};
}

}  // namespace accrue::ui

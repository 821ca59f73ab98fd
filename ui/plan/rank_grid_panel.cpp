// SPDX-License-Identifier: GPL-3.0-or-later
#include "rank_grid_panel.h"

#include <QEvent>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "accrue/run/plan/forecast.h"
#include "document/preflight_runner.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"
#include "live/run_control.h"
#include "memory_bar.h"
#include "rank_cells.h"
#include "runs/dock_panel.h"
#include "series/run_text.h"
#include "widgets/scrolled.h"

namespace accrue::ui {

namespace {

QString placeText(const RankGrid& grid, const GridCoordinate& at) {
  QStringList parts;
  if (grid.pipeline > 1) parts << RankGridPanel::tr("stage %1").arg(at.pipeline);
  if (grid.tensor > 1) parts << RankGridPanel::tr("tensor rank %1").arg(at.tensor);
  if (grid.data > 1) parts << RankGridPanel::tr("replica %1").arg(at.data);
  return parts.isEmpty() ? RankGridPanel::tr("holds the whole model") : parts.join(QStringLiteral(", "));
}

QString gridText(const RankGrid& grid) {
  QStringList parts;
  if (grid.data > 1) parts << RankGridPanel::tr("%1 replicas").arg(groupedNumber(grid.data));
  if (grid.pipeline > 1) parts << RankGridPanel::tr("%1 stages").arg(groupedNumber(grid.pipeline));
  if (grid.tensor > 1) parts << RankGridPanel::tr("%1 tensor ranks").arg(groupedNumber(grid.tensor));
  if (parts.isEmpty()) return RankGridPanel::tr("One rank");
  const QString product = parts.join(QStringLiteral(" \u00D7 "));
  //: A number of ranks, and the product that it is
  return parts.size() == 1 ? product : RankGridPanel::tr("%1 ranks = %2").arg(groupedNumber(grid.world()), product);
}

QString listText(const RankList& ranks) {
  constexpr std::size_t most = 12;
  QStringList numbers;
  for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i) numbers << QString::number(ranks[i]);
  if (ranks.size() > most) numbers << QStringLiteral("\u2026");
  return numbers.join(QLatin1Char(' '));
}

}  // namespace

RankGridPanel::RankGridPanel(PreflightRunner* preflight, RunControl* control, QWidget* parent)
    : QWidget(parent),
      preflight_(preflight),
      control_(control),
      title_(new QLabel(this)),
      cells_(new RankCells),
      more_(new QLabel(this)),
      rank_(new QLabel(this)),
      groups_(new QLabel(this)),
      state_(new QLabel(this)),
      memory_(new MemoryBar(this)),
      share_(new QLabel(this)),
      detail_(new QWidget(this)),
      empty_(new QLabel(tr("Ranks are shown here once the spec can run."), this)) {
  setObjectName(QStringLiteral("rankGridPanel"));
  title_->setObjectName(QStringLiteral("rankGridTitle"));
  more_->setObjectName(QStringLiteral("rankGridMore"));
  rank_->setObjectName(QStringLiteral("rankName"));
  groups_->setObjectName(QStringLiteral("rankGroups"));
  state_->setObjectName(QStringLiteral("rankState"));
  share_->setObjectName(QStringLiteral("rankShare"));
  title_->setWordWrap(true);
  rank_->setFont(textFont(TextSize::body, QFont::DemiBold));
  for (QLabel* label : {more_, groups_, state_, share_}) {
    label->setFont(tabularFont(TextSize::small));
    label->setWordWrap(true);
  }
  rank_->setWordWrap(true);
  more_->setForegroundRole(QPalette::PlaceholderText);
  share_->setForegroundRole(QPalette::PlaceholderText);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  empty_->setWordWrap(true);
  auto* detail = new QVBoxLayout(detail_);
  detail->setContentsMargins(0, space::inGroup, 0, 0);
  detail->setSpacing(space::base);
  for (QWidget* widget : std::initializer_list<QWidget*>{rank_, groups_, state_, memory_, share_})
    detail->addWidget(widget);
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(space::betweenGroups, space::inGroup, space::inGroup, space::inGroup);
  column->setSpacing(space::inGroup);
  for (QWidget* widget : std::initializer_list<QWidget*>{title_, cells_, more_, detail_, empty_})
    column->addWidget(widget);
  column->addStretch(1);
  fillScrolled(this, content);
  connect(cells_, &RankCells::currentChanged, this, &RankGridPanel::showRank);
  connect(preflight_, &PreflightRunner::finished, this, &RankGridPanel::showPlan);
  showPlan();
}

void RankGridPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showRank();
}

void RankGridPanel::focusCells() {
  cells_->setFocus(Qt::ShortcutFocusReason);
}

void RankGridPanel::setRun(RunSeries* run) {
  run_ = run;
  refresh();
}

const RunSeries* RankGridPanel::liveRun() const {
  return run_ && run_ == control_->run() && control_->isLive() ? run_.data() : nullptr;
}

/// Shows the plan of the focused run while it trains; else that of the set-up.
void RankGridPanel::showPlan() {
  const RunSeries* run = liveRun();
  const std::optional<RunPlan>& plan = run && run->plan() ? run->plan() : preflight_->result().plan;
  shown_.reset();
  if (plan) shown_ = Shown{plan->memory_per_rank, plan->stages, cost_is_known(plan->spec)};
  for (QWidget* widget : std::initializer_list<QWidget*>{title_, cells_, detail_}) widget->setVisible(plan.has_value());
  empty_->setVisible(!plan);
  more_->setVisible(plan && plan->grid.world() > RankCells::most_drawn);
  if (!plan) return;
  title_->setText((run ? tr("The run: %1") : tr("The set-up: %1")).arg(gridText(plan->grid)));
  more_->setText(tr("The first %1 of %2 ranks are drawn.")
                     .arg(QString::number(RankCells::most_drawn), groupedNumber(plan->grid.world())));
  cells_->setGrid(plan->grid);
  cells_->setMemory(plan->stages);
  showRank();
}

void RankGridPanel::refresh() {
  const RunSeries* run = liveRun();
  const bool live = run && run->plan();
  const QString folder = live ? run->folder() : QString();
  if (folder != shown_run_) {
    shown_run_ = folder;
    showPlan();
  }
  cells_->setStates(live ? run->tracker().ranks() : std::map<std::int64_t, RankStatus>());
  state_->setText(stateText(cells_->current()));
  state_->setVisible(live);
}

QString RankGridPanel::stateText(std::int64_t rank) const {
  const RunSeries* run = liveRun();
  if (!run) return {};
  const auto& ranks = run->tracker().ranks();
  const auto found = ranks.find(rank);
  if (found == ranks.end()) return {};
  const RankStatus& status = found->second;
  if (status.lost) return tr("Lost");
  if (status.phase.empty()) return status.device.empty() ? tr("Starting") : tr("Ready");
  //: What a rank does (its phase), and the last micro-step it has done
  return tr("Now: %1, after micro-step %2").arg(QString::fromStdString(status.phase), groupedNumber(status.micro_step));
}

void RankGridPanel::showRank() {
  if (!shown_) return;
  const RankGrid& grid = cells_->grid();
  const std::int64_t rank = cells_->current();
  rank_->setText(tr("Rank %1: %2").arg(QString::number(rank), placeText(grid, grid.coordinate(rank))));
  const RankCost& cost = shown_->stages.at(static_cast<std::size_t>(grid.coordinate(rank).pipeline));
  const ThemeColors colors = themeColors(palette());
  QString rows;
  QStringList said;
  for (const Axis axis : grid.world() <= RankCells::most_grouped ? sharedAxes(grid) : std::vector<Axis>()) {
    const QString name = fromView(to_string(axis)), ranks = listText(grid.group(axis, rank));
    const QString sent = shown_->cost_known ? bytesText(cost.sent(axis)) : tr("not known");
    rows += QStringLiteral(
                "<tr><td><span style='color:%1'>\u25A0</span> %2&nbsp;&nbsp;</td><td>%3</td>"
                "<td align='right'>%4</td></tr>")
                .arg(axisColor(colors, name).name(), name, ranks, sent);
    said << tr("%1 group %2, sends %3").arg(name, ranks, sent);
  }
  //: Above a table of axes, ranks and bytes
  groups_->setText(
      QStringLiteral("<table width='100%' cellspacing='0' cellpadding='1'><tr style='color:%1'><td>%2</td><td>%3</td>"
                     "<td align='right'>%4</td></tr>%5</table>")
          .arg(colors.muted.name(), tr("Axis"), tr("Group"), tr("Sent an update"), rows));
  groups_->setAccessibleName(said.join(QStringLiteral("; ")));
  groups_->setVisible(!said.isEmpty());
  cells_->setAccessibleDescription(rank_->text() + QStringLiteral(". ") + groups_->accessibleName());
  const auto held = [](const RankCost& each) { return each.total() - each.process; };
  memory_->setVisible(shown_->cost_known);
  memory_->setCost(cost, held(std::ranges::max(shown_->stages, {}, held)));
  const std::int64_t most = shown_->memory_per_rank;
  const QString total = bytesText(cost.total());
  share_->setText(!shown_->cost_known ? unknownCostText()
                  : most > 0          ? tr("%1 of the %2 available per rank").arg(total, bytesText(most))
                                      : total);
  state_->setText(stateText(rank));
}

DockPanel RankGridPanel::dock() {
  return {.name = "ranksDock",
          .title = tr("Ranks"),
          .panel = this,
          .area = Qt::RightDockWidgetArea,
          .behind = "windowDock",
          .focus = [this] { focusCells(); },
          .set_run = [this](RunSeries* run) { setRun(run); },
          .refresh = [this] { refresh(); },
          .speaks_of = [this] { return liveRun(); }};
}

}  // namespace accrue::ui

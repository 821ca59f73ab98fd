// SPDX-License-Identifier: GPL-3.0-or-later
#include "iso_batch_panel.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "document/findings_model.h"
#include "document/spec_document.h"
#include "kit/number_text.h"
#include "kit/theme.h"
#include "live/run_control.h"
#include "live/run_queue.h"
#include "plan/measured_cost.h"
#include "runs/run_library.h"

namespace accrue::ui {

namespace {

constexpr int cell_role = Qt::UserRole;

QString refusalText(const IsoPlan& plan) {
  for (const Finding& finding : plan.findings)
    if (finding.severity == Severity::error) return findingSentence(finding);
  return {};
}

QString layoutText(const IsoWay& way) {
  if (way.tensor * way.pipeline == 1)
    return way.data == 1 ? IsoBatchPanel::tr("1 rank") : IsoBatchPanel::tr("%1 ranks").arg(way.data);
  //: Ranks along the data, tensor and pipeline axes
  return IsoBatchPanel::tr("%1 data \u00D7 %2 tensor \u00D7 %3 pipeline")
      .arg(way.data)
      .arg(way.tensor)
      .arg(way.pipeline);
}

}  // namespace

IsoBatchPanel::IsoBatchPanel(SpecDocument* document, IsoPlans* plans, ComparedRuns* runs, RunQueue* queue,
                             RunControl* control, RunLibrary* library, std::function<bool()> may_run, QWidget* parent)
    : QDialog(parent),
      document_(document),
      plans_(plans),
      runs_(runs),
      queue_(queue),
      control_(control),
      library_(library),
      may_run_(std::move(may_run)),
      title_(new QLabel(this)),
      color_by_(new QComboBox(this)),
      grid_(new QTableWidget(this)),
      detail_(new QLabel(this)),
      run_(new QPushButton(tr("&Run this"), this)),
      adopt_(new QPushButton(tr("&Use this set-up"), this)),
      run_missing_(new QPushButton(this)),
      cancel_(new QPushButton(tr("&Cancel the rest"), this)) {
  setObjectName(QStringLiteral("isoBatchPanel"));
  setWindowTitle(tr("Iso-batch explorer - Accrue"));
  build();
  connect(color_by_, &QComboBox::currentIndexChanged, this, &IsoBatchPanel::refresh);
  connect(grid_, &QTableWidget::currentItemChanged, this, &IsoBatchPanel::showDetail);
  connect(grid_, &QTableWidget::itemActivated, this, [this] {
    if (const Cell* cell = current(); cell && cell->run)
      adoptCurrent();
    else
      runCurrent();
  });
  connect(run_, &QPushButton::clicked, this, &IsoBatchPanel::runCurrent);
  connect(adopt_, &QPushButton::clicked, this, &IsoBatchPanel::adoptCurrent);
  connect(run_missing_, &QPushButton::clicked, this,
          [this] { run([this](const RunWay& way) { return trialOf(way.plan) == nullptr; }); });
  connect(cancel_, &QPushButton::clicked, queue_, &RunQueue::cancel);
  connect(plans_, &PlanFollower::finished, this, &IsoBatchPanel::showPlans);
  connect(queue_, &RunQueue::changed, this, &IsoBatchPanel::refresh);
  connect(queue_, &RunQueue::finished, this, &IsoBatchPanel::refresh);
  connect(control_, &RunControl::stateChanged, this, &IsoBatchPanel::refresh);
  connect(runs_, &ComparedRuns::planningChanged, this, &IsoBatchPanel::refresh);
  connect(library_, &RunLibrary::loaded, this, &IsoBatchPanel::refresh);
  connect(library_, &RunLibrary::refreshed, this, &IsoBatchPanel::refresh);
  resize(760, 420);
}

void IsoBatchPanel::build() {
  title_->setObjectName(QStringLiteral("isoTitle"));
  title_->setFont(textFont(TextSize::body, QFont::DemiBold));
  title_->setWordWrap(true);
  color_by_->setObjectName(QStringLiteral("isoShown"));
  color_by_->setAccessibleName(tr("What the cells show"));
  color_by_->addItems({tr("Time of an update"), tr("Memory of the fullest rank"), tr("Exactness")});
  grid_->setObjectName(QStringLiteral("isoGrid"));
  grid_->setAccessibleName(tr("Configurations with equal samples per update"));
  grid_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  grid_->setSelectionMode(QAbstractItemView::SingleSelection);
  grid_->setTabKeyNavigation(false);
  detail_->setObjectName(QStringLiteral("isoDetail"));
  detail_->setWordWrap(true);
  detail_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  run_->setObjectName(QStringLiteral("isoRun"));
  adopt_->setObjectName(QStringLiteral("isoAdopt"));
  run_missing_->setObjectName(QStringLiteral("isoRunMissing"));
  cancel_->setObjectName(QStringLiteral("isoCancel"));
  for (QPushButton* button : {run_, adopt_, run_missing_, cancel_}) button->setAutoDefault(false);
  auto* top = new QHBoxLayout;
  top->addWidget(title_, 1);
  top->addWidget(color_by_);
  auto* bottom = new QHBoxLayout;
  bottom->addWidget(run_);
  bottom->addWidget(adopt_);
  bottom->addStretch(1);
  bottom->addWidget(run_missing_);
  bottom->addWidget(cancel_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::betweenGroups, space::betweenGroups, space::betweenGroups);
  layout->setSpacing(space::inGroup);
  layout->addLayout(top);
  layout->addWidget(grid_, 1);
  layout->addWidget(detail_);
  layout->addLayout(bottom);
  fitRows();
}

void IsoBatchPanel::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  plans_->setWanted(true);
  showPlans();
}

void IsoBatchPanel::hideEvent(QHideEvent* event) {
  plans_->setWanted(false);
  QDialog::hideEvent(event);
}

IsoBatchPanel::Shown IsoBatchPanel::shown() const {
  return static_cast<Shown>(color_by_->currentIndex());
}

bool IsoBatchPanel::idle() const {
  return !runs_->isPlanning() && queue_->isFree();
}

/// A row per layout, a column per micro-batch.
void IsoBatchPanel::showPlans() {
  if (!isVisible()) return;
  cells_.clear();
  if (plans_->result())
    for (const IsoPlan& plan : *plans_->result()) cells_.push_back({plan});
  std::set<std::int64_t> micros;
  QStringList rows;
  for (const Cell& cell : cells_) {
    micros.insert(cell.plan.way.micro_batch);
    const QString row = layoutText(cell.plan.way);
    if (rows.isEmpty() || rows.last() != row) rows << row;
  }
  const int row = grid_->currentRow();
  const int column = grid_->currentColumn();
  grid_->clear();
  grid_->setRowCount(static_cast<int>(rows.size()));
  grid_->setColumnCount(static_cast<int>(micros.size()));
  QStringList columns;
  for (const std::int64_t micro : micros) columns << tr("micro-batch %1").arg(groupedNumber(micro));
  grid_->setHorizontalHeaderLabels(columns);
  grid_->setVerticalHeaderLabels(rows);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const IsoWay& way = cells_[i].plan.way;
    auto* item = new QTableWidgetItem;
    item->setData(cell_role, static_cast<int>(i));
    item->setTextAlignment(Qt::AlignCenter);
    grid_->setItem(static_cast<int>(rows.indexOf(layoutText(way))),
                   static_cast<int>(std::distance(micros.begin(), micros.find(way.micro_batch))), item);
  }
  const IsoWay own = way_of(document_->spec());
  title_->setText(cells_.empty() ? tr("The configurations are shown here once the data can be read")
                                 : tr("%1 samples per update in %2 configurations; each is trained for %3 updates")
                                       .arg(groupedNumber(own.micro_batch * own.steps * own.data))
                                       .arg(cells_.size())
                                       .arg(iso_updates));
  refresh();
  grid_->setCurrentCell(std::max(row, 0), std::max(column, 0));
  grid_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
}

void IsoBatchPanel::fitRows() {
  grid_->verticalHeader()->setDefaultSectionSize(2 * fontMetrics().lineSpacing() + 2 * space::base);
  detail_->setMinimumHeight(2 * fontMetrics().lineSpacing());
}

void IsoBatchPanel::changeEvent(QEvent* event) {
  QDialog::changeEvent(event);
  if (event->type() != QEvent::FontChange) return;
  fitRows();
  refresh();  // cells have their own fonts
}

RunSeries* IsoBatchPanel::trialOf(const std::optional<RunPlan>& plan) const {
  if (!plan) return nullptr;
  for (int row = 0; row < library_->table()->rowCount(); ++row) {
    RunSeries* run = library_->table()->run(row);
    if (run->outcome().outcome == QLatin1String("finished") && run->spec() && same_trial(*run->spec(), plan->spec))
      return run;
  }
  return nullptr;
}

void IsoBatchPanel::refresh() {
  if (!isVisible()) return;
  for (Cell& cell : cells_) {
    RunSeries* run = trialOf(cell.plan.plan);
    cell.run = run;
    if (!run) continue;
    if (!run->hasEvents()) library_->load(run);  // for the comparison with one batch
    const LastValues& last = run->last();
    cell.seconds = last.update > 0 ? last.unpausedSeconds / static_cast<double>(last.update) : 0.0;
    const auto cost = measuredCost(run->planCheck());
    cell.bytes = cost ? heldBytes(*cost) : 0;
  }
  double least = 0.0;
  double most = 0.0;
  bool first = true;
  for (const Cell& cell : cells_) {
    const auto amount = amountOf(cell);
    if (!amount) continue;
    least = first ? *amount : std::min(least, *amount);
    most = first ? *amount : std::max(most, *amount);
    first = false;
  }
  int missing = 0;
  for (int row = 0; row < grid_->rowCount(); ++row)
    for (int column = 0; column < grid_->columnCount(); ++column)
      if (QTableWidgetItem* item = grid_->item(row, column)) {
        const Cell& cell = cells_.at(static_cast<std::size_t>(item->data(cell_role).toInt()));
        if (cell.plan.plan && !cell.run) ++missing;
        fill(item, cell, least, most);
      }
  const bool busy = queue_->isActive();
  run_missing_->setText(missing == 1 ? tr("Run the &missing one") : tr("Run the &missing %1").arg(missing));
  run_missing_->setVisible(!busy);
  run_missing_->setEnabled(missing > 0 && idle());
  cancel_->setVisible(busy);
  showDetail();
}

std::optional<double> IsoBatchPanel::amountOf(const Cell& cell) const {
  if (!cell.run) return std::nullopt;
  switch (shown()) {
    case Shown::time:
      return cell.seconds;
    case Shown::memory:
      return cell.bytes > 0 ? std::optional(static_cast<double>(cell.bytes)) : std::nullopt;
    case Shown::exactness:
      break;
  }
  const ExactnessLamp::Light light = cell.run->lamp().light();
  return light == ExactnessLamp::Light::off ? std::nullopt : std::optional(static_cast<double>(light));
}

QString IsoBatchPanel::valueOf(const Cell& cell) const {
  if (!cell.plan.plan) return tr("\u2717 refused");
  if (!cell.run) {
    for (const QueuedRun& queued : queue_->runs()) {
      if (!same_trial(queued.plan.spec, cell.plan.plan->spec)) continue;
      if (queued.state == QueuedState::waiting) return tr("waiting");
      if (queued.state == QueuedState::running) return tr("running");
      if (queued.state == QueuedState::failed) return tr("\u2717 failed");
      if (queued.state == QueuedState::stopped) return tr("stopped");
    }
    return tr("not run");
  }
  switch (shown()) {
    case Shown::time:
      return spanText(cell.seconds);
    case Shown::memory:
      return cell.bytes > 0 ? bytesText(cell.bytes) : tr("not counted");
    case Shown::exactness:
      break;
  }
  const QString word = cell.run->lamp().word();
  return word.isEmpty() ? tr("not checked") : word;
}

void IsoBatchPanel::fill(QTableWidgetItem* item, const Cell& cell, double least, double most) const {
  const ThemeColors colors = themeColors(palette());
  const bool own = cell.plan.way == way_of(document_->spec());
  //: A cell of the grid: N, and what was measured
  item->setText(tr("N = %1\n%2").arg(groupedNumber(cell.plan.way.steps), valueOf(cell)));
  QFont font = tabularFont();
  font.setBold(own);
  item->setFont(font);
  item->setForeground(cell.run ? colors.text : colors.muted);
  item->setToolTip(refusalText(cell.plan));
  // More is darker; the cell has the number.
  const auto amount = amountOf(cell);
  const double part = amount && most > least ? (*amount - least) / (most - least) : 0.0;
  item->setBackground(amount ? QBrush(mixed(colors.accent, colors.surface, 0.06 + 0.34 * part)) : QBrush());
  item->setData(Qt::AccessibleTextRole, tr("%1: %2").arg(wayText(cell.plan.way), valueOf(cell)));
}

const IsoBatchPanel::Cell* IsoBatchPanel::current() const {
  const QTableWidgetItem* item = grid_->currentItem();
  return item ? &cells_.at(static_cast<std::size_t>(item->data(cell_role).toInt())) : nullptr;
}

void IsoBatchPanel::showDetail() {
  const Cell* cell = current();
  run_->setEnabled(cell && cell->plan.plan && idle());
  adopt_->setEnabled(cell && cell->plan.plan && cell->plan.way != way_of(document_->spec()));
  if (!cell) return detail_->clear();
  QStringList parts{wayText(cell->plan.way)};
  if (!cell->plan.plan) {
    parts << refusalText(cell->plan);
  } else if (cell->run) {
    parts << tr("%1 an update").arg(spanText(cell->seconds));
    if (cell->bytes > 0) parts << tr("%1 in the fullest rank").arg(bytesText(cell->bytes));
    const QString word = cell->run->lamp().word();
    parts << (word.isEmpty() ? tr("not compared with one batch") : word);
  } else {
    parts << (idle() ? tr("not run yet; press Enter to train it for %1 updates").arg(iso_updates)
                     : tr("not run yet; wait for the current run to end"));
  }
  detail_->setText(parts.join(QStringLiteral("; ")));
}

void IsoBatchPanel::run(std::function<bool(const RunWay&)> wanted) {
  if (idle() && may_run_()) runs_->start({.ways = asProducts, .wanted = std::move(wanted)});
}

void IsoBatchPanel::runCurrent() {
  if (const Cell* cell = current(); cell && cell->plan.plan)
    run([label = wayText(cell->plan.way)](const RunWay& way) { return way.label == label; });
}

void IsoBatchPanel::adoptCurrent() {
  if (const Cell* cell = current(); cell && cell->plan.plan)
    document_->setSpec(with_way(document_->spec(), cell->plan.way), tr("Use %1").arg(wayText(cell->plan.way)));
}

}  // namespace accrue::ui

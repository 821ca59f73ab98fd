// SPDX-License-Identifier: GPL-3.0-or-later
#include "inspector_panel.h"

#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QTableWidget>
#include <QVBoxLayout>

#include <QDockWidget>
#include "held_phases.h"
#include "kit/number_text.h"
#include "kit/theme.h"
#include "run_control.h"
#include "runs/dock_panel.h"
#include "series/run_text.h"

namespace accrue::ui {

namespace {

/// Its rows are as high as its text.
class ValueTable final : public QTableWidget {
 public:
  using QTableWidget::QTableWidget;

 protected:
  void changeEvent(QEvent* event) override {
    QTableWidget::changeEvent(event);
    if (event->type() == QEvent::FontChange) fitRows();
  }

 private:
  void fitRows() { verticalHeader()->setDefaultSectionSize(fontMetrics().height() + space::base); }
};

QTableWidget* makeTable(QWidget* parent, const QString& object_name, const QString& accessible_name) {
  auto* table = new ValueTable(parent);
  table->setObjectName(object_name);
  table->setAccessibleName(accessible_name);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setTabKeyNavigation(false);
  table->setShowGrid(false);
  table->setFrameShape(QFrame::NoFrame);
  table->setWordWrap(false);
  table->verticalHeader()->hide();
  table->horizontalHeader()->setHighlightSections(false);
  table->horizontalHeader()->setMinimumSectionSize(8 * table->fontMetrics().averageCharWidth());
  table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table->verticalHeader()->setMinimumSectionSize(0);
  table->setFont(tabularFont(TextSize::small));
  return table;
}

/// Sets a cell only if it changes, so that a screen reader is not notified again.
QTableWidgetItem* setCell(QTableWidget* table, int row, int column, const QString& text) {
  QTableWidgetItem* item = table->item(row, column);
  if (!item) {
    item = new QTableWidgetItem;
    table->setItem(row, column, item);
  }
  if (item->text() == text) return item;
  item->setText(text);
  item->setToolTip(text);  // a narrow column may cut it
  return item;
}

void setColumns(QTableWidget* table, const QStringList& names) {
  if (table->columnCount() != names.size()) table->setColumnCount(static_cast<int>(names.size()));
  // The first column names the rows; the others share the rest, so that a few ranks need no scrolling.
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  for (int column = 0; column < names.size(); ++column)
    if (!table->horizontalHeaderItem(column) || table->horizontalHeaderItem(column)->text() != names[column])
      table->setHorizontalHeaderItem(column, new QTableWidgetItem(names[column]));
}

}  // namespace

InspectorPanel::InspectorPanel(RunControl* control, QWidget* parent)
    : QWidget(parent),
      control_(control),
      empty_(new QLabel(tr("Here a paused run shows what it holds.\n\nF10 goes on to the end of the next phase, F11 of "
                           "the next micro-step, Shift+F11 of the update. Where nothing runs, F10 starts the run "
                           "paused."),
                        this)),
      place_(new QLabel(this)),
      phases_(makeTable(this, QStringLiteral("inspectorPhases"), tr("Phases of the micro-step"))),
      slice_(new QLabel(this)),
      values_(makeTable(this, QStringLiteral("inspectorValues"), tr("Weights and gradients"))) {
  setObjectName(QStringLiteral("inspectorPanel"));
  empty_->setForegroundRole(QPalette::PlaceholderText);
  place_->setObjectName(QStringLiteral("inspectorPlace"));
  place_->setFont(textFont(TextSize::body, QFont::DemiBold));
  slice_->setObjectName(QStringLiteral("inspectorSlice"));
  slice_->setFont(textFont(TextSize::small));
  slice_->setForegroundRole(QPalette::PlaceholderText);
  for (QLabel* label : {empty_, place_, slice_}) {
    label->setWordWrap(true);
    label->setMinimumWidth(1);
  }
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::inGroup, space::betweenGroups, space::inGroup);
  layout->setSpacing(space::inGroup);
  layout->addWidget(empty_);
  layout->addWidget(place_);
  // A heading and two rows: more is scrolled, so that the window fits a low screen.
  for (QWidget* table : {static_cast<QWidget*>(phases_), static_cast<QWidget*>(values_)})
    table->setMinimumHeight(3 * table->fontMetrics().height());
  layout->addWidget(phases_, 3);
  layout->addWidget(slice_);
  layout->addWidget(values_, 2);
  layout->addStretch(0);
}

void InspectorPanel::setShown(bool shown) {
  shown_ = shown;
  refresh();
}

void InspectorPanel::refresh() {
  if (!shown_) return;
  const HeldPhases& held = control_->held();
  const RunSeries* run = control_->run();
  const bool any = run && !held.empty();
  empty_->setVisible(!any);
  for (QWidget* part : std::initializer_list<QWidget*>{place_, phases_, slice_, values_}) part->setVisible(any);
  if (!any) return;
  const RunState state = control_->state();
  //: The state of a run and its place: "Paused after backward, micro 2 of 4, in update 3"
  place_->setText(state == RunState::paused ? tr("%1 %2").arg(stateWord(run, state), stateSentence(*run, state))
                                            : tr("%1; the numbers are of its last pause").arg(stateWord(run, state)));
  showPhases();
  showValues();
}

void InspectorPanel::focusPhases() {
  phases_->setFocus(Qt::ShortcutFocusReason);
}

void InspectorPanel::showPhases() {
  const HeldPhases& held = control_->held();
  QStringList names{tr("Phase")};
  for (const auto& [rank, of_rank] : held.ranks()) names << tr("rank %1").arg(rank);
  setColumns(phases_, names);
  phases_->setRowCount(static_cast<int>(allPhases.size()));
  const StepPhase at = held.newest()->phase;
  for (int row = 0; row < phases_->rowCount(); ++row) {
    const StepPhase phase = allPhases[static_cast<std::size_t>(row)];
    const bool here = phase == at;
    QTableWidgetItem* name =
        setCell(phases_, row, 0, (here ? QStringLiteral("\u25b6 ") : QString()) + phaseName(phase));
    QFont font;  // only the weight: the table determines the rest
    font.setWeight(here ? QFont::DemiBold : QFont::Normal);
    int column = 0;
    for (const auto& [rank, of_rank] : held.ranks()) setCell(phases_, row, ++column, held.valueText(rank, phase));
    for (column = 0; column < phases_->columnCount(); ++column) {
      phases_->item(row, column)->setFont(font);
      QTableWidgetItem* cell = phases_->item(row, column);
      cell->setToolTip(column == 0 || cell->text().isEmpty()
                           ? phaseHelp(phase)
                           : QStringLiteral("%1\n%2").arg(cell->text(), phaseHelp(phase)));
    }
    name->setData(Qt::AccessibleDescriptionRole, phaseHelp(phase));
  }
}

void InspectorPanel::showValues() {
  const HeldPhases& held = control_->held();
  const HeldPhases::OfRank& first = held.ranks().begin()->second;
  const auto shown = static_cast<int>(first.last->weights.size());
  slice_->setText(first.last->parameter.empty()  ? QString()
                  : shown < first.last->elements ? tr("%1, the first %2 of %3 elements")
                                                       .arg(QString::fromStdString(first.last->parameter))
                                                       .arg(shown)
                                                       .arg(groupedNumber(first.last->elements))
                                                 : QString::fromStdString(first.last->parameter));
  QStringList names{tr("Weight"), tr("before")};
  for (const auto& [rank, of_rank] : held.ranks()) names << tr("gradient,\nrank %1").arg(rank);
  setColumns(values_, names);
  values_->setRowCount(shown);
  const auto number = [](const std::vector<double>& values, int row) {
    return row < static_cast<int>(values.size()) ? valueText(values[static_cast<std::size_t>(row)], 4) : QString();
  };
  for (int row = 0; row < shown; ++row) {
    setCell(values_, row, 0, number(first.last->weights, row));
    setCell(values_, row, 1, number(first.before, row));
    int column = 1;
    for (const auto& [rank, of_rank] : held.ranks())
      setCell(values_, row, ++column, number(of_rank.last->gradient, row));
  }
}

DockPanel InspectorPanel::dock() {
  return {.name = "inspectorDock",
          .title = tr("Inspector"),
          .panel = this,
          .area = Qt::RightDockWidgetArea,
          .behind = "windowDock",
          .focus = [this] { focusPhases(); },
          .docked =
              [this](QDockWidget* dock) {
                connect(dock, &QDockWidget::visibilityChanged, this, &InspectorPanel::setShown);
              },
          .refresh = [this] { refresh(); },
          .speaks_of = [this] { return control_->run(); }};
}

}  // namespace accrue::ui

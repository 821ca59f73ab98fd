// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_table.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "kit/no_value.h"
#include "kit/number_text.h"
#include "kit/theme.h"
#include "plot_view.h"

namespace accrue::ui {

namespace {

constexpr int refreshEvery = 1000;  // milliseconds
/// Rows beyond this number do not affect the width of a column.
constexpr int measuredRows = 50;
constexpr int leastColumnWidth = 80;

}  // namespace

PlotTable tableOf(Clock clock, std::vector<TableSeries> columns) {
  auto positions = std::make_shared<std::vector<double>>();
  for (const TableSeries& column : columns) {
    const ClockColumn& at = column.store->clock(clock);
    const auto middle = static_cast<std::ptrdiff_t>(positions->size());
    for (std::size_t i = 0; i < column.store->size(); ++i) positions->push_back(at[i]);
    std::inplace_merge(positions->begin(), positions->begin() + middle, positions->end());
    positions->erase(std::unique(positions->begin(), positions->end()), positions->end());
  }
  PlotTable table;
  table.headers << clockAxisTitle(clock);
  for (const TableSeries& column : columns) table.headers << column.name;
  table.rows = positions->size();
  table.cell = [clock, positions, columns = std::move(columns)](std::size_t row, int column) {
    const double x = (*positions)[row];
    if (column == 0) return clockCounts(clock) ? groupedNumber(std::llround(x)) : QString::number(x, 'f', 3);
    const TableSeries& series = columns[static_cast<std::size_t>(column) - 1];
    if (!series.run) return QString();
    const ClockColumn& at = series.store->clock(clock);
    const std::size_t index = at.lowerBound(x);
    if (index >= series.store->size() || at[index] != x) return QString();
    const double value = series.store->value(index);
    return isMeasured(value) ? valueText(value) : QString();
  };
  return table;
}

void PlotTableModel::setTable(PlotTable table) {
  const bool grown = table.headers == table_.headers && table.rows >= table_.rows;
  if (!grown) {
    beginResetModel();
    table_ = std::move(table);
    endResetModel();
    return;
  }
  const int before = rowCount();
  const int after = static_cast<int>(std::min<std::size_t>(table.rows, std::numeric_limits<int>::max()));
  if (after > before) beginInsertRows({}, before, after - 1);
  table_ = std::move(table);
  if (after > before) endInsertRows();
  if (before > 0) Q_EMIT dataChanged(index(0, 0), index(before - 1, columnCount() - 1));
}

int PlotTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(std::min<std::size_t>(table_.rows, std::numeric_limits<int>::max()));
}

int PlotTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.headers.size());
}

QVariant PlotTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::DisplayRole) return table_.cell(static_cast<std::size_t>(index.row()), index.column());
  if (role == Qt::AccessibleTextRole)
    //: A cell of a table, with its column's title
    return tr("%1: %2").arg(table_.headers[index.column()], data(index, Qt::DisplayRole).toString());
  return {};
}

QVariant PlotTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation != Qt::Horizontal) return {};
  return table_.headers.value(section);
}

PlotTableWindow::PlotTableWindow(PlotView* plot, QWidget* parent)
    : QDialog(parent), plot_(plot), model_(new PlotTableModel(this)), view_(new QTableView(this)) {
  setObjectName(QStringLiteral("plotTable"));
  setAttribute(Qt::WA_DeleteOnClose);
  //: Title of the window that shows a plot as a table: "Loss as a table"
  setWindowTitle(tr("%1 as a table").arg(plot_->header().title()));
  view_->setObjectName(QStringLiteral("plotTableView"));
  view_->setAccessibleName(windowTitle());
  view_->setModel(model_);
  view_->setFont(tabularFont());
  view_->setSelectionBehavior(QAbstractItemView::SelectRows);
  view_->verticalHeader()->hide();
  view_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  view_->verticalHeader()->setDefaultSectionSize(view_->fontMetrics().height() + space::inGroup);
  view_->horizontalHeader()->setDefaultAlignment(Qt::AlignRight | Qt::AlignVCenter);
  view_->horizontalHeader()->setMinimumSectionSize(leastColumnWidth);
  view_->horizontalHeader()->setResizeContentsPrecision(measuredRows);
  view_->setTabKeyNavigation(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(view_);
  refresh();
  view_->resizeColumnsToContents();
  resize(560, 400);
  timer_.setInterval(refreshEvery);
  connect(&timer_, &QTimer::timeout, this, &PlotTableWindow::refresh);
  timer_.start();
}

void PlotTableWindow::refresh() {
  const std::uint64_t now = plot_->contentRevision();
  if (now == seen_) return;
  seen_ = now;
  model_->setTable(plot_->table());
}

void PlotTableWindow::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) {
    copySelected();
    return;
  }
  QDialog::keyPressEvent(event);
}

void PlotTableWindow::copySelected() const {
  QStringList lines;
  QStringList cells;
  for (int column = 0; column < model_->columnCount(); ++column)
    cells << model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
  lines << cells.join(QLatin1Char('\t'));
  QModelIndexList rows = view_->selectionModel()->selectedRows();
  std::ranges::sort(rows, {}, &QModelIndex::row);
  for (const QModelIndex& row : rows) {
    cells.clear();
    for (int column = 0; column < model_->columnCount(); ++column)
      cells << row.siblingAtColumn(column).data().toString();
    lines << cells.join(QLatin1Char('\t'));
  }
  QGuiApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

}  // namespace accrue::ui

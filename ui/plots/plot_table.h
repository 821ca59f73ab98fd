// SPDX-License-Identifier: GPL-3.0-or-later
// A plot as a table, for those who read rather than look, and the window that shows it.
#pragma once

#include <QAbstractTableModel>
#include <QDialog>
#include <QPointer>
#include <QStringList>
#include <QTimer>
#include <functional>
#include <memory>
#include <vector>

#include "series/run_series.h"

class QTableView;

namespace accrue::ui {

class PlotView;

struct PlotTable {
  QStringList headers;
  std::size_t rows = 0;
  std::function<QString(std::size_t row, int column)> cell;
};

/// A column of values; empty where its run has no point at a row's position.
struct TableSeries {
  QPointer<RunSeries> run;
  const SeriesStore* store = nullptr;
  QString name;
  std::shared_ptr<const void> keeps = {};  ///< what the store is part of, if not of the run
};
/// A row for every position at which one of the series has a point.
PlotTable tableOf(Clock clock, std::vector<TableSeries> columns);

class PlotTableModel final : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;
  /// Rows are added where the table only grew; else everything is new.
  void setTable(PlotTable table);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  PlotTable table_;
};

/// Follows a run: a second after a new point it has its row. Ctrl+C copies the selected rows.
class PlotTableWindow final : public QDialog {
  Q_OBJECT

 public:
  explicit PlotTableWindow(PlotView* plot, QWidget* parent = nullptr);

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void refresh();
  void copySelected() const;

  PlotView* plot_;
  PlotTableModel* model_;
  QTableView* view_;
  QTimer timer_;
  std::uint64_t seen_ = 0;
};

}  // namespace accrue::ui

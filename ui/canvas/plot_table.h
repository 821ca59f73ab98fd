// SPDX-License-Identifier: GPL-3.0-or-later
// A plot as a table, for people who prefer numbers, and its window.
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

/// A column of values; empty at rows for which its run has no point.
struct TableSeries {
  QPointer<RunSeries> run;
  const SeriesStore* store = nullptr;
  QString name;
  std::shared_ptr<const void> keeps = {};  ///< owner of the store, if not the run
};
/// Makes a row for every position at which one of the series has a point.
PlotTable tableOf(Clock clock, std::vector<TableSeries> columns);

class PlotTableModel final : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;
  /// Adds rows if the table only grew; otherwise replaces everything.
  void setTable(PlotTable table);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  PlotTable table_;
};

/// Table that follows a run: a new point appears within a second. Ctrl+C copies the selected rows.
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

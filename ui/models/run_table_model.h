// SPDX-License-Identifier: GPL-3.0-or-later
// The runs table: live runs and runs from disk, and, on request, one column for every key in which they differ.
#pragma once

#include <QAbstractTableModel>
#include <QList>
#include <QPointer>
#include <string>
#include <vector>

#include "models/run_series.h"

namespace accrue::ui {

/// Thread: GUI. Does not own the runs; a run that is destroyed leaves the table.
class RunTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column {
    stateColumn,
    nameColumn,
    stepsColumn,
    microBatchColumn,
    ranksColumn,
    lossColumn,
    rateColumn,
    updatesColumn,
    exactColumn,    ///< shown only while a shown run was checked against one batch
    weightsColumn,  ///< shown only while a shown run recorded its weights
    fixedColumns
  };
  enum Role {
    runIdRole = Qt::UserRole + 1,
    stateRole,       ///< int(RunState)
    colorIndexRole,  ///< int, for the swatch
    iconNameRole,    ///< name of the state's icon in resources/icons
    sortRole,        ///< the value to sort the column by
    fieldKeyRole,    ///< header: dotted key of a differing column
  };

  explicit RunTableModel(QObject* parent = nullptr);

  /// Appends a run.
  void addRun(RunSeries* run);
  void removeRun(RunSeries* run);
  QList<RunSeries*> runs() const;
  RunSeries* run(int row) const;
  RunSeries* run(const QModelIndex& index) const { return index.isValid() ? run(index.row()) : nullptr; }
  int rowOf(const RunSeries* run) const;

  /// On: one column per differing key, in place of the fixed set-up columns (N, micro, ranks).
  void setOnlyDiffering(bool on);
  bool onlyDiffering() const { return onlyDiffering_; }
  /// The runs that the differing columns compare; with fewer than two, all runs.
  void setCompared(const QList<RunSeries*>& runs);
  /// Dotted keys in which the compared runs differ, in the order of a spec file.
  QStringList differingKeys() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  void forget(QObject* object);
  void refreshRow(RunSeries* run, int firstColumn, int lastColumn);
  void refreshColumns();
  void showKeys(std::vector<std::string> keys);
  /// Shows or hides the weights column to suit the shown runs.
  void refreshOptional();
  bool anyHas(Column column) const;
  QVariant fixedText(const RunSeries& run, int column) const;
  QVariant sortValue(const RunSeries& run, int column) const;
  QString keyText(const RunSeries& run, const std::string& key) const;
  /// Fixed column shown at a section, or -1 for a differing key.
  int fixedAt(int section) const;

  std::vector<RunSeries*> runs_;
  std::vector<int> shown_;         ///< fixed columns in order
  std::vector<std::string> keys_;  ///< differing keys, in columns after them
  std::vector<const RunSeries*> compared_;
  bool onlyDiffering_ = false;
};

/// "Ready", "Running", "Paused", ...
QString stateName(accrue::RunState state);
/// Name of a state's icon in resources/icons: "state-running", ...
QString stateIconName(accrue::RunState state);

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// The runs table: live runs and runs from disk, and, on request, one column for every key in which they differ.
#pragma once

#include <QAbstractTableModel>
#include <QList>
#include <QPointer>
#include <QTimer>
#include <string>
#include <vector>

#include "series/run_series.h"

namespace accrue::ui {

/// Thread: GUI. Does not own the runs; a destroyed run leaves the table. Runs of the same name get distinct names at
/// the next turn of the event loop, and keep them.
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
    deltaColumn,    ///< only with a baseline
    changesColumn,  ///< only with a baseline
    exactColumn,    ///< only while a shown run was checked against one batch
    weightsColumn,  ///< only while a shown run recorded its weights
    rateColumn,
    updatesColumn,
    fixedColumns
  };
  enum Role {
    runIdRole = Qt::UserRole + 1,
    stateRole,       ///< int(RunState)
    colorIndexRole,  ///< int, for the swatch
    iconNameRole,    ///< name of the state's icon in resources/icons
    sortRole,        ///< sort value of the column
    fieldKeyRole,    ///< header: dotted key of a differing column
    tagsRole,        ///< for a name: the user's tags, each with its "#"
    marksRole,       ///< for a name: words for unusual runs, e.g. "bug", "N changed"
  };

  explicit RunTableModel(QObject* parent = nullptr);

  /// Runs are in order of their start, the newest first; those with an unknown start are last.
  void addRun(RunSeries* run);
  void removeRun(RunSeries* run);
  QList<RunSeries*> runs() const;
  RunSeries* run(int row) const;
  RunSeries* run(const QModelIndex& index) const { return index.isValid() ? run(index.row()) : nullptr; }
  int rowOf(const RunSeries* run) const;

  /// Current section of a fixed column; -1 if it is hidden.
  int sectionOf(Column column) const;
  /// On: one column per differing key instead of the fixed set-up columns (N, micro, ranks).
  void setOnlyDiffering(bool on);
  bool onlyDiffering() const { return onlyDiffering_; }
  /// The runs that the differing columns compare; with fewer than two, all runs.
  void setCompared(const QList<RunSeries*>& runs);
  /// Sets the run to which the others are compared, in columns of their own; nullptr: none.
  void setBaseline(RunSeries* run);
  RunSeries* baseline() const { return baseline_; }
  /// Dotted keys in which the compared runs differ, in the order of a spec file.
  QStringList differingKeys() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  /// For a name. Qt::CheckStateRole: Checked shows the run, Unchecked hides it. Qt::EditRole: renamed() follows.
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 Q_SIGNALS:
  void baselineChanged();
  /// The user typed another name; the receiver decides about it.
  void renamed(accrue::ui::RunSeries* run, const QString& name);
  /// A run got a distinct name among runs of the same name.
  void called(accrue::ui::RunSeries* run);

 private:
  QString deltaText(const RunSeries& run) const;
  QString changesText(const RunSeries& run) const;
  void forget(RunSeries* run);
  void refreshRow(RunSeries* run, int firstColumn, int lastColumn);
  void refreshColumns();
  void nameRuns();
  void showKeys(std::vector<std::string> keys);
  /// Shows or hides the weights column, as the shown runs require.
  void refreshOptional();
  bool anyHas(Column column) const;
  QVariant fixedText(const RunSeries& run, int column) const;
  /// Whether a section holds numbers, which are right-aligned.
  bool isNumeric(int section) const;
  QVariant sortValue(const RunSeries& run, int column) const;
  /// Fixed column shown at a section, or -1 for a differing key.
  int fixedAt(int section) const;

  std::vector<RunSeries*> runs_;
  std::vector<int> shown_;         ///< fixed columns in order
  std::vector<std::string> keys_;  ///< differing keys, in the columns after them
  std::vector<const RunSeries*> compared_;
  RunSeries* baseline_ = nullptr;
  bool onlyDiffering_ = false;
  QTimer naming_;  ///< merges the naming of many new runs
};

/// Name of a state's icon in resources/icons: "state-running", ...
QString stateIconName(accrue::RunState state);

}  // namespace accrue::ui

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

/// Thread: GUI. Does not own the runs; a run that is destroyed leaves the table. Runs of one name get names of their
/// own once control is back in the event loop, and keep them.
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
    deltaColumn,    ///< there only while there is a baseline
    changesColumn,  ///< likewise
    exactColumn,    ///< there only while a shown run was checked against one batch
    weightsColumn,  ///< there only while a shown run recorded its weights
    rateColumn,
    updatesColumn,
    fixedColumns
  };
  enum Role {
    runIdRole = Qt::UserRole + 1,
    stateRole,       ///< int(RunState)
    colorIndexRole,  ///< int, for the swatch
    iconNameRole,    ///< name of the state's icon in resources/icons
    sortRole,        ///< the value to sort the column by
    fieldKeyRole,    ///< header: dotted key of a differing column
    tagsRole,        ///< of a name: the user's tags, each with its "#"
    marksRole,       ///< of a name: words for what makes the run unusual, e.g. "bug", "N changed"
  };

  explicit RunTableModel(QObject* parent = nullptr);

  /// Runs stand in the order of their start, the newest first; one whose start is not known stands last.
  void addRun(RunSeries* run);
  void removeRun(RunSeries* run);
  QList<RunSeries*> runs() const;
  RunSeries* run(int row) const;
  RunSeries* run(const QModelIndex& index) const { return index.isValid() ? run(index.row()) : nullptr; }
  int rowOf(const RunSeries* run) const;

  /// Where a fixed column stands now; -1 if it is not there.
  int sectionOf(Column column) const;
  /// On: one column per differing key, in place of the fixed set-up columns (N, micro, ranks).
  void setOnlyDiffering(bool on);
  bool onlyDiffering() const { return onlyDiffering_; }
  /// The runs that the differing columns compare; with fewer than two, all runs.
  void setCompared(const QList<RunSeries*>& runs);
  /// The run to which the others are compared, in columns of their own; nullptr = none.
  void setBaseline(RunSeries* run);
  RunSeries* baseline() const { return baseline_; }
  /// Dotted keys in which the compared runs differ, in the order of a spec file.
  QStringList differingKeys() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  /// Of a name. Qt::CheckStateRole: Checked shows the run, Unchecked hides it. Qt::EditRole: renamed() follows.
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 Q_SIGNALS:
  void baselineChanged();
  /// The user typed another name; who keeps the names decides.
  void renamed(accrue::ui::RunSeries* run, const QString& name);
  /// A run got what tells it from the others of its name.
  void called(accrue::ui::RunSeries* run);

 private:
  QString deltaText(const RunSeries& run) const;
  QString changesText(const RunSeries& run) const;
  void forget(RunSeries* run);
  void refreshRow(RunSeries* run, int firstColumn, int lastColumn);
  void refreshColumns();
  void nameRuns();
  void showKeys(std::vector<std::string> keys);
  /// Shows or hides the weights column to suit the shown runs.
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
  std::vector<std::string> keys_;  ///< differing keys, in columns after them
  std::vector<const RunSeries*> compared_;
  RunSeries* baseline_ = nullptr;
  bool onlyDiffering_ = false;
  QTimer naming_;  ///< once for however many runs have come
};

/// Name of a state's icon in resources/icons: "state-running", ...
QString stateIconName(accrue::RunState state);

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// The events log: the newest events as sentences, and a proxy that filters and sorts them. Traces (the events of every
// micro-step and collective) have a separate ring, so that they do not displace other events.
#pragma once

#include <QAbstractTableModel>
#include <QHash>
#include <QSet>
#include <QSortFilterProxyModel>
#include <QString>
#include <cstdint>
#include <deque>
#include <vector>

#include "accrue/run/events/run_event.h"

namespace accrue::ui {

/// Thread: GUI. Append once per frame. The rows of other events come first, then those of traces, each oldest first;
/// orderRole is the order of arrival.
class EventLogModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { timeColumn, rankColumn, kindColumn, textColumn, columns };
  enum Role {
    kindRole = Qt::UserRole + 1,  ///< as spelled in the file
    rankRole,                     ///< -1: supervisor
    updateRole,                   ///< update of the event, for the plots to show; 0: none
    severityRole,                 ///< 0 plain, 1 warning, 2 failure
    secondsRole,
    runIdRole,
    orderRole,
  };

  explicit EventLogModel(int capacity = 20000, QObject* parent = nullptr);

  /// Appends the events that have a sentence (heartbeats and gauges have none).
  void append(const QString& runId, const std::vector<accrue::RunEvent>& events);
  void clear();
  /// Removes a run's events before they are read again.
  void removeRun(const QString& runId);
  /// Number of rows of each ring.
  int capacity() const { return capacity_; }
  /// Whether events of a kind, as spelled in the file, go to the ring of traces.
  static bool isTrace(const QString& kind);
  /// Number of rows that have left the rings; the run folder still has them.
  std::int64_t dropped() const;
  /// Number of one run's rows that have left a ring: its traces, or its other events.
  std::int64_t dropped(const QString& runId, bool traces) const;
  /// A row as one line, tab separated (Copy).
  QString textOf(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  struct Row {
    QString runId;
    QString kind;
    QString text;
    std::int64_t rank = -1;
    std::int64_t update = 0;
    double seconds = 0.0;
    int severity = 0;
    std::int64_t order = 0;
  };
  struct Ring {
    std::deque<Row> rows;
    QHash<QString, std::int64_t> dropped;  // by run
  };
  Ring& ringOf(bool traces) { return traces ? traces_ : events_; }
  const Row& row(int index) const;
  void append(bool traces, std::vector<Row> fresh);

  Ring events_;
  Ring traces_;
  int capacity_;
  std::int64_t next_order_ = 0;
};

/// Filter by words (all must occur), kinds, rank and run; shows the events in order of arrival.
class EventLogFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit EventLogFilter(QObject* parent = nullptr);
  void setText(const QString& text);
  /// Empty: every kind.
  void setKinds(const QSet<QString>& kinds);
  void hideKinds(const QSet<QString>& kinds);
  /// -1: the supervisor; below -1: every rank.
  void setRank(int rank);
  /// Empty: every run.
  void setRun(const QString& runId);
  static constexpr int everyRank = -2;

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

 private:
  QStringList words_;
  QSet<QString> kinds_;
  QSet<QString> hidden_;
  int rank_ = everyRank;
  QString run_;
};

}  // namespace accrue::ui

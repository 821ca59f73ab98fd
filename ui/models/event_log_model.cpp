// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/event_log_model.h"

#include <algorithm>
#include <cmath>

#include "models/event_text.h"
#include "models/number_text.h"

namespace accrue::ui {

EventLogModel::EventLogModel(int capacity, QObject* parent)
    : QAbstractTableModel(parent), capacity_(std::max(capacity, 1)) {}

void EventLogModel::append(const QString& runId, const std::vector<accrue::RunEvent>& events) {
  std::vector<Row> fresh;
  // Beyond one capacity the oldest of the batch would leave at once: they are counted, not worded.
  const std::size_t room = static_cast<std::size_t>(capacity_);
  const std::size_t skip = events.size() > room ? events.size() - room : 0;
  dropped_ += static_cast<std::int64_t>(skip);
  for (std::size_t i = skip; i < events.size(); ++i) {
    const accrue::RunEvent& event = events[i];
    QString text = eventSentence(event);
    if (text.isEmpty()) continue;
    const std::string_view kind = accrue::kind_of(event.body);
    fresh.push_back({runId, QString::fromLatin1(kind.data(), static_cast<qsizetype>(kind.size())), std::move(text),
                     event.rank, eventUpdate(event), static_cast<double>(event.time_ns) * 1e-9, eventSeverity(event)});
  }
  if (fresh.empty()) return;
  const int count = static_cast<int>(fresh.size());
  dropOldest(std::max(rowCount() + count - capacity_, 0));
  beginInsertRows({}, rowCount(), rowCount() + count - 1);
  for (Row& row : fresh) ring_.push_back(std::move(row));
  endInsertRows();
}

void EventLogModel::dropOldest(int count) {
  if (count <= 0) return;
  beginRemoveRows({}, 0, count - 1);
  for (int i = 0; i < count; ++i) ring_.pop_front();
  endRemoveRows();
  dropped_ += count;
}

void EventLogModel::clear() {
  if (ring_.empty() && dropped_ == 0) return;
  beginResetModel();
  ring_.clear();
  dropped_ = 0;
  endResetModel();
}

QString EventLogModel::textOf(int row) const {
  if (row < 0 || row >= rowCount()) return {};
  QStringList cells;
  for (int column = 0; column < columns; ++column) cells << data(index(row, column)).toString();
  return cells.join(QLatin1Char('\t'));
}

int EventLogModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(ring_.size());
}

int EventLogModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant EventLogModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Row& row = ring_[static_cast<std::size_t>(index.row())];
  switch (role) {
    case kindRole:
      return row.kind;
    case rankRole:
      return static_cast<int>(row.rank);
    case updateRole:
      return static_cast<qlonglong>(row.update);
    case severityRole:
      return row.severity;
    case secondsRole:
      return row.seconds;
    case runIdRole:
      return row.runId;
    case Qt::ToolTipRole:
      return index.column() == textColumn ? row.text : QVariant();
    case Qt::TextAlignmentRole:
      return index.column() == timeColumn ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant();
    case Qt::DisplayRole:
      break;
    default:
      return {};
  }
  switch (index.column()) {
    case timeColumn: {
      const auto milliseconds = static_cast<qint64>(std::llround(row.seconds * 1e3));
      return QStringLiteral("%1:%2.%3")
          .arg(milliseconds / 60000)
          .arg(milliseconds / 1000 % 60, 2, 10, QLatin1Char('0'))
          .arg(milliseconds % 1000, 3, 10, QLatin1Char('0'));
    }
    case rankColumn:
      return row.rank < 0 ? tr("host") : tr("rank %1").arg(row.rank);
    case kindColumn:
      return eventKindText(row.kind);
    case textColumn:
      return row.text;
    default:
      return {};
  }
}

QVariant EventLogModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case timeColumn:
      return tr("Time");
    case rankColumn:
      return tr("From");
    case kindColumn:
      return tr("Kind");
    case textColumn:
      return tr("Event");
    default:
      return {};
  }
}

EventLogFilter::EventLogFilter(QObject* parent) : QSortFilterProxyModel(parent) {}

void EventLogFilter::setText(const QString& text) {
  const QStringList words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  if (words == words_) return;
  words_ = words;
  invalidateFilter();
}

void EventLogFilter::setKinds(const QSet<QString>& kinds) {
  if (kinds == kinds_) return;
  kinds_ = kinds;
  invalidateFilter();
}

void EventLogFilter::hideKinds(const QSet<QString>& kinds) {
  if (kinds == hidden_) return;
  hidden_ = kinds;
  invalidateFilter();
}

void EventLogFilter::setRank(int rank) {
  rank = std::max(rank, everyRank);
  if (rank == rank_) return;
  rank_ = rank;
  invalidateFilter();
}

void EventLogFilter::setRun(const QString& runId) {
  if (runId == run_) return;
  run_ = runId;
  invalidateFilter();
}

bool EventLogFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
  const QAbstractItemModel& source = *sourceModel();
  const QModelIndex index = source.index(row, EventLogModel::textColumn, parent);
  const QString kind = index.data(EventLogModel::kindRole).toString();
  if (hidden_.contains(kind) || (!kinds_.isEmpty() && !kinds_.contains(kind))) return false;
  if (rank_ != everyRank && index.data(EventLogModel::rankRole).toInt() != rank_) return false;
  if (!run_.isEmpty() && index.data(EventLogModel::runIdRole).toString() != run_) return false;
  if (words_.isEmpty()) return true;
  const QString text = index.data().toString();
  const QString kindText = source.index(row, EventLogModel::kindColumn, parent).data().toString();
  return std::all_of(words_.begin(), words_.end(), [&](const QString& word) {
    return text.contains(word, Qt::CaseInsensitive) || kindText.contains(word, Qt::CaseInsensitive);
  });
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "event_log_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "kit/number_text.h"
#include "series/event_text.h"

namespace accrue::ui {

EventLogModel::EventLogModel(int capacity, QObject* parent)
    : QAbstractTableModel(parent), capacity_(std::max(capacity, 1)) {}

namespace {

bool isTraceBody(const accrue::EventBody& body) {
  return std::holds_alternative<accrue::MicroSteps>(body) || std::holds_alternative<accrue::Sync>(body);
}

/// Kinds without a sentence, which have no row.
bool isSilent(const accrue::EventBody& body) {
  return std::holds_alternative<accrue::Heartbeat>(body) || std::holds_alternative<accrue::Gauge>(body) ||
         std::holds_alternative<accrue::Measured>(body) || std::holds_alternative<accrue::Operations>(body) ||
         std::holds_alternative<accrue::Holding>(body);
}

}  // namespace

bool EventLogModel::isTrace(const QString& kind) {
  return kind == QLatin1String("micro_steps") || kind == QLatin1String("sync");
}

void EventLogModel::append(const QString& runId, const std::vector<accrue::RunEvent>& events) {
  // Events beyond the ring's capacity would be displaced at once: they are counted, not put into words.
  std::array<std::int64_t, 2> surplus = {-capacity_, -capacity_};
  for (const accrue::RunEvent& event : events)
    if (!isSilent(event.body)) ++surplus[isTraceBody(event.body)];
  std::array<std::vector<Row>, 2> fresh;
  for (const accrue::RunEvent& event : events) {
    if (isSilent(event.body)) continue;
    const bool trace = isTraceBody(event.body);
    const std::int64_t order = next_order_++;
    if (surplus[trace]-- > 0) {
      ++ringOf(trace).dropped[runId];
      continue;
    }
    QString text = eventSentence(event);
    if (text.isEmpty()) continue;
    const std::string_view kind = accrue::kind_of(event.body);
    fresh[trace].push_back({runId, QString::fromLatin1(kind.data(), static_cast<qsizetype>(kind.size())),
                            std::move(text), event.rank, eventUpdate(event), static_cast<double>(event.time_ns) * 1e-9,
                            eventSeverity(event), order});
  }
  append(false, std::move(fresh[false]));
  append(true, std::move(fresh[true]));
}

void EventLogModel::append(bool traces, std::vector<Row> fresh) {
  if (fresh.empty()) return;
  Ring& ring = ringOf(traces);
  const int first = traces ? static_cast<int>(events_.rows.size()) : 0;
  const int count = static_cast<int>(fresh.size());
  const int surplus = static_cast<int>(ring.rows.size()) + count - capacity_;
  if (surplus > 0) {
    beginRemoveRows({}, first, first + surplus - 1);
    for (int i = 0; i < surplus; ++i) {
      ++ring.dropped[ring.rows.front().runId];
      ring.rows.pop_front();
    }
    endRemoveRows();
  }
  const int at = first + static_cast<int>(ring.rows.size());
  beginInsertRows({}, at, at + count - 1);
  for (Row& row : fresh) ring.rows.push_back(std::move(row));
  endInsertRows();
}

std::int64_t EventLogModel::dropped() const {
  std::int64_t sum = 0;
  for (const Ring* ring : {&events_, &traces_})
    for (const std::int64_t count : ring->dropped) sum += count;
  return sum;
}

std::int64_t EventLogModel::dropped(const QString& runId, bool traces) const {
  return (traces ? traces_ : events_).dropped.value(runId);
}

void EventLogModel::removeRun(const QString& runId) {
  const auto isOfRun = [&runId](const Row& row) { return row.runId == runId; };
  const bool any = std::any_of(events_.rows.begin(), events_.rows.end(), isOfRun) ||
                   std::any_of(traces_.rows.begin(), traces_.rows.end(), isOfRun);
  if (any) beginResetModel();
  for (Ring* ring : {&events_, &traces_}) {
    std::erase_if(ring->rows, isOfRun);
    ring->dropped.remove(runId);
  }
  if (any) endResetModel();
}

void EventLogModel::clear() {
  if (rowCount() == 0 && dropped() == 0) return;
  beginResetModel();
  events_ = {};
  traces_ = {};
  endResetModel();
}

const EventLogModel::Row& EventLogModel::row(int index) const {
  const auto at = static_cast<std::size_t>(index);
  return at < events_.rows.size() ? events_.rows[at] : traces_.rows[at - events_.rows.size()];
}

QString EventLogModel::textOf(int row) const {
  if (row < 0 || row >= rowCount()) return {};
  QStringList cells;
  for (int column = 0; column < columns; ++column) cells << data(index(row, column)).toString();
  return cells.join(QLatin1Char('\t'));
}

int EventLogModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(events_.rows.size() + traces_.rows.size());
}

int EventLogModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant EventLogModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Row& row = this->row(index.row());
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
    case orderRole:
      return static_cast<qlonglong>(row.order);
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

EventLogFilter::EventLogFilter(QObject* parent) : QSortFilterProxyModel(parent) {
  setSortRole(EventLogModel::orderRole);
  sort(0);
}

bool EventLogFilter::lessThan(const QModelIndex& left, const QModelIndex& right) const {
  return left.data(EventLogModel::orderRole).toLongLong() < right.data(EventLogModel::orderRole).toLongLong();
}

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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_table_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "accrue/run/fields/spec_fields.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "series/run_name.h"
#include "series/run_text.h"

namespace accrue::ui {

namespace {

bool stepsWereChanged(const RunSeries& run) {
  return run.plannedSteps() > 0 && run.steps() != run.plannedSteps();
}

QString knownNumber(std::int64_t number) {
  return number > 0 ? groupedNumber(number) : QString();
}

/// The planned N, and the current one if it was changed during the run.
QString stepsText(const RunSeries& run) {
  if (!stepsWereChanged(run)) return knownNumber(run.plannedSteps());
  return QStringLiteral("%1 \u2192 %2").arg(groupedNumber(run.plannedSteps()), groupedNumber(run.steps()));
}

const std::vector<int> everyColumn = {
    RunTableModel::stateColumn, RunTableModel::nameColumn, RunTableModel::stepsColumn, RunTableModel::microBatchColumn,
    RunTableModel::ranksColumn, RunTableModel::lossColumn, RunTableModel::rateColumn,  RunTableModel::updatesColumn};
/// Columns that differing keys replace: N, micro, ranks.
constexpr int firstSetUp = 2;
constexpr int lastSetUp = 4;

bool isSetUp(int column) {
  return column >= RunTableModel::stepsColumn && column <= RunTableModel::ranksColumn;
}

bool isNumber(int column) {
  return column >= RunTableModel::stepsColumn && column < RunTableModel::fixedColumns &&
         column != RunTableModel::exactColumn && column != RunTableModel::changesColumn;
}

Qt::CheckState checkState(Shown shown) {
  if (shown == Shown::yes) return Qt::Checked;
  return shown == Shown::no ? Qt::Unchecked : Qt::PartiallyChecked;
}

/// A key's value as written in the spec, without quotation marks.
QString valueOf(const RunSeries& run, std::string_view key) {
  const accrue::SpecField* field = accrue::find_field(key);
  if (field == nullptr || !run.spec()) return {};
  QString text = QString::fromStdString(accrue::format_value(field->get(*run.spec())));
  if (text.size() > 1 && text.startsWith(QLatin1Char('"')) && text.endsWith(QLatin1Char('"')))
    text = text.mid(1, text.size() - 2);
  return text;
}

QString bugName(const RunSeries& run) {
  return run.spec() && run.spec()->teaching.bug != accrue::Bug::none ? valueOf(run, "teaching.bug") : QString();
}

/// Words for unusual properties of a run.
QStringList marksOf(const RunSeries& run) {
  QStringList marks;
  if (!bugName(run).isEmpty()) marks << RunTableModel::tr("bug");
  if (stepsWereChanged(run)) marks << RunTableModel::tr("N changed");
  return marks;
}

/// The run's folder, a branch's origin, and the meaning of its marks.
QString originText(const RunSeries& run, const std::vector<RunSeries*>& known) {
  QString text = run.folder();
  if (run.name() != run.givenName()) text.prepend(run.name() + QLatin1Char('\n'));  // a narrow column may cut it
  if (!run.notes().text.isEmpty()) text += QLatin1Char('\n') + run.notes().text;
  if (const QString bug = bugName(run); !bug.isEmpty())
    text += QLatin1Char('\n') + RunTableModel::tr("trained with the bug %1 on purpose").arg(bug);
  if (stepsWereChanged(run))
    text += QLatin1Char('\n') + RunTableModel::tr("N was changed from %1 to %2 while it ran")
                                    .arg(groupedNumber(run.plannedSteps()), groupedNumber(run.steps()));
  if (run.branchedFrom().isEmpty()) return text;
  const auto parent = std::ranges::find(known, run.branchedFrom(), &RunSeries::id);
  const QString name = parent == known.end() ? run.branchedFrom() : (*parent)->name();
  const QString from = run.branchUpdate() > 0
                           ? RunTableModel::tr("from %1, update %2").arg(name, groupedNumber(run.branchUpdate()))
                           : RunTableModel::tr("from %1").arg(name);
  return text + QLatin1Char('\n') + from;
}

}  // namespace

RunTableModel::RunTableModel(QObject* parent) : QAbstractTableModel(parent), shown_(everyColumn) {
  naming_.setSingleShot(true);
  naming_.setInterval(0);
  connect(&naming_, &QTimer::timeout, this, &RunTableModel::nameRuns);
}

void RunTableModel::addRun(RunSeries* run) {
  if (run == nullptr || rowOf(run) >= 0) return;
  // Runs of the same second are in folder order, as after a restart.
  const auto start = [](const RunSeries& of) { return std::pair(of.startedAt(), of.folder()); };
  const auto place = std::ranges::find_if(runs_, [&](const RunSeries* other) { return start(*other) < start(*run); });
  const auto row = static_cast<int>(place - runs_.begin());
  beginInsertRows({}, row, row);
  runs_.insert(place, run);
  endInsertRows();
  connect(run, &RunSeries::changed, this, [this, run] {
    refreshOptional();
    refreshRow(run, 0, columnCount() - 1);
  });
  connect(run, &RunSeries::specChanged, this, &RunTableModel::refreshColumns);
  connect(run, &RunSeries::specChanged, &naming_, qOverload<>(&QTimer::start));
  connect(run, &RunSeries::givenNameChanged, &naming_, qOverload<>(&QTimer::start));
  connect(run, &RunSeries::stateChanged, this, [this, run] { refreshRow(run, 0, 0); });
  connect(run, &RunSeries::shownChanged, this, [this, run] { refreshRow(run, 0, columnCount() - 1); });
  connect(run, &RunSeries::leaving, this, [this, run] { forget(run); });
  refreshColumns();
  naming_.start();
}

void RunTableModel::removeRun(RunSeries* run) {
  if (rowOf(run) < 0) return;
  run->disconnect(this);
  run->disconnect(&naming_);
  run->setDistinctName({});
  forget(run);
}

/// The oldest first, so that a newer run takes no name from an older one.
void RunTableModel::nameRuns() {
  std::vector<NamedSpec> named;
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run)
    named.push_back({(*run)->givenName(), (*run)->spec() ? &*(*run)->spec() : nullptr, (*run)->distinctName()});
  const QStringList names = distinctNames(named);
  auto name = names.begin();
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run, ++name) {
    const QString distinct = *name == (*run)->givenName() ? QString() : *name;
    if (distinct == (*run)->distinctName()) continue;
    (*run)->setDistinctName(distinct);
    Q_EMIT called(*run);
  }
}

void RunTableModel::forget(RunSeries* run) {
  const auto found = std::ranges::find(runs_, run);
  if (found == runs_.end()) return;
  const int row = static_cast<int>(found - runs_.begin());
  beginRemoveRows({}, row, row);
  std::erase(compared_, *found);
  if (*found == baseline_) baseline_ = nullptr;
  runs_.erase(found);
  endRemoveRows();
  naming_.start();
  refreshColumns();
  refreshOptional();
}

int RunTableModel::sectionOf(Column column) const {
  const auto found = std::ranges::find(shown_, static_cast<int>(column));
  return found == shown_.end() ? -1 : static_cast<int>(found - shown_.begin());
}

QList<RunSeries*> RunTableModel::runs() const {
  return {runs_.begin(), runs_.end()};
}

RunSeries* RunTableModel::run(int row) const {
  return row >= 0 && row < rowCount() ? runs_[static_cast<std::size_t>(row)] : nullptr;
}

int RunTableModel::rowOf(const RunSeries* run) const {
  const auto found = std::find(runs_.begin(), runs_.end(), run);
  return found == runs_.end() ? -1 : static_cast<int>(found - runs_.begin());
}

void RunTableModel::setOnlyDiffering(bool on) {
  if (on == onlyDiffering_) return;
  onlyDiffering_ = on;
  // No reset, which would clear the selection and the focus.
  if (on) {
    beginRemoveColumns({}, firstSetUp, lastSetUp);
    std::erase_if(shown_, isSetUp);
    endRemoveColumns();
    refreshColumns();
    return;
  }
  showKeys({});
  beginInsertColumns({}, firstSetUp, lastSetUp);
  shown_.insert(shown_.begin() + firstSetUp, everyColumn.begin() + firstSetUp, everyColumn.begin() + lastSetUp + 1);
  endInsertColumns();
}

void RunTableModel::setCompared(const QList<RunSeries*>& runs) {
  std::vector<const RunSeries*> compared(runs.begin(), runs.end());
  std::erase_if(compared, [this](const RunSeries* run) { return rowOf(run) < 0; });
  if (compared == compared_) return;
  compared_ = std::move(compared);
  refreshColumns();
  refreshOptional();
}

QStringList RunTableModel::differingKeys() const {
  const std::vector<const RunSeries*> all(runs_.begin(), runs_.end());
  std::vector<const accrue::RunSpec*> specs;
  for (const RunSeries* run : compared_.size() >= 2 ? compared_ : all)
    if (run->spec()) specs.push_back(&*run->spec());
  QStringList keys;
  for (const std::string& key : ui::differingKeys(specs)) keys << QString::fromStdString(key);
  return keys;
}

void RunTableModel::setBaseline(RunSeries* run) {
  if (run == baseline_) return;
  baseline_ = run;
  refreshOptional();
  Q_EMIT baselineChanged();
  if (!runs_.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

QString RunTableModel::deltaText(const RunSeries& run) const {
  if (!baseline_) return {};
  if (&run == baseline_) return tr("baseline");
  const double difference = run.last().loss - baseline_->last().loss;
  if (!std::isfinite(difference)) return {};
  return (difference > 0 ? QStringLiteral("+") : QString()) + valueText(difference, 3);
}

QString RunTableModel::changesText(const RunSeries& run) const {
  if (!baseline_ || !baseline_->spec() || !run.spec() || &run == baseline_) return {};
  QStringList parts;
  for (const std::string& key : ui::differingKeys({&*baseline_->spec(), &*run.spec()})) {
    const accrue::SpecField* field = accrue::find_field(key);
    //: A changed key and its value
    parts << tr("%1 %2").arg(field ? fromView(field->label) : QString::fromStdString(key), valueOf(run, key));
  }
  return parts.isEmpty() ? tr("nothing") : parts.join(QStringLiteral(", "));
}

bool RunTableModel::anyHas(Column column) const {
  if (column == deltaColumn || column == changesColumn) return baseline_ != nullptr;
  const auto has = [column](const RunSeries* run) {
    return column == weightsColumn ? !run->weights().empty() : run->lamp().light() != ExactnessLamp::Light::off;
  };
  return compared_.empty() ? std::any_of(runs_.begin(), runs_.end(), has)
                           : std::any_of(compared_.begin(), compared_.end(), has);
}

void RunTableModel::refreshOptional() {
  for (const Column column : {deltaColumn, changesColumn, exactColumn, weightsColumn}) {
    const auto place = std::ranges::find_if(shown_, [column](int each) { return each >= column; });
    const bool shown = place != shown_.end() && *place == column;
    if (anyHas(column) == shown) continue;
    const int at = static_cast<int>(place - shown_.begin());
    if (shown) {
      beginRemoveColumns({}, at, at);
      shown_.erase(place);
      endRemoveColumns();
    } else {
      beginInsertColumns({}, at, at);
      shown_.insert(place, column);
      endInsertColumns();
    }
  }
}

void RunTableModel::refreshColumns() {
  if (!onlyDiffering_) return;
  std::vector<std::string> keys;
  const QStringList differing = differingKeys();
  for (const QString& key : differing) keys.push_back(key.toStdString());
  showKeys(std::move(keys));
}

void RunTableModel::showKeys(std::vector<std::string> keys) {
  if (keys == keys_) return;
  const int fixed = static_cast<int>(shown_.size());
  if (!keys_.empty()) {
    beginRemoveColumns({}, fixed, columnCount() - 1);
    keys_.clear();
    endRemoveColumns();
  }
  if (keys.empty()) return;
  beginInsertColumns({}, fixed, fixed + static_cast<int>(keys.size()) - 1);
  keys_ = std::move(keys);
  endInsertColumns();
}

void RunTableModel::refreshRow(RunSeries* run, int firstColumn, int lastColumn) {
  const int row = rowOf(run);
  if (row >= 0) Q_EMIT dataChanged(index(row, firstColumn), index(row, lastColumn));
}

int RunTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(runs_.size());
}

int RunTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(shown_.size() + keys_.size());
}

int RunTableModel::fixedAt(int section) const {
  return section >= 0 && section < static_cast<int>(shown_.size()) ? shown_[static_cast<std::size_t>(section)] : -1;
}

QVariant RunTableModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const RunSeries& run = *runs_[static_cast<std::size_t>(index.row())];
  const int fixed = fixedAt(index.column());
  switch (role) {
    case runIdRole:
      return run.id();
    case stateRole:
      return static_cast<int>(run.state());
    case colorIndexRole:
      return run.colorIndex();
    case iconNameRole:
      return run.outcome().outcome == QLatin1String("stopped") ? QStringLiteral("stop") : stateIconName(run.state());
    case sortRole:
      return sortValue(run, index.column());
    case Qt::TextAlignmentRole:
      return isNumeric(index.column()) ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant();
    case Qt::CheckStateRole:
      return fixed == nameColumn ? QVariant(checkState(run.shown())) : QVariant();
    case tagsRole: {
      if (fixed != nameColumn) return {};
      QStringList tags;
      for (const QString& tag : run.notes().tags) tags << QLatin1Char('#') + tag;
      return tags;
    }
    case Qt::EditRole:
      return fixed == nameColumn ? QVariant(run.givenName()) : QVariant();
    case marksRole:
      return fixed == nameColumn ? QVariant(marksOf(run)) : QVariant();
    case Qt::ToolTipRole:
      if (fixed == stateColumn && !run.stateDetail().isEmpty()) return run.stateDetail();
      if (fixed == exactColumn) return run.lamp().text();
      if (fixed == weightsColumn) return lastWeightsText(run, 64);
      if (fixed == changesColumn) return changesText(run);
      return fixed == nameColumn ? QVariant(originText(run, runs_)) : QVariant();
    case Qt::AccessibleTextRole: {
      const QString header = headerData(index.column(), Qt::Horizontal).toString();
      QStringList parts{data(index).toString()};
      if (fixed == nameColumn) parts += marksOf(run);
      //: A cell for assistive technology: its column, and what it holds
      return tr("%1: %2").arg(header, parts.join(QStringLiteral(", ")));
    }
    case Qt::DisplayRole:
      if (fixed >= 0) return fixedText(run, fixed);
      return valueOf(run, keys_[static_cast<std::size_t>(index.column()) - shown_.size()]);
    default:
      return {};
  }
}

Qt::ItemFlags RunTableModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  return fixedAt(index.column()) == nameColumn ? flags | Qt::ItemIsUserCheckable | Qt::ItemIsEditable : flags;
}

bool RunTableModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (fixedAt(index.column()) != nameColumn) return false;
  RunSeries* run = runs_[static_cast<std::size_t>(index.row())];
  if (role == Qt::EditRole) {
    Q_EMIT renamed(run, value.toString());
    return true;
  }
  if (role != Qt::CheckStateRole) return false;
  run->setShown(value.toInt() == Qt::Unchecked ? Shown::no : Shown::yes);
  return true;
}

bool RunTableModel::isNumeric(int section) const {
  if (const int fixed = fixedAt(section); fixed >= 0) return isNumber(fixed);
  const std::string& key = keys_[static_cast<std::size_t>(section) - shown_.size()];
  return std::ranges::all_of(runs_, [&](const RunSeries* run) {
    bool number = false;
    const QString text = valueOf(*run, key);
    text.toDouble(&number);
    return number || text.isEmpty();
  });
}

QVariant RunTableModel::fixedText(const RunSeries& run, int column) const {
  const LastValues& last = run.last();
  switch (column) {
    case stateColumn:
      return stateWord(&run, run.state());
    case nameColumn:
      return run.notes().starred ? QStringLiteral("\u2605 ") + run.name() : run.name();
    case stepsColumn:
      return stepsText(run);
    case microBatchColumn:
      return knownNumber(run.plannedMicroBatch());
    case ranksColumn:
      return knownNumber(run.ranks());
    case lossColumn:
      return last.update > 0 ? valueText(last.loss) : QString();
    case rateColumn:
      return std::isfinite(run.pace()) ? valueText(run.pace(), 3) : QString();
    case updatesColumn:
      return last.plannedUpdates > 0 ? tr("%1 / %2").arg(groupedNumber(last.update), groupedNumber(last.plannedUpdates))
                                     : groupedNumber(last.update);
    case deltaColumn:
      return deltaText(run);
    case changesColumn:
      return changesText(run);
    case exactColumn:
      return run.lamp().word();
    case weightsColumn:
      return lastWeightsText(run);
    default:
      return {};
  }
}

QVariant RunTableModel::sortValue(const RunSeries& run, int column) const {
  const int fixed = fixedAt(column);
  const auto number = [](double value) { return std::isfinite(value) ? value : std::numeric_limits<double>::max(); };
  switch (fixed) {
    case stateColumn:
      return static_cast<int>(run.state());
    case stepsColumn:
      return static_cast<qlonglong>(run.steps());
    case microBatchColumn:
      return static_cast<qlonglong>(run.plannedMicroBatch());
    case ranksColumn:
      return static_cast<qlonglong>(run.ranks());
    case lossColumn:
      return number(run.last().loss);
    case rateColumn:
      return number(run.pace());
    case updatesColumn:
      return static_cast<qlonglong>(run.last().update);
    case nameColumn:
      return run.name();
    case deltaColumn:
      return number(baseline_ ? run.last().loss - baseline_->last().loss : 0.0);
    case changesColumn:
      return changesText(run);
    case exactColumn:
      return static_cast<int>(run.lamp().light());
    case weightsColumn:
      return lastWeightsText(run).isEmpty() ? number(std::numeric_limits<double>::infinity())
                                            : run.weights().front()->value(run.weights().front()->size() - 1);
    default:
      break;
  }
  const QString text = valueOf(run, keys_[static_cast<std::size_t>(column) - shown_.size()]);
  bool isNumeric = false;
  const double value = text.toDouble(&isNumeric);
  return isNumeric ? QVariant(value) : QVariant(text);
}

QVariant RunTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const int fixed = fixedAt(section);
  if (fixed < 0) {
    const std::string& key = keys_[static_cast<std::size_t>(section) - shown_.size()];
    const accrue::SpecField* field = accrue::find_field(key);
    if (role == Qt::TextAlignmentRole && isNumeric(section)) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == fieldKeyRole) return QString::fromStdString(key);
    if (field == nullptr || (role != Qt::DisplayRole && role != Qt::ToolTipRole)) return {};
    const std::string_view text = role == Qt::DisplayRole ? field->label : field->help;
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
  }
  if (role == Qt::TextAlignmentRole && isNumeric(section)) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::DisplayRole) {
    switch (fixed) {
      case stateColumn:
        return tr("State");
      case nameColumn:
        return tr("Name");
      case stepsColumn:
        return tr("N");
      case microBatchColumn:
        return tr("Micro");
      case ranksColumn:
        return tr("Ranks");
      case lossColumn:
        return tr("Loss");
      case rateColumn:
        return tr("Samples/s");
      case updatesColumn:
        return tr("Done");
      case deltaColumn:
        return tr("\u0394 loss");
      case changesColumn:
        return tr("Changed");
      case exactColumn:
        return tr("Exact");
      case weightsColumn:
        return tr("Last weights");
      default:
        return {};
    }
  }
  if (role == Qt::ToolTipRole) {
    switch (fixed) {
      case stepsColumn:
        return tr("Accumulation steps: micro-steps per update");
      case microBatchColumn:
        return tr("Samples per rank and micro-step");
      case lossColumn:
        return tr("Loss of the last update");
      case rateColumn:
        return tr("Samples per second over all ranks: now, and the mean of a run that has ended; pauses do not count");
      case updatesColumn:
        return tr("Updates done / planned");
      case deltaColumn:
        return tr("Loss of the last update less that of the baseline");
      case changesColumn:
        return tr("The keys whose values are not those of the baseline, and their values");
      case exactColumn:
        return tr("Whether a window's gradient equals that of the same samples in one batch: the worst result so far");
      case weightsColumn:
        return tr("Weights after the newest update, where the run records them");
      default:
        return {};
    }
  }
  return {};
}

QString stateIconName(accrue::RunState state) {
  const std::string_view name = accrue::to_string(state);
  return QStringLiteral("state-") + QString::fromLatin1(name.data(), static_cast<qsizetype>(name.size()));
}

}  // namespace accrue::ui

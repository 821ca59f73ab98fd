// SPDX-License-Identifier: GPL-3.0-or-later
#include "findings_model.h"

#include <QCoreApplication>
#include <algorithm>
#include <utility>

#include "accrue/run/fields/spec_fields.h"
#include "kit/text.h"
#include "series/run_text.h"

namespace accrue::ui {

namespace {

QString placeOf(const Finding& finding) {
  const SpecField* field = find_field(finding.key);
  return field ? fromView(field->label) : QString::fromStdString(finding.key);
}

}  // namespace

FindingsModel::FindingsModel(QObject* parent) : QAbstractListModel(parent) {}

void FindingsModel::setFindings(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& left, const Finding& right) {
    return static_cast<int>(left.severity) > static_cast<int>(right.severity);
  });
  if (findings == findings_) return;
  const std::size_t common = std::min(findings.size(), findings_.size());
  if (findings_.size() > common) {
    beginRemoveRows({}, static_cast<int>(common), static_cast<int>(findings_.size()) - 1);
    findings_.resize(common);
    endRemoveRows();
  }
  for (std::size_t row = 0; row < common; ++row) {
    if (findings_[row] == findings[row]) continue;
    findings_[row] = findings[row];
    const QModelIndex changed_row = index(static_cast<int>(row));
    Q_EMIT dataChanged(changed_row, changed_row);
  }
  if (findings.size() > common) {
    beginInsertRows({}, static_cast<int>(common), static_cast<int>(findings.size()) - 1);
    findings_ = std::move(findings);
    endInsertRows();
  }
  Q_EMIT changed();
}

int FindingsModel::errors() const {
  return static_cast<int>(std::count_if(findings_.begin(), findings_.end(),
                                        [](const Finding& finding) { return finding.severity == Severity::error; }));
}

const Finding* FindingsModel::firstError() const {
  const auto error = std::find_if(findings_.begin(), findings_.end(),
                                  [](const Finding& finding) { return finding.severity == Severity::error; });
  return error == findings_.end() ? nullptr : &*error;
}

int FindingsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(findings_.size());
}

QVariant FindingsModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Finding& finding = findings_[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole:
    case Qt::AccessibleTextRole:
      return findingSentence(finding);
    case keyRole:
      return QString::fromStdString(finding.key);
    case severityRole:
      return static_cast<int>(finding.severity);
    case fixRole:
      return finding.fix_value ? QString::fromStdString(*finding.fix_value) : QVariant();
    default:
      return {};
  }
}

QString findingSentence(const Finding& finding) {
  if (finding.key.empty()) return findingText(finding);
  //: %1 is a field of the set-up form, %2 what is wrong with it
  return QCoreApplication::translate("FindingsModel", "%1: %2").arg(placeOf(finding), findingText(finding));
}

QString findingText(const Finding& finding) {
  const QString message = QString::fromStdString(finding.message);
  const SpecField* field = find_field(finding.key);
  const QString found = inSwitchWords(field, QString::fromStdString(finding.found));
  const QString expected = inSwitchWords(field, QString::fromStdString(finding.expected));
  if (found.isEmpty() && expected.isEmpty()) return message;
  if (found.isEmpty()) return QCoreApplication::translate("FindingsModel", "%1 (expected %2)").arg(message, expected);
  if (expected.isEmpty()) return QCoreApplication::translate("FindingsModel", "%1 (found %2)").arg(message, found);
  return QCoreApplication::translate("FindingsModel", "%1 (found %2, expected %3)").arg(message, found, expected);
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// The findings of the last preflight as rows: what is wrong, where, and what would fix it. Errors come first.
#pragma once

#include <QAbstractListModel>
#include <vector>

#include "accrue/run/findings.h"

namespace accrue::ui {

/// Thread: GUI.
class FindingsModel : public QAbstractListModel {
  Q_OBJECT

 public:
  enum Role { keyRole = Qt::UserRole + 1, severityRole, fixRole };

  explicit FindingsModel(QObject* parent = nullptr);

  /// Keeps the rows that stay the same, so that selection and focus survive an edit.
  void setFindings(std::vector<Finding> findings);
  const std::vector<Finding>& findings() const { return findings_; }
  int errors() const;
  /// The first error, or nullptr.
  const Finding* firstError() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

 Q_SIGNALS:
  void changed();

 private:
  std::vector<Finding> findings_;
};

/// "Must be at least 1 (found 0, expected 1 or more)": a finding without its place, for display beside the field.
QString findingText(const Finding& finding);
/// The same behind the name of its field: "File: does not exist".
QString findingSentence(const Finding& finding);

}  // namespace accrue::ui

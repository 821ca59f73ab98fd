// SPDX-License-Identifier: GPL-3.0-or-later
// Findings of the last preflight as rows: the problem, its place and its fix. Errors come first.
#pragma once

#include <QAbstractListModel>
#include <vector>

#include "accrue/run/fields/findings.h"

namespace accrue::ui {

/// Thread: GUI.
class FindingsModel : public QAbstractListModel {
  Q_OBJECT

 public:
  enum Role { keyRole = Qt::UserRole + 1, severityRole, fixRole };

  explicit FindingsModel(QObject* parent = nullptr);

  /// Keeps unchanged rows, so that selection and focus survive an edit.
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

/// Formats a finding without its place, for display beside the field: "Must be at least 1 (found 0, expected 1 or
/// more)".
QString findingText(const Finding& finding);
/// Does the same with the field's name in front: "File: does not exist".
QString findingSentence(const Finding& finding);

}  // namespace accrue::ui

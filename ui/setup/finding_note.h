// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec_fields.h"

class QLabel;
class QPushButton;

namespace accrue::ui {

/// Findings of one field, below it: the icon of the most severe, their sentences, and one button that fixes them.
class FindingNote : public QWidget {
  Q_OBJECT

 public:
  explicit FindingNote(QWidget* parent = nullptr);
  /// Hidden if there are none.
  void setFindings(const std::vector<Finding>& findings);
  QString text() const;

 Q_SIGNALS:
  void fixRequested(const QString& value);
  /// The field names a part of a plug-in library, and the user wants to choose one.
  void librariesWanted();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void updateIcon();
  QString fixText(const SpecField* field) const;

  QLabel* icon_;
  QLabel* text_;
  QPushButton* fix_;
  Severity severity_ = Severity::note;
  QString fix_value_;
};

}  // namespace accrue::ui

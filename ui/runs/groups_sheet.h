// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QComboBox;
class QLabel;
class QTreeWidget;

namespace accrue::ui {

class RunLibrary;

/// Finished runs in groups, with mean and spread of their losses, and whether two groups differ by more than noise.
class GroupsSheet : public QDialog {
  Q_OBJECT

 public:
  GroupsSheet(RunLibrary* library, QWidget* parent);
  /// Reads the runs again.
  void refresh();

 private:
  void showGroups();
  void showSentence();

  RunLibrary* library_;
  QComboBox* key_;
  QTreeWidget* table_;
  QLabel* said_;
};

}  // namespace accrue::ui

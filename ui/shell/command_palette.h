// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <vector>

class QAction;
class QLineEdit;
class QListWidget;

namespace accrue::ui {

class Actions;

/// Every command that can be given now and every panel, found by words of its name or help, and once something is
/// written the fields of the set-up, by any tool's name. Enter gives the chosen command or goes to the field. Not
/// modal.
class CommandPalette : public QDialog {
  Q_OBJECT

 public:
  explicit CommandPalette(const Actions& actions, QWidget* parent);
  /// Shows the commands that are enabled now.
  void choose();
  bool eventFilter(QObject* object, QEvent* event) override;

 Q_SIGNALS:
  void fieldChosen(const QString& key);

 private:
  struct Entry {
    QAction* action = nullptr;
    QString name;
    QString text;  ///< with its keys
  };
  void filter();
  void listFields();
  void giveCurrent();

  const Actions& actions_;
  std::vector<Entry> commands_;  ///< since it was shown
  QLineEdit* words_;
  QListWidget* list_;
};

}  // namespace accrue::ui

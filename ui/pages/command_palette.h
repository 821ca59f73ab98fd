// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QLineEdit;
class QListWidget;

namespace accrue::ui {

struct WindowActions;

/// Every command that can be given now, found by words of its name or help, and once something is written the fields of
/// the set-up, by any tool's name. Enter gives the chosen command or goes to the field. Not modal.
class CommandPalette : public QDialog {
  Q_OBJECT

 public:
  explicit CommandPalette(const WindowActions& actions, QWidget* parent);
  /// Shows the commands that are enabled now.
  void choose();
  bool eventFilter(QObject* object, QEvent* event) override;

 Q_SIGNALS:
  void fieldChosen(const QString& key);

 private:
  void filter();
  void listFields();
  void giveCurrent();

  const WindowActions& actions_;
  QLineEdit* words_;
  QListWidget* list_;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

class QWidget;

namespace accrue::ui {

/// Dialogs for files, folders and names. It is an interface, so that a test can answer.
/// All functions return an empty result if the user cancels.
class FileDialogs {
 public:
  virtual ~FileDialogs() = default;
  virtual QString exportFile(QWidget* parent, const QString& suggested, const QString& filter) = 0;
  virtual QString openFile(QWidget* parent, const QString& title, const QString& folder, const QString& filter) = 0;
  virtual QString chooseFolder(QWidget* parent, const QString& title, const QString& folder) = 0;
  virtual QString chooseItem(QWidget* parent, const QString& title, const QString& question,
                             const QStringList& items) = 0;
};

}  // namespace accrue::ui

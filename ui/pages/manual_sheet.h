// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QLineEdit;
class QListWidget;
class QTextBrowser;
class QUrl;

namespace accrue::ui {

/// The manual: its pages, a search over all of them, and the page that is read. Not modal.
class ManualSheet : public QDialog {
  Q_OBJECT

 public:
  explicit ManualSheet(QWidget* parent = nullptr);

 private:
  void filter();
  void showPage(int row);
  void follow(const QUrl& link);
  /// Marks all places of the text that is searched for, and goes to the next one.
  void markFound();
  void goToNext();

  QLineEdit* search_;
  QListWidget* pages_;
  QTextBrowser* page_;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QTextCursor>
#include <vector>

class QLineEdit;
class QListWidget;
class QPushButton;
class QTextBrowser;
class QUrl;

namespace accrue::ui {

/// The manual: its pages, a search over all of them, and the current page. Not modal.
class ManualSheet : public QDialog {
  Q_OBJECT

 public:
  explicit ManualSheet(QWidget* parent = nullptr);

 private:
  void filter();
  void showPage(int row);
  void follow(const QUrl& link);
  void goBack();
  QStringList words() const;
  /// Marks all matches of the searched words, and goes to the first.
  void markFound();
  void goToNext();

  QLineEdit* search_;
  QPushButton* back_;
  QListWidget* pages_;
  QTextBrowser* page_;
  QList<QTextCursor> found_;  ///< on the page, in order
  qsizetype at_ = -1;         ///< index of the current match
  std::vector<int> visited_;  ///< rows from which links led away
};

}  // namespace accrue::ui

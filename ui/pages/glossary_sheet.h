// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QLineEdit;
class QListWidget;
class QTextBrowser;

namespace accrue::ui {

/// The words that the program uses and what they mean. Not modal.
class GlossarySheet : public QDialog {
  Q_OBJECT

 public:
  explicit GlossarySheet(QWidget* parent = nullptr);
  /// Opens at the entry that this text speaks of, if there is one.
  void openAt(const QString& text);

 private:
  void filter(const QString& text);
  void showEntry(int row);

  QLineEdit* search_;
  QListWidget* words_;
  QTextBrowser* meaning_;
};

/// What the widget with the focus speaks of: the word that it gives as its whatsThis(), its label's words, or those of
/// the nearest parent that has any.
QString focusedWords(const QWidget* focus);

}  // namespace accrue::ui

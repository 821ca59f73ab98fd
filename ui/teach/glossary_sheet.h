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
  /// Opens at the entry that this text speaks of, if there is one, below the help (HTML) of what was asked about.
  void openAt(const QString& text, const QString& help);

 private:
  void filter(const QString& text);
  void showEntry(int row);
  /// As HTML.
  static QString entryText(int row);

  QLineEdit* search_;
  QListWidget* words_;
  QTextBrowser* meaning_;
};

/// The help of the set-up's field that has the focus, under its label, as HTML; empty elsewhere.
QString focusedHelp(const QWidget* focus);
/// What the widget with the focus speaks of: the word that it gives as its whatsThis(), its label's words, or those of
/// the nearest parent that has any.
QString focusedWords(const QWidget* focus);

}  // namespace accrue::ui

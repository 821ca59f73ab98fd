// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QLineEdit;
class QListWidget;
class QTextBrowser;

namespace accrue::ui {

/// Words of the program with their meanings. Not modal.
class GlossarySheet : public QDialog {
  Q_OBJECT

 public:
  explicit GlossarySheet(QWidget* parent = nullptr);
  /// Opens the entry for this text, if there is one, below the help (HTML) of the queried element.
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

/// Returns the help of the focused field of the set-up, under its label, as HTML; empty elsewhere.
QString focusedHelp(const QWidget* focus);
/// Returns the word of the focused widget: its whatsThis(), its label's words, or those of the nearest parent that has
/// any.
QString focusedWords(const QWidget* focus);

}  // namespace accrue::ui

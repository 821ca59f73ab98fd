// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QObject>

namespace accrue::ui {

class MessageBar;
class RunLibrary;
class RunNotesSheet;
class RunSeries;
class RunsPanel;
class RunTrash;
class Actions;

/// Commands on runs of the table: rename, notes, star, baseline, delete and undo.
class RunCommands : public QObject {
  Q_OBJECT

 public:
  RunCommands(const Actions& actions, RunsPanel* runs, RunLibrary* library, MessageBar* bar, QWidget* window);
  /// Enables what can be done with the runs that are selected now.
  void showEnabled();

 protected:
  /// Undo in the runs panel restores deleted runs; elsewhere it belongs to the set-up.
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  void showNotes();
  void toggleStars();
  void toggleBaseline();
  void showMoved(const QStringList& names);
  QList<RunSeries*> chosen() const;

  const Actions& actions_;
  RunsPanel* runs_;
  RunLibrary* library_;
  MessageBar* bar_;
  QWidget* window_;
  RunTrash* trash_;
  RunNotesSheet* notes_ = nullptr;
};

}  // namespace accrue::ui

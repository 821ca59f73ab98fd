// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QList>
#include <QObject>
#include <QPointer>
#include <QString>
#include <functional>

#include "kit/clock.h"

class QDialog;
class QDockWidget;
class QMainWindow;
class QSettings;
class QShortcut;

namespace accrue::ui {

class FieldForm;
class LessonPanel;
class LessonPlayer;
class MessageBar;
class PlotArea;
class RunSeries;
class RunsPanel;
class SpecFiles;
class Actions;

/// Parts of the window that a lesson rearranges; all outlive it.
struct LessonDeskParts {
  QMainWindow* window = nullptr;
  const Actions* actions = nullptr;
  SpecFiles* files = nullptr;
  MessageBar* messages = nullptr;
  PlotArea* plots = nullptr;
  FieldForm* form = nullptr;
  RunsPanel* runs = nullptr;
  QSettings* settings = nullptr;               ///< record of completed lessons
  std::function<bool()> is_start_shown;        ///< the start page replaces the plots
  std::function<void(bool start)> show_start;  ///< the start page, else the plots
};

/// The window while a lesson is open: its panels, fields and commands. Leaving it restores the previous state. Thread:
/// GUI.
class LessonDesk : public QObject {
  Q_OBJECT

 public:
  LessonDesk(LessonPlayer* player, LessonPanel* panel, const LessonDeskParts& parts);

  void openFirst();
  /// Opens a file, or a resource of the program.
  void openFile(const QString& path);
  /// Shows the open lesson, or the list if none is open; a second call shows the other of the two.
  void show();
  /// Restarts the open lesson, and offers to undo that.
  void reset();
  void leave();
  /// If the lesson's dock is open, the other one becomes a tab beside it: there is no room for the texts of both.
  void shareDockWith(QDockWidget* other);
  bool isOpen() const;
  /// Shows only the docks that the open lesson needs.
  void arrange();

 private:
  void takeResetBack();
  void connectActions();
  void keepDone();
  void showDone();
  /// Guards the keys of disabled commands, which would otherwise reach the focused widget and might change a field.
  void guardStepKeys();
  void enableActions();
  void begin();
  void restore();
  void restrictForm();
  /// Restores the central page from before the lesson.
  void restoreCentre();
  /// Shows the step's field.
  void showField();
  void showNotes();
  void say(const QString& text);
  void sayRefused(const QString& sentence);
  void withdrawRefusal();

  LessonPlayer* player_;
  LessonPanel* panel_;
  LessonDeskParts parts_;
  QByteArray layout_before_;
  Clock clock_before_ = Clock::update;
  bool start_before_ = false;                 ///< the start page was in front
  QList<QPointer<RunSeries>> runs_before_;    ///< were drawn
  QList<QPointer<RunSeries>> runs_at_reset_;  ///< were drawn
  QPointer<QDialog> notes_;
  QShortcut* no_next_ = nullptr;
  QShortcut* no_previous_ = nullptr;
};

}  // namespace accrue::ui

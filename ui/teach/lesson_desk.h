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
class WindowFiles;
class Actions;

/// The parts of the window that a lesson rearranges; all outlive it.
struct LessonDeskParts {
  QMainWindow* window = nullptr;
  const Actions* actions = nullptr;
  WindowFiles* files = nullptr;
  MessageBar* messages = nullptr;
  PlotArea* plots = nullptr;
  FieldForm* form = nullptr;
  RunsPanel* runs = nullptr;
  QSettings* settings = nullptr;               ///< which lessons were done
  std::function<bool()> is_start_shown;        ///< the start page stands in place of the plots
  std::function<void(bool start)> show_start;  ///< the start page, else the plots
};

/// The window while a lesson is open: the panels and fields that it needs, and its commands. Leaving it brings back
/// what was there before. Thread: GUI.
class LessonDesk : public QObject {
  Q_OBJECT

 public:
  LessonDesk(LessonPlayer* player, LessonPanel* panel, const LessonDeskParts& parts);

  void openFirst();
  /// A file, or a resource of the program.
  void openFile(const QString& path);
  /// Shows the open lesson, or the list where none is open; once more, the other of the two.
  void show();
  /// Begins the open lesson again, and offers to take that back.
  void reset();
  void leave();
  /// If the lesson's dock is open, the other one becomes a tab beside it: there is no room for the texts of both.
  void shareDockWith(QDockWidget* other);
  bool isOpen() const;
  /// The docks that the open lesson needs, and no others.
  void arrange();

 private:
  void takeResetBack();
  void connectActions();
  void keepDone();
  void showDone();
  /// A key whose command is greyed would reach what has the focus, and might change a field.
  void guardStepKeys();
  void enableActions();
  void begin();
  void restore();
  void restrictForm();
  /// What was in the centre before the lesson.
  void restoreCentre();
  /// The field that the step speaks of.
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

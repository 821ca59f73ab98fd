// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>
#include <QObject>

class QSettings;
class QToolBar;

namespace accrue::ui {

class Actions;
class CentrePage;
class Docks;
class LessonDesk;
class Theme;
class ViewSize;
enum class DockLayout;

/// The View menu: layouts, panes, the size of text, themes, full screen.
class ViewCommands : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    Docks* docks;
    CentrePage* centre;
    LessonDesk* lessons;
    QToolBar* run_bar;
    QSettings* settings;
    Theme* theme;
  };
  ViewCommands(const Actions& actions, const Parts& parts, QMainWindow* window);

  void resetLayout();
  void showLayout(DockLayout layout);
  /// Before the layout is saved, which is the user's own.
  void leavePresenter();

 private:
  void placeDocks();
  void connectThemes(const Actions& actions);

  Parts parts_;
  QMainWindow* window_;
  ViewSize* size_;
};

}  // namespace accrue::ui

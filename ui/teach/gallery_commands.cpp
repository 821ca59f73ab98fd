// SPDX-License-Identifier: GPL-3.0-or-later
#include "gallery_commands.h"

#include "bug_gallery_panel.h"
#include "kit/actions.h"
#include "lesson_desk.h"
#include "runs/runs_panel.h"
#include "series/run_series.h"
#include "widgets/dock_switch.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

void connectGalleryCommands(const Actions& actions, BugGalleryPanel* gallery, LessonDesk* lessons, RunsPanel* runs,
                            MessageBar* bar, QObject* parent) {
  QObject::connect(gallery, &BugGalleryPanel::chosen, parent, [gallery, lessons] {
    lessons->leave();  // which brings back a layout from before the gallery was opened
    bringToFront(gallery->dockWidget());
  });
  QObject::connect(gallery, &BugGalleryPanel::aboutToBegin, parent, [runs, bar] {
    bar->withdraw(QStringLiteral("draft"));  // as for any other document
    runs->showOnly({});
  });
  QObject::connect(gallery, &BugGalleryPanel::runsWanted, runs, &RunsPanel::showOnly);
  QObject::connect(actions[Command::bugGallery], &QAction::triggered, parent, [gallery, lessons] {
    lessons->shareDockWith(gallery->dockWidget());
    bringToFront(gallery->dockWidget());
    gallery->focusList();
  });
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "gallery_commands.h"

#include "bug_gallery_panel.h"
#include "kit/actions.h"
#include "lesson_desk.h"
#include "runs/runs_panel.h"
#include "widgets/dock_switch.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

GalleryCommands::GalleryCommands(const Actions& actions, BugGalleryPanel* gallery, LessonDesk* lessons, RunsPanel* runs,
                                 MessageBar* bar, QObject* parent)
    : QObject(parent) {
  connect(gallery, &BugGalleryPanel::chosen, this, [gallery, lessons] {
    lessons->leave();  // which brings back a layout from before the gallery was opened
    bringToFront(gallery->dockWidget());
  });
  connect(gallery, &BugGalleryPanel::aboutToBegin, this, [runs, bar] {
    bar->withdraw(QStringLiteral("draft"));  // as for any other document
    runs->showOnly({});
  });
  connect(gallery, &BugGalleryPanel::runsWanted, runs, &RunsPanel::showOnly);
  connect(actions[Command::bugGallery], &QAction::triggered, this, [gallery, lessons] {
    lessons->shareDockWith(gallery->dockWidget());
    bringToFront(gallery->dockWidget());
    gallery->focusList();
  });
}

}  // namespace accrue::ui

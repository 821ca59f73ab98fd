// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class BugGalleryPanel;
class LessonDesk;
class MessageBar;
class RunsPanel;

/// Opens the bug gallery, and makes room for the runs that it begins and shows. The gallery is in its dock.
void connectGalleryCommands(const Actions& actions, BugGalleryPanel* gallery, LessonDesk* lessons, RunsPanel* runs,
                            MessageBar* bar, QObject* parent);

}  // namespace accrue::ui

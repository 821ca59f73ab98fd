// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class BundleExchange;
class Exchange;
class FileDialogs;
class SpecFiles;

/// Imports a file, chosen or dropped on the window: a bundle, or the curves of another tool.
void connectImportCommands(const Actions& actions, SpecFiles* files, Exchange* exchange, BundleExchange* bundles,
                           FileDialogs* dialogs, QWidget* window);

}  // namespace accrue::ui

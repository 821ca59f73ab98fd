// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

namespace accrue::ui {

class Actions;

/// Every key and what it does, by where it works. Not modal.
class ShortcutSheet : public QDialog {
  Q_OBJECT

 public:
  explicit ShortcutSheet(const Actions& actions, QWidget* parent = nullptr);
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QWidget;

namespace accrue::ui {

enum class UnsavedAnswer { save, discard, cancel };

/// Questions of SpecFiles. Empty: cancelled.
class SpecDialogs {
 public:
  virtual ~SpecDialogs() = default;
  virtual QString openSpec(QWidget* parent, const QString& folder) = 0;
  virtual QString openRunFolder(QWidget* parent, const QString& folder) = 0;
  virtual QString saveSpec(QWidget* parent, const QString& suggested) = 0;
  virtual UnsavedAnswer askUnsaved(QWidget* parent, const QString& name) = 0;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "bundle_dialog.h"
#include "kit/file_dialogs.h"
#include "plots/figure_size.h"

namespace accrue::ui {

/// What is asked before something leaves the studio. Nothing = cancelled.
class ExchangeDialogs : public FileDialogs {
 public:
  /// Of the figure to export, at which `check` finds nothing.
  virtual std::optional<FigureSize> askFigure(QWidget* parent, const FigureSize& size, const FigureCheck& check) = 0;
  /// What a bundle is to carry.
  virtual std::optional<BundleChoice> askBundle(QWidget* parent, const QList<BundleRow>& rows) = 0;
};

}  // namespace accrue::ui

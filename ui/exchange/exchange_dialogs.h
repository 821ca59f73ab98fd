// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "bundle_dialog.h"
#include "kit/file_dialogs.h"
#include "plots/figure_size.h"

namespace accrue::ui {

/// Questions before an export. Empty: cancelled.
class ExchangeDialogs : public FileDialogs {
 public:
  /// Size of the figure to export; `check` must accept it.
  virtual std::optional<FigureSize> askFigure(QWidget* parent, const FigureSize& size, const FigureCheck& check) = 0;
  /// Contents of a bundle.
  virtual std::optional<BundleChoice> askBundle(QWidget* parent, const QList<BundleRow>& rows) = 0;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

class QWidget;

namespace accrue::ui {

class SeedDialogs {
 public:
  virtual ~SeedDialogs() = default;
  /// Asks for the number of seeds; empty: cancelled.
  virtual std::optional<int> askSeeds(QWidget* parent) = 0;
};

}  // namespace accrue::ui

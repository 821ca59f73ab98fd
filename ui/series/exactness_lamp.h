// SPDX-License-Identifier: GPL-3.0-or-later
// The lamp beside a run: the result of its checks against the one-batch gradient.
#pragma once

#include <QString>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/run_event.h"
#include "chunked.h"

namespace accrue::ui {

/// Thread: GUI.
class ExactnessLamp {
 public:
  /// close also covers costs that change no number (needless reductions, the schedule's pace).
  enum class Light { off, exact, close, different };

  void take(const accrue::ExactnessCheck& check);
  /// The worst check of a run whose checks are not read (yet), as its summary has it.
  void recall(const std::optional<accrue::ExactnessCheck>& worst) { recalled_ = worst; }
  /// Drops the checks after an update: a resumed run reports them once more.
  void rewind(std::int64_t update);

  /// Of one check.
  static Light lightOf(const accrue::ExactnessCheck& check);
  /// The worst so far.
  Light light() const;
  /// "✓ exact", "~ close", "✗ not exact"; empty before the first check.
  QString word() const;
  /// In sentences: how many windows were checked, the worst of them with its figures, and why.
  QString text() const;
  std::size_t checks() const { return checks_.size(); }
  /// So many of the checks that were the worst when they came are kept with their figures.
  static constexpr std::size_t mostKept = 256;

 private:
  struct Checked {
    std::int64_t update;
    Light light;
  };
  const accrue::ExactnessCheck* worst() const;
  std::int64_t& count(Light light) { return counts_[static_cast<std::size_t>(light)]; }

  Chunked<Checked> checks_;                     ///< by rising update
  std::array<std::int64_t, 4> counts_{};        ///< of them, by light
  std::vector<accrue::ExactnessCheck> worsts_;  ///< each worse than all before it
  std::optional<accrue::ExactnessCheck> recalled_;
};

}  // namespace accrue::ui

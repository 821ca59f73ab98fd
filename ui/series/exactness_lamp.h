// SPDX-License-Identifier: GPL-3.0-or-later
// The lamp beside a run: the result of its checks against the one-batch gradient.
#pragma once

#include <QString>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "points/chunked.h"

namespace accrue::ui {

/// Thread: GUI.
class ExactnessLamp {
 public:
  /// close also covers costs that change no number (needless reductions, the schedule's pace).
  enum class Light { off, exact, close, different };

  void take(const accrue::ExactnessCheck& check);
  /// Sets the worst check from a run's summary, while its checks are not read.
  void recall(const std::optional<accrue::ExactnessCheck>& worst) { recalled_ = worst; }
  /// Drops the checks after an update, because a resumed run reports them again.
  void rewind(std::int64_t update);

  /// Light of one check.
  static Light lightOf(const accrue::ExactnessCheck& check);
  /// Worst light so far.
  Light light() const;
  /// "✓ exact", "~ close", "✗ not exact"; empty before the first check.
  QString word() const;
  /// Describes in sentences how many windows were checked, and the worst with its figures and reason.
  QString text() const;
  std::size_t checks() const { return checks_.size(); }
  /// Maximum number of checks that are kept with their figures; each was the worst when it came.
  static constexpr std::size_t mostKept = 256;

 private:
  struct Checked {
    std::int64_t update;
    Light light;
  };
  const accrue::ExactnessCheck* worst() const;
  std::int64_t& count(Light light) { return counts_[static_cast<std::size_t>(light)]; }

  Chunked<Checked> checks_;                     ///< by rising update
  std::array<std::int64_t, 4> counts_{};        ///< number of checks, by light
  std::vector<accrue::ExactnessCheck> worsts_;  ///< each worse than all before it
  std::optional<accrue::ExactnessCheck> recalled_;
};

}  // namespace accrue::ui

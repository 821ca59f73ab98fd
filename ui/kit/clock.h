// SPDX-License-Identifier: GPL-3.0-or-later
// Clocks of an X axis. With accumulation the clock decides whether two runs can be compared at all, so every recorded
// point has its position on each of them.
#pragma once

#include <QString>
#include <array>
#include <cstddef>

namespace accrue::ui {

enum class Clock { microStep, update, sample, token, epoch, seconds, computeSeconds };

inline constexpr std::size_t clockCount = 7;
inline constexpr std::array<Clock, clockCount> allClocks = {
    Clock::microStep, Clock::update, Clock::sample, Clock::token, Clock::epoch, Clock::seconds, Clock::computeSeconds};

/// A position on all clocks; indexed by Clock.
struct ClockPoint {
  std::array<double, clockCount> at{};
  double& operator[](Clock clock) { return at[static_cast<std::size_t>(clock)]; }
  double operator[](Clock clock) const { return at[static_cast<std::size_t>(clock)]; }
  bool operator==(const ClockPoint&) const = default;
};

/// Translated, for menus and combo boxes: "Micro-step", "Update", "Sample", "Token", "Epoch", "Wall time", "Compute
/// time".
QString clockName(Clock clock);
/// Unit of a clock in a sentence: "update", "s".
QString clockUnit(Clock clock);
/// Axis title: "Updates", "Samples over all ranks", "Wall time (s)".
QString clockAxisTitle(Clock clock);
/// One sentence of help.
QString clockHelp(Clock clock);
/// Untranslated key for settings: "micro_step", "update", "sample", "token", "epoch", "seconds", "compute_seconds".
QString clockKey(Clock clock);
/// Clock of a key; update if the key is unknown.
Clock clockFromKey(const QString& key);
/// Whether the clock counts, so that its values at recorded points are integers.
bool clockCounts(Clock clock);

}  // namespace accrue::ui

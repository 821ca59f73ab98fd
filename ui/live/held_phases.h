// SPDX-License-Identifier: GPL-3.0-or-later
// Reports of the held ranks, phase by phase of the newest micro-step: the inspector's data.
#pragma once

#include <QString>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "accrue/run/events/run_event.h"

namespace accrue::ui {

/// Phases that a rank can be stepped through, in order.
inline constexpr std::array allPhases = {StepPhase::forward, StepPhase::scale,    StepPhase::backward,
                                         StepPhase::reduce,  StepPhase::unscale,  StepPhase::clip,
                                         StepPhase::step,    StepPhase::schedule, StepPhase::zero};

/// Sentence about a phase.
QString phaseHelp(StepPhase phase);

/// A value that takes events in batches.
class HeldPhases {
 public:
  struct OfRank {
    std::optional<Held> last;
    std::map<StepPhase, Held> phases;  ///< of that micro-step: the phases after which the rank was held
    std::vector<double> before;        ///< weights at the micro-step's first hold
  };

  void take(const std::vector<RunEvent>& events);
  const std::map<std::int64_t, OfRank>& ranks() const { return ranks_; }
  bool empty() const { return ranks_.empty(); }
  /// Newest report of the first rank; null before any.
  const Held* newest() const;
  /// Result of the phase on that rank: "loss 1.24", "× 0.25", "0.9 → 0.88"; empty if it was not held.
  QString valueText(std::int64_t rank, StepPhase phase) const;

 private:
  std::map<std::int64_t, OfRank> ranks_;
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// What the ranks reported where they stood, phase by phase of the newest micro-step: the inspector's data.
#pragma once

#include <QString>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "accrue/run/run_event.h"

namespace accrue::ui {

/// The phases that a rank can be stepped through, in their order.
inline constexpr std::array allPhases = {StepPhase::forward, StepPhase::scale,    StepPhase::backward,
                                         StepPhase::reduce,  StepPhase::unscale,  StepPhase::clip,
                                         StepPhase::step,    StepPhase::schedule, StepPhase::zero};

/// What a phase does, in a sentence.
QString phaseHelp(StepPhase phase);

/// Fed in batches; a value.
class HeldPhases {
 public:
  struct OfRank {
    std::optional<Held> last;
    std::map<StepPhase, Held> phases;  ///< of that micro-step, those that were held after
    std::vector<double> before;        ///< weights where the micro-step was first held
  };

  void take(const std::vector<RunEvent>& events);
  const std::map<std::int64_t, OfRank>& ranks() const { return ranks_; }
  bool empty() const { return ranks_.empty(); }
  /// The newest report of the first rank; null before any.
  const Held* newest() const;
  /// What the phase came to on that rank: "loss 1.24", "× 0.25", "0.9 → 0.88"; empty where it was not held.
  QString valueText(std::int64_t rank, StepPhase phase) const;

 private:
  std::map<std::int64_t, OfRank> ranks_;
};

}  // namespace accrue::ui

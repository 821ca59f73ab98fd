// SPDX-License-Identifier: GPL-3.0-or-later
// Measured quantities of a run: one series per metric.
#pragma once

#include <array>

namespace accrue::ui {

enum class Metric {
  microLoss,
  updateLoss,
  evaluationLoss,
  learningRate,
  gradNorm,
  samplesPerSecond,
  tokensPerSecond,
  lossScale,
  updateNorm,
  parameterNorm,
  gradientZeros,
};

inline constexpr std::array allMetrics = {Metric::microLoss,       Metric::updateLoss,   Metric::evaluationLoss,
                                          Metric::learningRate,    Metric::gradNorm,     Metric::samplesPerSecond,
                                          Metric::tokensPerSecond, Metric::lossScale,    Metric::updateNorm,
                                          Metric::parameterNorm,   Metric::gradientZeros};

/// Name in files: "loss", "grad_norm".
constexpr const char* metricKey(Metric metric) {
  switch (metric) {
    case Metric::microLoss:
      return "micro_loss";
    case Metric::updateLoss:
      return "loss";
    case Metric::evaluationLoss:
      return "evaluation_loss";
    case Metric::learningRate:
      return "learning_rate";
    case Metric::gradNorm:
      return "grad_norm";
    case Metric::samplesPerSecond:
      return "samples_per_second";
    case Metric::tokensPerSecond:
      return "tokens_per_second";
    case Metric::lossScale:
      return "loss_scale";
    case Metric::updateNorm:
      return "update_norm";
    case Metric::parameterNorm:
      return "parameter_norm";
    case Metric::gradientZeros:
      return "gradient_zeros";
  }
  return "";
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/tone.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace accrue::ui {

namespace {

constexpr double volume = 1.0 / 3.0;
constexpr double swell = 0.01;  // seconds, at either end

}  // namespace

double toneHz(double loss, double least, double most) {
  if (!std::isfinite(loss)) return brokenTone;
  const double part = most > least ? std::clamp((loss - least) / (most - least), 0.0, 1.0) : 0.5;
  return lowestTone * std::pow(highestTone / lowestTone, part);
}

std::vector<std::int16_t> toneSamples(double hz, double seconds) {
  std::vector<std::int16_t> samples(static_cast<std::size_t>(std::lround(seconds * toneRate)));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double at = static_cast<double>(i) / toneRate;
    const double edge = std::min(at, seconds - at) / swell;
    const double wave = std::sin(2.0 * std::numbers::pi * hz * at) * std::clamp(edge, 0.0, 1.0);
    samples[i] = static_cast<std::int16_t>(std::lround(volume * wave * std::numeric_limits<std::int16_t>::max()));
  }
  return samples;
}

}  // namespace accrue::ui

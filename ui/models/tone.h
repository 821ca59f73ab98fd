// SPDX-License-Identifier: GPL-3.0-or-later
// A loss as a tone. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace accrue::ui {

constexpr int toneRate = 44100;        ///< samples a second, one channel
constexpr double lowestTone = 220.0;   ///< Hz: the least loss of a run
constexpr double highestTone = 880.0;  ///< two octaves above: the largest
constexpr double brokenTone = 110.0;   ///< an octave below all others: a loss that is not finite

/// The pitch of a loss between the least and the most that the run has had: equal differences of the loss are equal
/// intervals, and a loss outside of them sounds as the nearer. A run whose losses are all equal sounds in the middle.
double toneHz(double loss, double least, double most);
/// A sine of this pitch, at a third of full volume, that swells and fades so that it does not click.
std::vector<std::int16_t> toneSamples(double hz, double seconds);

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// Where tones go: the system's default audio device, whose volume the system sets.
#pragma once

#include <QString>
#include <cstdint>
#include <memory>
#include <vector>

namespace accrue::ui {

/// One channel of 16 bits at toneRate. Thread: any one at a time.
class AudioOutput {
 public:
  virtual ~AudioOutput() = default;
  /// Plays these samples and waits until the device has taken them; opens it first where it is closed. Empty, or what
  /// is in the way, as a sentence with what to do.
  virtual QString play(const std::vector<std::int16_t>& samples) = 0;
  /// Leaves the device to others until the next tone.
  virtual void close() = 0;
};

/// Through ALSA, which hands on to PulseAudio and PipeWire. Its library is opened with the first tone, so that a studio
/// that plays none neither needs nor loads it.
std::shared_ptr<AudioOutput> systemAudio();

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/audio_output.h"

#include <QLibrary>
#include <cerrno>
#include <chrono>
#include <thread>

#include "models/tone.h"
#include "models/tr.h"

namespace accrue::ui {

namespace {

// What is used of <alsa/asoundlib.h>, whose numbers are part of the library's binary interface.
constexpr int playback = 0;            // SND_PCM_STREAM_PLAYBACK
constexpr int littleEndian16 = 2;      // SND_PCM_FORMAT_S16_LE
constexpr int interleaved = 3;         // SND_PCM_ACCESS_RW_INTERLEAVED
constexpr int nonBlocking = 1;         // SND_PCM_NONBLOCK
constexpr int draining = 5;            // SND_PCM_STATE_DRAINING
constexpr unsigned latency = 100'000;  // microseconds
// A device that does not go on must not hold up the window's end.
constexpr int mostRecoveries = 3;
constexpr auto patience = std::chrono::milliseconds(500);  // beyond the tone's own length
constexpr auto pollEvery = std::chrono::milliseconds(5);
using Device = void;
using Open = int (*)(Device** device, const char* name, int stream, int mode);
using SetParams = int (*)(Device* device, int format, int access, unsigned channels, unsigned rate, int resample,
                          unsigned latency);
using Write = long (*)(Device* device, const void* samples, unsigned long frames);
using Wait = int (*)(Device* device, int milliseconds);
using State = int (*)(Device* device);
using Recover = int (*)(Device* device, int error, int silent);
using Drain = int (*)(Device* device);
using Prepare = int (*)(Device* device);
using Close = int (*)(Device* device);
using ErrorText = const char* (*)(int error);
using ErrorHandler = void (*)(const char* file, int line, const char* function, int error, const char* format, ...);
using SetErrorHandler = int (*)(ErrorHandler handler);

/// The library prints to the terminal what play() says in the window.
void sayNothing(const char*, int, const char*, int, const char*, ...) {}

class AlsaOutput final : public AudioOutput {
 public:
  ~AlsaOutput() override { AlsaOutput::close(); }

  void close() override {
    if (device_) close_(device_);
    device_ = nullptr;
  }

  QString play(const std::vector<std::int16_t>& samples) override {
    if (const QString problem = device_ ? QString() : open(); !problem.isEmpty()) return problem;
    // The device was drained after the tone before.
    prepare_(device_);
    const std::chrono::milliseconds length(samples.size() * 1000 / toneRate);
    const auto deadline = std::chrono::steady_clock::now() + length + patience;
    int recoveries = 0;
    for (std::size_t at = 0; at < samples.size();) {
      const long written = write_(device_, samples.data() + at, samples.size() - at);
      if (written > 0) {
        at += static_cast<std::size_t>(written);
        continue;
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (written == 0 || left.count() <= 0) return lost(-ETIMEDOUT);
      const int error = static_cast<int>(written);
      if (error == -EAGAIN)
        wait_(device_, static_cast<int>(left.count()));
      else if (++recoveries > mostRecoveries || recover_(device_, error, 1) < 0)
        return lost(error);
    }
    drain_(device_);
    while (state_(device_) == draining && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(pollEvery);
    return {};
  }

 private:
  QString open() {
    if (!library_.load() || !resolve())
      return tr("No tone can be played: %1. Install libasound2.").arg(library_.errorString());
    int error = open_(&device_, "default", playback, nonBlocking);
    if (error < 0) {
      device_ = nullptr;
      return tr("No tone can be played, because no audio device can be opened: %1. Connect one, or choose one in the "
                "system's settings.")
          .arg(QString::fromUtf8(error_text_(error)));
    }
    error = set_params_(device_, littleEndian16, interleaved, 1, toneRate, 1, latency);
    return error < 0 ? lost(error) : QString();
  }

  bool resolve() {
    open_ = reinterpret_cast<Open>(library_.resolve("snd_pcm_open"));
    set_params_ = reinterpret_cast<SetParams>(library_.resolve("snd_pcm_set_params"));
    write_ = reinterpret_cast<Write>(library_.resolve("snd_pcm_writei"));
    wait_ = reinterpret_cast<Wait>(library_.resolve("snd_pcm_wait"));
    state_ = reinterpret_cast<State>(library_.resolve("snd_pcm_state"));
    recover_ = reinterpret_cast<Recover>(library_.resolve("snd_pcm_recover"));
    drain_ = reinterpret_cast<Drain>(library_.resolve("snd_pcm_drain"));
    prepare_ = reinterpret_cast<Prepare>(library_.resolve("snd_pcm_prepare"));
    close_ = reinterpret_cast<Close>(library_.resolve("snd_pcm_close"));
    error_text_ = reinterpret_cast<ErrorText>(library_.resolve("snd_strerror"));
    const auto set_handler = reinterpret_cast<SetErrorHandler>(library_.resolve("snd_lib_error_set_handler"));
    if (set_handler) set_handler(sayNothing);
    return open_ && set_params_ && write_ && wait_ && state_ && recover_ && drain_ && prepare_ && close_ && error_text_;
  }

  QString lost(int error) {
    close();
    return tr("The audio device takes no tone: %1. Switch the tone on again when it does.")
        .arg(QString::fromUtf8(error_text_(error)));
  }

  QLibrary library_{QStringLiteral("libasound.so.2")};
  Device* device_ = nullptr;
  Open open_ = nullptr;
  SetParams set_params_ = nullptr;
  Write write_ = nullptr;
  Wait wait_ = nullptr;
  State state_ = nullptr;
  Recover recover_ = nullptr;
  Drain drain_ = nullptr;
  Prepare prepare_ = nullptr;
  Close close_ = nullptr;
  ErrorText error_text_ = nullptr;
};

}  // namespace

std::shared_ptr<AudioOutput> systemAudio() {
  return std::make_shared<AlsaOutput>();
}

}  // namespace accrue::ui

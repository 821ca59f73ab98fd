// SPDX-License-Identifier: GPL-3.0-or-later
#include "loss_tone.h"

#include <utility>

#include "models/no_value.h"
#include "models/run_control.h"
#include "models/tone.h"

namespace accrue::ui {

LossTone::LossTone(RunControl* control, std::shared_ptr<AudioOutput> output, QObject* parent)
    : QObject(parent), control_(control), output_(std::move(output)) {
  connect(control_, &RunControl::changed, this, &LossTone::tell);
}

void LossTone::setOn(bool on) {
  const bool was = std::exchange(on_, on);
  run_ = nullptr;
  if (on_)
    tell();
  else if (was && !sounds_)
    closeOutput();
}

/// As a tone does: none begins meanwhile.
void LossTone::closeOutput() {
  sounds_ = true;
  jobs_.run([output = output_] { return output->close(), true; },
            [this](bool) {
              sounds_ = false;
              tell();
            });
}

void LossTone::tell() {
  const RunSeries* run = control_->run();
  if (!on_ || sounds_ || !run || !run->isLive()) return;
  const SeriesStore& losses = run->series(Metric::updateLoss);
  if (losses.empty() || (run == run_ && run->last().update == update_)) return;
  run_ = run;
  update_ = run->last().update;
  const double loss = losses.value(losses.size() - 1);
  if (!isMeasured(loss)) return;
  sounds_ = true;
  const MinMax range = losses.range(0, losses.size());
  const double hz = toneHz(loss, range.low, range.high);
  jobs_.run([output = output_, hz] { return output->play(toneSamples(hz, seconds)); },
            [this](const QString& problem) {
              sounds_ = false;
              if (problem.isEmpty()) return on_ ? tell() : closeOutput();
              if (!std::exchange(on_, false)) return;
              Q_EMIT failed(problem);
            });
}

}  // namespace accrue::ui

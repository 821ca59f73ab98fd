// SPDX-License-Identifier: GPL-3.0-or-later
#include "clock.h"

#include "text.h"

namespace accrue::ui {

namespace {

struct ClockText {
  const char* key;
  const char* name;
  const char* unit;
  const char* title;
  const char* help;
};

constexpr std::array<ClockText, clockCount> texts = {{
    {"micro_step", QT_TRANSLATE_NOOP("Clock", "Micro-step"), QT_TRANSLATE_NOOP("Clock", "micro-step"),
     QT_TRANSLATE_NOOP("Clock", "Micro-steps"),
     QT_TRANSLATE_NOOP("Clock", "Forward and backward passes since the run began, counted on one rank.")},
    {"update", QT_TRANSLATE_NOOP("Clock", "Update"), QT_TRANSLATE_NOOP("Clock", "update"),
     QT_TRANSLATE_NOOP("Clock", "Updates"),
     QT_TRANSLATE_NOOP("Clock", "Optimizer steps: one per accumulation window.")},
    {"sample", QT_TRANSLATE_NOOP("Clock", "Sample"), QT_TRANSLATE_NOOP("Clock", "samples"),
     QT_TRANSLATE_NOOP("Clock", "Samples, all ranks"),
     QT_TRANSLATE_NOOP(
         "Clock",
         "Samples seen by all ranks together. Runs with different accumulation are comparable on this clock.")},
    {"token", QT_TRANSLATE_NOOP("Clock", "Token"), QT_TRANSLATE_NOOP("Clock", "tokens"),
     QT_TRANSLATE_NOOP("Clock", "Tokens, all ranks"),
     QT_TRANSLATE_NOOP("Clock", "Items that the loss summed over, on all ranks: tokens for a text model.")},
    {"epoch", QT_TRANSLATE_NOOP("Clock", "Epoch"), QT_TRANSLATE_NOOP("Clock", "epochs"),
     QT_TRANSLATE_NOOP("Clock", "Epochs"), QT_TRANSLATE_NOOP("Clock", "Passes over the training data.")},
    {"seconds", QT_TRANSLATE_NOOP("Clock", "Wall time"), QT_TRANSLATE_NOOP("Clock", "s"),
     QT_TRANSLATE_NOOP("Clock", "Wall time (s)"), QT_TRANSLATE_NOOP("Clock", "Time elapsed since the run began.")},
    {"compute_seconds", QT_TRANSLATE_NOOP("Clock", "Compute time"), QT_TRANSLATE_NOOP("Clock", "s"),
     QT_TRANSLATE_NOOP("Clock", "Compute time of one rank (s)"),
     QT_TRANSLATE_NOOP("Clock", "Forward, backward and optimizer time of one rank, without waiting.")},
}};

const ClockText& textOf(Clock clock) {
  return texts[static_cast<std::size_t>(clock)];
}

}  // namespace

QString clockName(Clock clock) {
  return tr(textOf(clock).name);
}

QString clockUnit(Clock clock) {
  return tr(textOf(clock).unit);
}

QString clockAxisTitle(Clock clock) {
  return tr(textOf(clock).title);
}

QString clockHelp(Clock clock) {
  return tr(textOf(clock).help);
}

QString clockKey(Clock clock) {
  return QString::fromLatin1(textOf(clock).key);
}

Clock clockFromKey(const QString& key) {
  for (const Clock clock : allClocks)
    if (clockKey(clock) == key) return clock;
  return Clock::update;
}

bool clockCounts(Clock clock) {
  return clock == Clock::microStep || clock == Clock::update || clock == Clock::sample || clock == Clock::token;
}

}  // namespace accrue::ui

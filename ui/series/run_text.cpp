// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_text.h"

#include <QRegularExpression>
#include <algorithm>
#include <array>
#include <cmath>

#include "kit/number_text.h"
#include "kit/text.h"
#include "run_series.h"

namespace accrue::ui {

namespace {

QString runningSentence(const RunSeries& run) {
  if (run.last().update == 0) return tr("waiting for the first update");
  if (const auto left = secondsLeft(run)) return tr("%1 left").arg(durationText(*left));
  return tr("update %1").arg(groupedNumber(run.last().update));
}

QString pausedSentence(const RunSeries& run) {
  const LastValues& last = run.last();
  if (const auto& held = run.held(); held && held->phase != accrue::StepPhase::none)
    return tr("after %1, micro %2 of %3, in update %4")
        .arg(phaseName(held->phase), groupedNumber(held->position), groupedNumber(held->size),
             groupedNumber(held->update));
  if (last.windowPosition == 0 || last.windowPosition >= last.windowSize)
    return tr("between updates, after update %1").arg(groupedNumber(last.update));
  return tr("at micro %1 of %2, in update %3")
      .arg(groupedNumber(last.windowPosition), groupedNumber(last.windowSize), groupedNumber(last.update + 1));
}

QString finishedSentence(const RunSeries& run) {
  const RunOutcome& outcome = run.outcome();
  if (outcome.outcome == QLatin1String("stopped")) {
    const QString updates = groupedNumber(outcome.updates);
    const bool saved = outcome.updates > 0 && run.checkpointUpdate() == outcome.updates;
    const bool was_last = outcome.updates == run.last().plannedUpdates;
    const QString word = QStringLiteral("Stopped ");
    const QString who = outcome.reason.startsWith(word) ? outcome.reason.mid(word.size()) : tr("by you");
    //: After "Stopped"; %1: by you, by a signal. Resume is the menu's entry
    return saved && !was_last ? tr("%1 after update %2; saved, Resume continues").arg(who, updates)
                              : tr("%1 after update %2").arg(who, updates);
  }
  const QString early = QStringLiteral("Finished ");  // "after update 120 of 300: the validation loss ..."
  if (outcome.reason.startsWith(early)) return outcome.reason.mid(early.size());
  const QString updates = outcome.updates == 1 ? tr("1 update") : tr("%1 updates").arg(groupedNumber(outcome.updates));
  return std::isfinite(outcome.loss) ? tr("%1, loss %2").arg(updates, shortText(outcome.loss, 4)) : updates;
}

/// The supervisor says when the ranks end and what is kept; the state's word replaces its first word.
QString stoppingSentence(const RunSeries& run) {
  if (run.state() != RunState::stopping) return tr("press Stop again to kill");  // it has not answered yet
  const QString detail = run.stateDetail();
  const QString word = QStringLiteral("Stopping ");
  //: %1 when the run stops: "after this update, with a checkpoint"
  return detail.startsWith(word) ? tr("%1; press Stop again to kill").arg(detail.mid(word.size())) : detail;
}

QString failedSentence(const RunSeries& run) {
  for (auto problem = run.problems().rbegin(); problem != run.problems().rend(); ++problem)
    if (problem->fatal) return problem->message;
  return run.outcome().reason.isEmpty() ? run.stateDetail() : run.outcome().reason;
}

}  // namespace

QString stateSentence(const RunSeries& run, RunState state) {
  switch (state) {
    case RunState::idle:
      return tr("press F5 to run");
    case RunState::preflight:
      return tr("spec, data, memory and devices");
    case RunState::starting:
      return tr("waiting for the ranks to meet");
    case RunState::running:
      return runningSentence(run);
    case RunState::paused:
      return pausedSentence(run);
    case RunState::degraded:
      return run.problems().empty() ? run.stateDetail() : run.problems().back().message;
    case RunState::restarting:
      return run.stateDetail();
    case RunState::stopping:
      return stoppingSentence(run);
    case RunState::failed:
      return failedSentence(run);
    case RunState::finished:
      return finishedSentence(run);
  }
  return {};
}

QString stateName(accrue::RunState state) {
  switch (state) {
    case accrue::RunState::idle:
      return tr("Ready");
    case accrue::RunState::preflight:
      return tr("Checking");
    case accrue::RunState::starting:
      return tr("Starting");
    case accrue::RunState::running:
      return tr("Running");
    case accrue::RunState::paused:
      return tr("Paused");
    case accrue::RunState::degraded:
      return tr("Running, degraded");
    case accrue::RunState::restarting:
      return tr("Restarting");
    case accrue::RunState::stopping:
      return tr("Stopping");
    case accrue::RunState::failed:
      return tr("Failed");
    case accrue::RunState::finished:
      return tr("Finished");
  }
  return {};
}

QString phaseName(accrue::StepPhase phase) {
  static constexpr std::array names = {"",
                                       QT_TRANSLATE_NOOP("RunText", "forward"),
                                       QT_TRANSLATE_NOOP("RunText", "scale"),
                                       QT_TRANSLATE_NOOP("RunText", "backward"),
                                       QT_TRANSLATE_NOOP("RunText", "reduce"),
                                       QT_TRANSLATE_NOOP("RunText", "unscale"),
                                       QT_TRANSLATE_NOOP("RunText", "clip"),
                                       QT_TRANSLATE_NOOP("RunText", "step"),
                                       QT_TRANSLATE_NOOP("RunText", "schedule"),
                                       QT_TRANSLATE_NOOP("RunText", "zero")};
  return phase == accrue::StepPhase::none ? QString() : tr(names[static_cast<std::size_t>(phase)]);
}

bool isStopped(const RunSeries* run, RunState state) {
  return run && state == RunState::finished && run->outcome().outcome == QLatin1String("stopped");
}

QString stateWord(const RunSeries* run, RunState state) {
  return isStopped(run, state) ? tr("Stopped") : stateName(state);
}

QString lastWeightsText(const RunSeries& run, std::size_t most) {
  const auto& weights = run.weights();
  if (weights.empty() || weights.front()->empty()) return {};
  QStringList numbers;
  for (std::size_t i = 0; i < std::min(weights.size(), most); ++i)
    numbers << shortText(weights[i]->value(weights[i]->size() - 1), 10);
  const QString text = numbers.join(QStringLiteral(", "));
  return weights.size() > most ? tr("%1 and %2 more").arg(text).arg(weights.size() - most) : text;
}

std::optional<double> secondsLeft(const RunSeries& run) {
  const LastValues& last = run.last();
  if (last.update < 2 || last.plannedUpdates <= 0 || last.unpausedSeconds <= 0.0) return std::nullopt;
  const auto left = static_cast<double>(std::max<std::int64_t>(0, last.plannedUpdates - last.update));
  return last.unpausedSeconds / static_cast<double>(last.update) * left;
}

QString switchWord(bool on) {
  return on ? tr("on") : tr("off");
}

QString inSwitchWords(const SpecField* field, QString text) {
  if (!field || field->type != FieldType::boolean) return text;
  for (const bool on : {false, true})
    text.replace(QRegularExpression(on ? QStringLiteral("\\btrue\\b") : QStringLiteral("\\bfalse\\b")), switchWord(on));
  return text;
}

QString unknownCostText() {
  return tr("The model is a library\u2019s: its memory and its traffic are known once it has run");
}

}  // namespace accrue::ui

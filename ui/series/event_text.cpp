// SPDX-License-Identifier: GPL-3.0-or-later
#include "event_text.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "accrue/run/events/lamp.h"
#include "kit/no_value.h"
#include "kit/number_text.h"
#include "run_text.h"

namespace accrue::ui {

namespace {

class Sentences {
  Q_DECLARE_TR_FUNCTIONS(EventText)

 public:
  QString operator()(const accrue::RunStarted& body) const {
    return body.resumed ? tr("Run resumed from update %1.").arg(groupedNumber(body.resumed_update))
                        : tr("Run started.");
  }
  QString operator()(const accrue::RankReady& body) const {
    const QString ready =
        tr("Ready on %1 over %2, process %3").arg(utf8(body.device), utf8(body.backend)).arg(body.pid);
    return body.threads == 1 ? tr("%1, 1 thread.").arg(ready) : tr("%1, %2 threads.").arg(ready).arg(body.threads);
  }
  QString operator()(const accrue::MicroSteps& body) const {
    if (body.micro_step.empty()) return {};
    const auto count = static_cast<double>(body.micro_step.size());
    const auto labelled = static_cast<double>(std::ranges::count_if(body.tokens, [](auto items) { return items > 0; }));
    const double sum = std::inner_product(body.loss.begin(), body.loss.end(), body.tokens.begin(), 0.0, std::plus(),
                                          [](double loss, auto items) { return items > 0 ? loss : 0.0; });
    const double loss = labelled > 0 ? sum / labelled : noValue;
    const auto busy = std::accumulate(body.compute_ns.begin(), body.compute_ns.end(), std::int64_t{0});
    return tr("Micro-steps %1: loss %2, %3 each.")
        .arg(range(body.micro_step.front(), body.micro_step.back()), valueText(loss),
             spanText(static_cast<double>(busy) * 1e-9 / count));
  }
  QString operator()(const accrue::Operations&) const { return {}; }  // covered by the micro-steps' sentence
  QString operator()(const accrue::Sync& body) const {
    if (body.op.empty()) return {};
    const std::int64_t bytes = std::accumulate(body.bytes.begin(), body.bytes.end(), std::int64_t{0});
    double seconds = 0.0;
    for (std::size_t i = 0; i < std::min(body.begin_ns.size(), body.end_ns.size()); ++i)
      seconds += static_cast<double>(body.end_ns[i] - body.begin_ns[i]) * 1e-9;
    const QString which = body.op.size() == 1 ? tr("1 collective") : tr("%1 collectives").arg(body.op.size());
    return tr("%1 in update %2: %3 in %4.")
        .arg(which, range(body.update.front(), body.update.back()), bytesText(bytes), spanText(seconds));
  }
  QString operator()(const accrue::Update& body) const {
    const QString number = groupedNumber(body.update);
    switch (body.outcome) {
      case accrue::StepOutcome::skipped_overflow:
        return tr("Update %1 skipped, overflow: its gradients were not finite and were discarded.").arg(number);
      case accrue::StepOutcome::skipped_empty:
        return tr("Update %1 skipped, empty: its window held nothing to train on.").arg(number);
      case accrue::StepOutcome::accumulated:
        return tr("Update %1 not taken: its window is not full.").arg(number);
      case accrue::StepOutcome::updated:
        break;
    }
    QString text = tr("Update %1: loss %2").arg(number, valueText(body.loss));
    if (body.lr) text += tr(", learning rate %1").arg(valueText(*body.lr, 3));
    if (body.grad_norm) text += tr(", gradient norm %1").arg(valueText(*body.grad_norm, 3));
    text += QLatin1Char('.');
    if (body.reason == "epoch_end") text += tr(" Flushed at epoch end: a short window.");
    if (body.reason == "run_end") text += tr(" Flushed at run end: a short window.");
    return text;
  }
  QString operator()(const accrue::Evaluation& body) const {
    const QString text =
        tr("Evaluation after update %1: loss %2").arg(groupedNumber(body.update), valueText(body.loss));
    return body.batches == 1 ? tr("%1 over 1 batch.").arg(text) : tr("%1 over %2 batches.").arg(text).arg(body.batches);
  }
  QString operator()(const accrue::ExactnessCheck& body) const {
    return tr("Exactness of update %1: %2 (relative %3, tolerance %4). %5")
        .arg(groupedNumber(body.update), utf8(std::string(accrue::lamp_word(body))), valueText(body.relative, 2),
             valueText(body.tolerance, 2), utf8(body.message))
        .trimmed();
  }
  QString operator()(const accrue::StepsChanged& body) const {
    return tr("N is %1 from update %2 on.").arg(groupedNumber(body.steps), groupedNumber(body.update + 1));
  }
  QString operator()(const accrue::CheckpointDone& body) const {
    const QString text =
        tr("Checkpoint of update %1: %2 in %3, %4.")
            .arg(groupedNumber(body.update), bytesText(body.bytes), spanText(body.seconds), utf8(body.path));
    return body.best_loss ? tr("%1 The best so far: validation loss %2.").arg(text, valueText(*body.best_loss)) : text;
  }
  QString operator()(const accrue::Gauge&) const { return {}; }
  QString operator()(const accrue::Measured&) const { return {}; }
  QString operator()(const accrue::Heartbeat&) const { return {}; }
  QString operator()(const accrue::Holding&) const { return {}; }
  QString operator()(const accrue::Held& body) const {
    if (std::isnan(body.gradient_norm))
      return tr("Held after %1 of micro-step %2: its gradients are being reduced.")
          .arg(phaseName(body.phase), groupedNumber(body.micro_step));
    return body.phase == accrue::StepPhase::none
               ? tr("Held after micro-step %1: gradient norm %2.")
                     .arg(groupedNumber(body.micro_step), valueText(body.gradient_norm, 3))
               : tr("Held after %1 of micro-step %2: gradient norm %3.")
                     .arg(phaseName(body.phase), groupedNumber(body.micro_step), valueText(body.gradient_norm, 3));
  }
  QString operator()(const accrue::StateChanged& body) const {
    return body.detail.empty() ? tr("State: %1.").arg(utf8(body.state))
                               : tr("State: %1, %2").arg(utf8(body.state), utf8(body.detail));
  }
  QString operator()(const accrue::Warning& body) const { return joined(body.message, body.what_to_do); }
  QString operator()(const accrue::RankFailed& body) const {
    QString text = joined(body.message, body.what_to_do);
    if (body.signal != 0) text += tr(" (signal %1, last phase %2)").arg(body.signal).arg(utf8(body.phase));
    return text;
  }
  QString operator()(const accrue::RunFinished& body) const {
    if (body.reason.starts_with("Finished "))  // before the planned end
      return tr("%1. Loss %2, %3.").arg(utf8(body.reason), valueText(body.loss), durationText(body.seconds));
    const QString updates = body.updates == 1 ? tr("1 update") : tr("%1 updates").arg(groupedNumber(body.updates));
    QString text = tr("Run %1 after %2, loss %3, %4.")
                       .arg(utf8(body.outcome), updates, valueText(body.loss), durationText(body.seconds));
    return body.reason.empty() ? text : text + QLatin1Char(' ') + utf8(body.reason);
  }
  QString operator()(const accrue::UnknownEvent& body) const { return utf8(body.json); }

 private:
  static QString utf8(const std::string& text) { return QString::fromStdString(text); }
  static QString joined(const std::string& first, const std::string& second) {
    if (second.empty()) return utf8(first);
    const bool closed = first.empty() || first.back() == '.' || first.back() == '!' || first.back() == '?';
    return utf8(first) + QLatin1String(closed ? " " : ". ") + utf8(second);
  }
  static QString range(std::int64_t first, std::int64_t last) {
    return first == last ? groupedNumber(first) : tr("%1 to %2").arg(groupedNumber(first), groupedNumber(last));
  }
};

}  // namespace

QString eventSentence(const accrue::RunEvent& event) {
  return std::visit(Sentences{}, event.body);
}

int eventSeverity(const accrue::RunEvent& event) {
  if (std::holds_alternative<accrue::RankFailed>(event.body)) return 2;
  if (std::holds_alternative<accrue::Warning>(event.body)) return 1;
  if (const auto* update = std::get_if<accrue::Update>(&event.body))
    return update->outcome == accrue::StepOutcome::skipped_overflow ? 1 : 0;
  if (const auto* finished = std::get_if<accrue::RunFinished>(&event.body))
    return finished->outcome == "failed" ? 2 : 0;
  return 0;
}

std::int64_t eventUpdate(const accrue::RunEvent& event) {
  return std::visit(
      [](const auto& body) -> std::int64_t {
        if constexpr (requires { std::int64_t{body.update}; })
          return body.update;
        else if constexpr (std::is_same_v<std::decay_t<decltype(body)>, accrue::Sync>)
          return body.update.empty() ? 0 : body.update.front();
        else
          return 0;
      },
      event.body);
}

QString eventKindText(const QString& kind) {
  static constexpr std::pair<const char*, const char*> names[] = {
      {"run_started", QT_TRANSLATE_NOOP("EventKind", "start")},
      {"rank_ready", QT_TRANSLATE_NOOP("EventKind", "ready")},
      {"micro_steps", QT_TRANSLATE_NOOP("EventKind", "micro-steps")},
      {"held", QT_TRANSLATE_NOOP("EventKind", "held")},
      {"sync", QT_TRANSLATE_NOOP("EventKind", "collectives")},
      {"update", QT_TRANSLATE_NOOP("EventKind", "update")},
      {"evaluation", QT_TRANSLATE_NOOP("EventKind", "evaluation")},
      {"checkpoint", QT_TRANSLATE_NOOP("EventKind", "checkpoint")},
      {"checkpoint_done", QT_TRANSLATE_NOOP("EventKind", "checkpoint")},
      {"state_changed", QT_TRANSLATE_NOOP("EventKind", "state")},
      {"state", QT_TRANSLATE_NOOP("EventKind", "state")},
      {"warning", QT_TRANSLATE_NOOP("EventKind", "warning")},
      {"rank_failed", QT_TRANSLATE_NOOP("EventKind", "failure")},
      {"run_finished", QT_TRANSLATE_NOOP("EventKind", "end")},
  };
  for (const auto& [key, name] : names)
    if (kind == QLatin1String(key)) return QCoreApplication::translate("EventKind", name);
  return kind;
}

}  // namespace accrue::ui

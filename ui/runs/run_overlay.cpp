// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_overlay.h"

#include <QPointer>
#include <algorithm>
#include <utility>

#include "accrue/run/fields/loss_difference.h"
#include "accrue/run/fields/spec_fields.h"
#include "runs_panel.h"
#include "series/run_series.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

constexpr auto message_id = "overlay";

/// Label of the key that makes the losses incomparable; empty if they can be compared.
QString difference_of(const RunSeries& one, const RunSeries& other) {
  if (!one.spec() || !other.spec()) return {};
  const std::string key = loss_difference(*one.spec(), *other.spec());
  const SpecField* field = key.empty() ? nullptr : find_field(key);
  if (!field) return QString::fromStdString(key);
  return QString::fromStdString(std::string(field->label));
}

}  // namespace

RunOverlay::RunOverlay(RunsPanel* runs, MessageBar* bar, QObject* parent) : QObject(parent), runs_(runs), bar_(bar) {
  connect(runs_, &RunsPanel::shownRunsChanged, this, &RunOverlay::withdrawIfChanged);
}

void RunOverlay::show(RunSeries* run) {
  bar_->withdraw(QLatin1String(message_id));
  offered_over_.clear();
  QList<RunSeries*> kept;
  QList<QPointer<RunSeries>> left_out;
  QString why;
  for (RunSeries* each : runs_->shownRuns()) {
    if (each == run) continue;
    const QString difference = difference_of(*run, *each);
    if (difference.isEmpty()) {
      kept.append(each);
    } else {
      left_out.append(each);
      why = difference;
    }
  }
  if (left_out.isEmpty()) {
    runs_->showAlso(run);
    return;
  }
  kept.append(run);
  runs_->showOnly(kept);
  offered_over_ = kept;
  const bool one = left_out.size() == 1;
  //: %1 a run, %2 a setting
  const QString text =
      one ? tr("%1 is no longer drawn, because its loss cannot be compared with this run's: the runs differ in %2.")
                .arg(left_out.front()->name(), why)
          //: %1 how many runs, %2 a setting
          : tr("%1 runs are no longer drawn, because their loss cannot be compared with this run's: "
               "the runs differ in %2.")
                .arg(left_out.size())
                .arg(why);
  bar_->post({.id = QLatin1String(message_id),
              .tone = RunState::idle,
              .text = text,
              .action = tr("Overlay"),
              .act =
                  [this, left_out, run = QPointer(run)] {
                    offered_over_.clear();
                    for (const QPointer<RunSeries>& each : left_out)
                      if (each) runs_->showAlso(each);
                    if (run) runs_->showAlso(run);
                  },
              .ofPlots = true});
}

void RunOverlay::withdrawIfChanged() {
  if (offered_over_.isEmpty()) return;
  QList<RunSeries*> shown = runs_->shownRuns();
  if (std::ranges::is_permutation(shown, offered_over_)) return;
  offered_over_.clear();
  bar_->withdraw(QLatin1String(message_id));
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "paired_run.h"

#include <utility>

#include "accrue/run/spec_fields.h"
#include "models/preflight_runner.h"
#include "models/run_control.h"
#include "models/run_library.h"
#include "models/run_text.h"
#include "pair_guide.h"
#include "runs_panel.h"
#include "widgets/message_bar.h"
#include "window_files.h"

namespace accrue::ui {

namespace {

constexpr auto paired_id = "paired";

}  // namespace

PairedRun::PairedRun(const Parts& parts, QObject* parent) : QObject(parent), parts_(parts) {
  connect(parts_.preflight, &PreflightRunner::finished, this, [this] {
    if (checking_ && parts_.preflight->isCurrent()) startChecked();
  });
  // Queued: by then the new run has the focus.
  connect(
      parts_.control, &RunControl::runBegun, this,
      [this](RunSeries* run) {
        if (RunSeries* first = std::exchange(first_, nullptr).data(); first && first != run) parts_.guide->showSheet();
      },
      Qt::QueuedConnection);
  connect(parts_.control, &RunControl::refused, this, [this] { first_ = nullptr; });
}

void PairedRun::start() {
  first_ = parts_.runs->currentRun();
  if (!first_ || !first_->spec() || parts_.control->isLive()) return;
  checking_ = true;
  parts_.preflight->refresh();
}

void PairedRun::startChecked() {
  checking_ = false;
  const Preflight& checked = parts_.preflight->result();
  if (!first_ || !checked.plan || has_errors(checked.findings)) {
    parts_.control->start();  // says what must be fixed
    return;
  }
  QStringList changed;
  for (const SpecDifference& difference : diff_specs(*first_->spec(), checked.plan->spec)) {
    if (difference.key == "run.name") continue;
    const SpecField* field = find_field(difference.key);
    changed << (field ? fromView(field->label) : QString::fromStdString(difference.key));
  }
  if (changed.size() > 1) {
    parts_.bar->post({QLatin1String(paired_id), RunState::paused,
                      tr("A paired run changes one key. The set-up differs from %1 in %2 keys: %3")
                          .arg(first_->name(), QString::number(changed.size()), changed.join(QStringLiteral(", "))),
                      tr("Load the run's spec"), [this, run = std::exchange(first_, nullptr)] {
                        if (run) parts_.files->clone(*run);
                      }});
    return;
  }
  parts_.bar->withdraw(QLatin1String(paired_id));
  first_->setShown(Shown::yes);
  parts_.library->table()->setBaseline(first_);
  parts_.control->start();
}

}  // namespace accrue::ui

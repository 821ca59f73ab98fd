// SPDX-License-Identifier: GPL-3.0-or-later
#include "paired_run.h"

#include <algorithm>
#include <utility>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/plan/pair_share.h"
#include "document/library_probe.h"
#include "document/preflight_runner.h"
#include "document/spec_files.h"
#include "kit/text.h"
#include "live/companion_run.h"
#include "live/run_control.h"
#include "live/run_queue.h"
#include "pair_guide.h"
#include "runs/run_library.h"
#include "runs/runs_panel.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

constexpr auto paired_id = "paired";
constexpr auto companion_id = "companion";

}  // namespace

PairedRun::PairedRun(const Parts& parts, QObject* parent) : QObject(parent), parts_(parts) {
  connect(parts_.preflight, &PreflightRunner::finished, this, [this] {
    if (checking_ && parts_.preflight->isCurrent()) startChecked();
  });
  // Queued: by then the new run has the focus.
  connect(parts_.control, &RunControl::runBegun, this, &PairedRun::takeBegun, Qt::QueuedConnection);
  connect(parts_.control, &RunControl::refused, this, [this] { first_ = nullptr; });
  connect(parts_.control, &RunControl::ended, this, &PairedRun::sayStillTraining);
  connect(parts_.companion, &CompanionRun::ended, this, &PairedRun::sayCompanionEnded);
  connect(parts_.queue, &RunQueue::finished, this, [this] { first_begins_ = false; });
}

void PairedRun::start() {
  check(false);
}

void PairedRun::startTogether() {
  if (parts_.companion->isLive())
    sayStillTraining();
  else
    check(true);
}

void PairedRun::check(bool together) {
  first_ = parts_.runs->currentRun();
  if (!first_ || !first_->spec() || parts_.control->isLive()) return;
  together_ = together;
  checking_ = true;
  parts_.preflight->refresh();
}

void PairedRun::startChecked() {
  checking_ = false;
  const Preflight& checked = parts_.preflight->result();
  if (!first_ || !checked.plan || has_errors(checked.findings)) {
    parts_.control->start();  // reports what must be fixed
    return;
  }
  if (!isOneChange(checked.plan->spec)) return;
  parts_.bar->withdraw(QLatin1String(paired_id));
  if (together_) return planTogether(*checked.plan);
  first_->setShown(Shown::yes);
  parts_.library->table()->setBaseline(first_);
  parts_.control->start();
}

/// If not, the message says so.
bool PairedRun::isOneChange(const RunSpec& second) {
  QStringList changed;
  for (const SpecDifference& difference : diff_specs(*first_->spec(), second)) {
    if (difference.key == "run.name") continue;
    if (together_ && difference.key == "launch.threads_per_rank") continue;  // both get the same
    const SpecField* field = find_field(difference.key);
    changed << (field ? fromView(field->label) : QString::fromStdString(difference.key));
  }
  if (changed.size() <= 1) return true;
  parts_.bar->post({QLatin1String(paired_id), RunState::paused,
                    tr("A paired run changes one key. The set-up differs from %1 in %2 keys: %3")
                        .arg(first_->name(), QString::number(changed.size()), changed.join(QStringLiteral(", "))),
                    tr("Load the run's spec"), [this, run = std::exchange(first_, nullptr)] {
                      if (run) parts_.files->load(*run);
                    }});
  return false;
}

void PairedRun::planTogether(const RunPlan& second) {
  const std::filesystem::path base =
      first_->plan() ? first_->plan()->base_dir : std::filesystem::path(first_->folder().toStdString());
  jobs_.run(
      [one = without_lowered(*first_->spec()), other = without_lowered(second.spec), base, other_base = second.base_dir,
       host = parts_.preflight->hostFacts(), libraries = parts_.preflight->libraries()] {
        const auto threads = pair_threads(one, other, host);
        const auto plan = [&](const RunSpec& spec, const std::filesystem::path& dir) {
          Preflight checked = preflight_files(spec, host, dir, libraries);
          if (checked.plan && threads) checked.plan = with_threads(*std::move(checked.plan), *threads);
          return checked;
        };
        return Plans{plan(one, base), plan(other, other_base), threads, librariesOf(one, libraries)};
      },
      [this](const Plans& plans) { begin(plans); });
}

void PairedRun::begin(const Plans& plans) {
  const auto refuse = [this](const QString& why) {
    first_ = nullptr;
    parts_.bar->post({QLatin1String(paired_id), RunState::failed, why, {}, {}});
  };
  for (const Preflight* checked : {&plans.first, &plans.second})
    if (!checked->plan) {
      const auto error = std::ranges::find(checked->findings, Severity::error, &Finding::severity);
      return refuse(tr("The pair cannot train: %1").arg(QString::fromStdString(error->text())));
    }
  if (!plans.threads) return beginInTurn(plans);
  const auto started = parts_.companion->start(*plans.first.plan, plans.libraries);
  if (!started) return refuse(QString::fromStdString(started.error().text()));
  parts_.runs->showOnly({*started});
  parts_.library->table()->setBaseline(*started);
  first_ = *started;
  if (!parts_.control->startPlan(*plans.second.plan, parts_.control->setUp())) parts_.companion->kill();
}

void PairedRun::beginInTurn(const Plans& plans) {
  const auto ranks = plans.first.plan->window.world + plans.second.plan->window.world;
  first_begins_ = true;
  parts_.runs->showOnly({});
  if (!parts_.queue->start(
          {{*plans.first.plan, tr("the first of the pair")}, {*plans.second.plan, tr("the second of the pair")}})) {
    first_begins_ = false;
    return;
  }
  const auto count = parts_.preflight->hostFacts().cores;
  const QString cores = count == 1 ? tr("1 core") : tr("%1 cores").arg(count);
  parts_.bar->post({QLatin1String(paired_id),
                    RunState::idle,
                    tr("The pair has %1 ranks together, too many for this machine (%2): they train one after another")
                        .arg(QString::number(ranks), cores),
                    {},
                    {}});
}

void PairedRun::takeBegun(RunSeries* run) {
  if (std::exchange(first_begins_, false)) {
    first_ = run;
    parts_.library->table()->setBaseline(run);
    return;
  }
  if (RunSeries* first = std::exchange(first_, nullptr).data(); first && first != run) parts_.guide->showSheet();
}

void PairedRun::sayStillTraining() {
  if (!parts_.companion->isLive()) return;
  const QString name = parts_.companion->run()->name();
  if (parts_.companion->hosting() == Hosting::ends) {
    parts_.bar->post({QLatin1String(companion_id), RunState::stopping,
                      tr("%1, the other run of the pair, is being saved").arg(name), tr("End it at once"),
                      [this] { parts_.companion->kill(); }});
    return;
  }
  parts_.bar->post({QLatin1String(companion_id), RunState::running,
                    tr("%1, the other run of the pair, still trains").arg(name), tr("Stop it"), [this] {
                      parts_.companion->saveAndEnd();
                      sayStillTraining();
                    }});
}

void PairedRun::sayCompanionEnded(const RunSeries* run) {
  parts_.bar->withdraw(QLatin1String(companion_id));
  if (run->outcome().outcome == QLatin1String("failed"))
    parts_.bar->post({QLatin1String(companion_id),
                      RunState::failed,
                      tr("%1, the other run of the pair, failed: %2").arg(run->name(), run->outcome().reason),
                      {},
                      {}});
}

}  // namespace accrue::ui

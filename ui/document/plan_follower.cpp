// SPDX-License-Identifier: GPL-3.0-or-later
#include "plan_follower.h"

#include "preflight_runner.h"
#include "spec_document.h"

namespace accrue::ui {

PlanFollower::PlanFollower(SpecDocument* document, PreflightRunner* preflight, Work work, QObject* parent)
    : QObject(parent), document_(document), preflight_(preflight), work_(std::move(work)) {
  connect(preflight_, &PreflightRunner::finished, this, [this] {
    if (wanted_ || asked_) start();
  });
}

void PlanFollower::setWanted(bool wanted) {
  wanted_ = wanted;
  if (wanted && !isCurrent()) refresh();
}

void PlanFollower::refresh() {
  asked_ = true;
  if (preflight_->isCurrent()) start();
  // Otherwise the running preflight will start it.
}

bool PlanFollower::isCurrent() const {
  return result_revision_ == document_->revision();
}

void PlanFollower::start() {
  if (!preflight_->isCurrent()) return;
  asked_ = false;
  auto job = [request = ++request_, revision = document_->revision(), work = work_,
              question = Question{preflight_->spec(), preflight_->hostFacts(), preflight_->dataFacts(),
                                  document_->baseDir(), preflight_->libraries()}] {
    return Answer{request, revision, work(question)};
  };
  jobs_.run(std::move(job), [this](const Answer& answer) {
    if (answer.request != request_) return;
    answer.keep();
    result_revision_ = answer.revision;
    Q_EMIT finished();
  });
}

}  // namespace accrue::ui

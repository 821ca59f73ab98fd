// SPDX-License-Identifier: GPL-3.0-or-later
#include "dialect_runner.h"

#include "preflight_runner.h"
#include "spec_document.h"

namespace accrue::ui {

DialectRunner::DialectRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent)
    : QObject(parent), document_(document), preflight_(preflight) {
  connect(preflight_, &PreflightRunner::finished, this, [this] {
    if (wanted_ || asked_) start();
  });
}

void DialectRunner::setWanted(bool wanted) {
  wanted_ = wanted;
  if (wanted && !isCurrent()) refresh();
}

void DialectRunner::refresh() {
  asked_ = true;
  if (preflight_->isCurrent()) start();
  // Otherwise the preflight that is running will start it.
}

bool DialectRunner::isCurrent() const {
  return result_revision_ == document_->revision();
}

void DialectRunner::start() {
  if (!preflight_->isCurrent()) return;
  asked_ = false;
  const quint64 request = ++request_;
  const quint64 revision = document_->revision();
  auto work = [request, revision, spec = document_->spec(), host = preflight_->hostFacts(),
               data = preflight_->dataFacts(), base_dir = document_->baseDir()] {
    Answer answer{request, revision, nullptr};
    if (data) answer.result = std::make_shared<DialectComparison>(compare_dialects(spec, host, *data, base_dir));
    return answer;
  };
  jobs_.run(std::move(work), [this](Answer answer) {
    if (answer.request != request_) return;
    result_ = std::move(answer.result);
    result_revision_ = answer.revision;
    Q_EMIT finished();
  });
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "exchange_jobs.h"

#include <QMetaObject>

#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

/// Id of the message of one job: others have their own.
QString progressId(const std::shared_ptr<std::atomic_bool>& job) {
  return QStringLiteral("exchange.%1").arg(reinterpret_cast<quintptr>(job.get()));
}

}  // namespace

ExchangeJobs::ExchangeJobs(MessageBar* messages, QObject* parent) : QObject(parent), messages_(messages) {}

ExchangeJobs::~ExchangeJobs() {
  for (const Job& job : under_way_) job->store(true);
}

ExchangeJobs::Job ExchangeJobs::begin(const QString& text) {
  under_way_.append(std::make_shared<std::atomic_bool>(false));
  show(under_way_.last(), text, -1);
  return under_way_.last();
}

void ExchangeJobs::show(const Job& job, const QString& text, int percent) {
  if (job->load() || !under_way_.contains(job)) return;
  //: What is done in the background: how much of it
  const QString shown = percent < 0 ? tr("%1 \u2026").arg(text) : tr("%1: %2 %").arg(text).arg(percent);
  messages_->post({progressId(job), RunState::running, shown, tr("Cancel"), [job] { job->store(true); }});
}

ExchangeJobs::GoOn ExchangeJobs::goOn(const Job& job, const QString& text) {
  return [this, job, text, last = -1](double done) mutable {
    if (const int percent = static_cast<int>(100.0 * done); done >= 0.0 && percent != last) {
      QMetaObject::invokeMethod(
          this, [this, job, text, percent] { show(job, text, percent); }, Qt::QueuedConnection);
      last = percent;
    }
    return !job->load();
  };
}

bool ExchangeJobs::end(const Job& job) {
  under_way_.removeOne(job);
  messages_->withdraw(progressId(job));
  return job->load();
}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// Exports and imports in the background, one after another; the message bar shows their progress and can cancel them.
#pragma once

#include <QList>
#include <QObject>
#include <QString>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "kit/job_runner.h"

namespace accrue::ui {

class MessageBar;

/// Thread: GUI. On destruction, with the window, cancels the current job and waits for it; jobs that write files leave
/// no incomplete one.
class ExchangeJobs : public QObject {
  Q_OBJECT

 public:
  /// Called by the work, in the background, with the progress from 0 to 1, or `unknown`. False: end early.
  using GoOn = std::function<bool(double)>;
  static constexpr double unknown = -1.0;

  ExchangeJobs(MessageBar* messages, QObject* parent);
  ~ExchangeJobs() override;

  /// work(const GoOn&) runs in the background and must own everything it uses; done(result, cancelled) is called here.
  /// Work that finished before the cancellation counts as done. `text`: shown meanwhile.
  template <typename Work, typename Done>
  void run(const QString& text, Work work, Done done) {
    const Job job = begin(text);
    jobs_.run([this, job, text, work = std::move(work)]() mutable { return work(goOn(job, text)); },
              [this, job, done = std::move(done)](auto&& result) mutable {
                done(std::forward<decltype(result)>(result), end(job));
              });
  }

 private:
  /// True once it is to end early.
  using Job = std::shared_ptr<std::atomic_bool>;

  Job begin(const QString& text);
  void show(const Job& job, const QString& text, int percent);
  GoOn goOn(const Job& job, const QString& text);
  bool end(const Job& job);

  MessageBar* messages_;
  QList<Job> under_way_;
  JobRunner jobs_;
};

}  // namespace accrue::ui

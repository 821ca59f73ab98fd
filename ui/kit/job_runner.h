// SPDX-License-Identifier: GPL-3.0-or-later
// Background jobs for work that may take longer than a frame (scanning data, listing runs, reading histories). The
// result is delivered on the owner's thread, or dropped if the owner is gone.
#pragma once

#include <QMetaObject>
#include <QObject>
#include <QThreadPool>
#include <memory>
#include <type_traits>
#include <utility>

namespace accrue::ui {

/// Thread: the owner's; work runs on one background thread, in order. The destructor waits for the current job.
class JobRunner : public QObject {
 public:
  explicit JobRunner(QObject* parent = nullptr) : QObject(parent) { pool_.setMaxThreadCount(1); }
  ~JobRunner() override {
    pool_.clear();
    pool_.waitForDone();
  }

  /// work() runs in the background and must own everything it uses; done(result) is called on the owner's thread.
  template <typename Work, typename Done>
  void run(Work work, Done done) {
    pool_.start([this, work = std::move(work), done = std::move(done)]() mutable {
      auto result = std::make_shared<std::invoke_result_t<Work&>>(work());
      QMetaObject::invokeMethod(
          this, [done = std::move(done), result]() mutable { done(std::move(*result)); }, Qt::QueuedConnection);
    });
  }

 private:
  QThreadPool pool_;
};

}  // namespace accrue::ui

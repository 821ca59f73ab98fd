// SPDX-License-Identifier: GPL-3.0-or-later
// DialectRunner: works out, in the background, what each dialect would do with the current spec, but only while the
// answer is shown.
#pragma once

#include <QObject>
#include <memory>

#include "accrue/run/dialect_comparison.h"
#include "bridge/job_runner.h"

namespace accrue::ui {

class PreflightRunner;
class SpecDocument;

/// Thread: GUI; the work is done on a JobRunner.
class DialectRunner : public QObject {
  Q_OBJECT

 public:
  DialectRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent = nullptr);

  /// While wanted, every preflight result is followed by a comparison.
  void setWanted(bool wanted);
  /// Compares once, wanted or not; finished() follows.
  void refresh();
  /// The newest comparison; nullptr before the first and while the data cannot be read.
  const std::shared_ptr<const DialectComparison>& result() const { return result_; }
  /// Whether it belongs to the current document.
  bool isCurrent() const;

 Q_SIGNALS:
  void finished();

 private:
  struct Answer {
    quint64 request = 0;
    quint64 revision = 0;
    std::shared_ptr<const DialectComparison> result;
  };
  void start();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  std::shared_ptr<const DialectComparison> result_;
  quint64 request_ = 0;
  quint64 result_revision_ = ~quint64{0};
  bool wanted_ = false;
  bool asked_ = false;
  JobRunner jobs_;
};

}  // namespace accrue::ui

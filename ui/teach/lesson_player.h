// SPDX-License-Identifier: GPL-3.0-or-later
// LessonPlayer: runs a lesson. It puts each step's spec into the document, reads the record of every run that ends, and
// evaluates the lesson's checks on it; it uses no widget.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/fields/sample_lock.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/lesson/lesson_check.h"
#include "kit/job_runner.h"

namespace accrue::ui {

class RunControl;
class RunSeries;
class SpecDocument;

/// Thread: GUI.
class LessonPlayer : public QObject {
  Q_OBJECT

 public:
  LessonPlayer(SpecDocument* document, RunControl* control, QObject* parent = nullptr);

  /// Begins a lesson at its first step. Earlier runs are not part of it. If it was left earlier in this session,
  /// takeResetBack() continues there.
  void open(Lesson lesson);
  /// The document stays, with the learner's edits.
  void close();
  /// Restores the first step as at the beginning; a live run of the lesson is ended without saving.
  void reset();
  /// Undoes the last reset: earlier observations count again, and its step becomes current, with its edits. Does
  /// nothing without such a reset.
  void takeResetBack();
  void next();
  void previous();
  /// Sets the unit of the plots' X axis from now on.
  void setClock(const QString& clock);

  /// Whether a run outside the lesson trains, so that none can be opened.
  bool isTakenByAnother() const;
  /// nullptr while none is open.
  const Lesson* lesson() const { return lesson_ ? &*lesson_ : nullptr; }
  std::size_t stepIndex() const { return step_; }
  const LessonStep& step() const { return lesson_->steps[step_]; }
  /// Results of the current step's checks, in order; open before the first run has ended.
  const std::vector<CheckResult>& results() const { return results_; }
  /// Whether a run has ended since the step was entered.
  bool isTried() const { return runs_.size() > runs_at_entry_; }
  /// Whether takeResetBack() would restore something.
  bool canTakeResetBack() const { return before_reset_.has_value(); }
  bool isStepDone() const { return is_done(step(), *lesson_, runs_, clocks_[step_]); }
  /// Number of completed steps.
  std::size_t stepsDone() const;
  /// Note about a processor that cannot reproduce the lesson's last bits; empty if it can.
  QString processorNote() const;

 Q_SIGNALS:
  /// A lesson was opened, or the open one restarted.
  void begun();
  void closed();
  void stepChanged();
  /// The checks were evaluated again.
  void judged();
  /// A run's record could not be read.
  void failed(const QString& text);
  /// An edit from any source would have changed a key that the lesson locks.
  void editRefused(const QString& sentence);

 private:
  /// Progress of a lesson.
  struct Progress {
    std::size_t step = 0;
    std::vector<RunFacts> runs;
    std::vector<std::vector<std::string>> clocks;
    std::optional<RunSpec> edited;  ///< the step's spec with the learner's edits
    SampleLock lock = SampleLock::none;
  };

  void begin();
  void rememberForReset();
  /// For a lesson that is opened again in this session.
  void keepProgress(bool edits);
  void enter(std::size_t step);
  void lockKeys();
  void takeEnd(RunSeries* run);
  void judgeStep();

  SpecDocument* document_;
  RunControl* control_;
  std::optional<Lesson> lesson_;
  std::size_t step_ = 0;
  std::vector<RunFacts> runs_;
  std::size_t runs_at_entry_ = 0;                 ///< at the start of the step
  std::optional<Progress> before_reset_;          ///< none if there is nothing to restore
  std::map<std::string, Progress> left_;          ///< of lessons that were left in this session, by title
  std::string clock_;                             ///< of the plots, now
  std::vector<std::vector<std::string>> clocks_;  ///< of the plots, in each step
  const RunSeries* own_run_ = nullptr;            ///< the last run that the lesson began; only compared
  const RunSeries* discarded_ = nullptr;          ///< run that a reset ended, whose end does not count; only compared
  std::vector<CheckResult> results_;
  quint64 round_ = 0;  ///< runs of an earlier round do not count
  JobRunner jobs_;
};

/// Returns the built-in lessons, in order: resource files.
QStringList builtInLessons();

}  // namespace accrue::ui

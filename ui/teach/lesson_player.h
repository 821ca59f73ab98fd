// SPDX-License-Identifier: GPL-3.0-or-later
// LessonPlayer: goes through a lesson. It puts each step's spec into the document, reads what every run that ends has
// recorded, and asks the lesson's checks about it; it uses no widget.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/lesson_check.h"
#include "accrue/run/run_spec.h"
#include "accrue/run/sample_lock.h"
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

  /// Begins a lesson at its first step. Runs that ended before are not part of it, but where it was left earlier in
  /// this session, takeResetBack() goes on there.
  void open(Lesson lesson);
  /// The document stays, with what the learner has edited.
  void close();
  /// The first step as it was at the beginning; a run of the lesson that is live is ended without saving.
  void reset();
  /// What was seen before the last reset counts again, and its step is the current one, with its edits. Nothing without
  /// such a reset.
  void takeResetBack();
  void next();
  void previous();
  /// What the X axis of the plots counts from now on.
  void setClock(const QString& clock);

  /// A run that is no part of the lesson trains, so none can be opened.
  bool isTakenByAnother() const;
  /// nullptr while none is open.
  const Lesson* lesson() const { return lesson_ ? &*lesson_ : nullptr; }
  std::size_t stepIndex() const { return step_; }
  const LessonStep& step() const { return lesson_->steps[step_]; }
  /// Of the current step's checks, in their order; open before the first run has ended.
  const std::vector<CheckResult>& results() const { return results_; }
  /// A run has ended since the step was entered.
  bool isTried() const { return runs_.size() > runs_at_entry_; }
  /// takeResetBack() would bring back something.
  bool canTakeResetBack() const { return before_reset_.has_value(); }
  bool isStepDone() const { return is_done(step(), *lesson_, runs_, clocks_[step_]); }
  /// How many steps show what they ask for.
  std::size_t stepsDone() const;
  /// A word about a processor that cannot have the lesson's last bits; empty where it can.
  QString processorNote() const;

 Q_SIGNALS:
  /// A lesson was opened, or the open one began again.
  void begun();
  void closed();
  void stepChanged();
  /// The checks were asked again.
  void judged();
  /// A run's record could not be read.
  void failed(const QString& text);
  /// An edit, from wherever it came, would have changed a key that the lesson keeps.
  void editRefused(const QString& sentence);

 private:
  /// What a lesson has come to.
  struct Progress {
    std::size_t step = 0;
    std::vector<RunFacts> runs;
    std::vector<std::vector<std::string>> clocks;
    std::optional<RunSpec> edited;  ///< the step's spec with the learner's edits
    SampleLock lock = SampleLock::none;
  };

  void begin();
  void rememberForReset();
  /// For when the lesson is opened again in this session.
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
  std::size_t runs_at_entry_ = 0;                 ///< of the step
  std::optional<Progress> before_reset_;          ///< none where there is nothing to take back
  std::map<std::string, Progress> left_;          ///< of lessons that were left in this session, by their title
  std::string clock_;                             ///< of the plots now
  std::vector<std::vector<std::string>> clocks_;  ///< of the plots, in each step
  const RunSeries* own_run_ = nullptr;            ///< the last one that the lesson began; compared only
  const RunSeries* discarded_ = nullptr;          ///< was ended by a reset, and its end does not count; compared only
  std::vector<CheckResult> results_;
  quint64 round_ = 0;  ///< runs of an earlier one do not count
  JobRunner jobs_;
};

/// The lessons that come with the program, in their order: resource files.
QStringList builtInLessons();

}  // namespace accrue::ui

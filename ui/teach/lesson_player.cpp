// SPDX-License-Identifier: GPL-3.0-or-later
#include "lesson_player.h"

#include <QDir>
#include <filesystem>
#include <utility>

#include "document/spec_document.h"
#include "live/run_control.h"
#include "series/run_series.h"

namespace accrue::ui {

LessonPlayer::LessonPlayer(SpecDocument* document, RunControl* control, QObject* parent)
    : QObject(parent), document_(document), control_(control) {
  connect(document_, &SpecDocument::editRefused, this, &LessonPlayer::editRefused);
  connect(control_, &RunControl::ended, this, &LessonPlayer::takeEnd);
  connect(control_, &RunControl::runBegun, this, [this](const RunSeries* run) {
    if (lesson_ && !control_->attached()) own_run_ = run;
  });
}

void LessonPlayer::open(Lesson lesson) {
  document_->endTyping();
  keepProgress(lesson_ && document_->isModified());
  lesson_ = std::move(lesson);
  runs_.clear();
  before_reset_.reset();
  const auto left = left_.find(lesson_->title);
  if (left != left_.end() && left->second.clocks.size() == lesson_->steps.size()) before_reset_ = left->second;
  document_->setSampleLock(SampleLock::none);  // it would write fields that the lesson locks
  begin();
}

void LessonPlayer::close() {
  if (!lesson_) return;
  ++round_;
  keepProgress(false);  // the form keeps its edits, or already holds another document
  document_->unlockKeys();
  lesson_.reset();
  runs_.clear();
  before_reset_.reset();
  results_.clear();
  own_run_ = nullptr;
  Q_EMIT closed();
}

void LessonPlayer::keepProgress(bool edits) {
  if (!lesson_ || (runs_.empty() && !edits)) return;
  if (stepsDone() == lesson_->steps.size() && !edits) {
    left_.erase(lesson_->title);
    return;
  }
  left_[lesson_->title] = {.step = step_,
                           .runs = runs_,
                           .clocks = clocks_,
                           .edited = edits ? std::optional(document_->spec()) : std::nullopt,
                           .lock = edits ? document_->sampleLock() : SampleLock::none};
}

bool LessonPlayer::isTakenByAnother() const {
  if (control_->isLive()) return control_->run() != own_run_;
  return !lesson_ && control_->state() == RunState::preflight;
}

void LessonPlayer::reset() {
  if (!lesson_) return;
  rememberForReset();
  begin();
}

/// A second reset finds nothing new, and keeps what the first one can restore.
void LessonPlayer::rememberForReset() {
  document_->endTyping();
  const bool edited = document_->isModified();
  if (runs_.empty() && !edited) return;
  if (!runs_.empty() || !before_reset_)
    before_reset_ = Progress{.runs = std::exchange(runs_, {}), .clocks = std::exchange(clocks_, {})};
  before_reset_->step = step_;
  before_reset_->edited = edited ? std::optional(document_->spec()) : std::nullopt;
  before_reset_->lock = document_->sampleLock();
}

void LessonPlayer::begin() {
  ++round_;
  if (control_->isLive() && control_->run() == own_run_) {
    discarded_ = own_run_;
    control_->kill();
  }
  step_ = 0;  // an earlier lesson may have had more
  clocks_.assign(lesson_->steps.size(), {});
  Q_EMIT begun();
  enter(0);
}

void LessonPlayer::takeResetBack() {
  if (!lesson_ || !canTakeResetBack()) return;
  const Progress before = *std::exchange(before_reset_, std::nullopt);
  runs_.insert(runs_.begin(), before.runs.begin(), before.runs.end());
  for (std::size_t i = 0; i < clocks_.size(); ++i)
    clocks_[i].insert(clocks_[i].end(), before.clocks[i].begin(), before.clocks[i].end());
  enter(before.step);
  if (before.edited) document_->setSpec(*before.edited, tr("Take the reset back"));
  document_->setSampleLock(before.lock);
}

void LessonPlayer::next() {
  if (lesson_ && step_ + 1 < lesson_->steps.size()) enter(step_ + 1);
}

void LessonPlayer::previous() {
  if (lesson_ && step_ > 0) enter(step_ - 1);
}

void LessonPlayer::setClock(const QString& clock) {
  clock_ = clock.toStdString();
  if (!lesson_) return;
  clocks_[step_].push_back(clock_);
  judgeStep();
}

void LessonPlayer::enter(std::size_t step) {
  step_ = step;
  runs_at_entry_ = runs_.size();
  clocks_[step_].push_back(clock_);
  document_->reset(spec_of(*lesson_, this->step()), QString::fromStdString(lesson_->title));
  lockKeys();
  judgeStep();
  Q_EMIT stepChanged();
}

void LessonPlayer::lockKeys() {
  LockedKeys keys;
  keys.holder = lesson_->number > 0 ? tr("Lesson %1").arg(lesson_->number)
                                    : tr("The lesson %1").arg(QString::fromStdString(lesson_->title));
  keys.way_out = tr("Leave the lesson to change it.");
  for (const auto& [key, why] : lesson_->locked) keys.why.emplace(key, QString::fromStdString(why));
  document_->lockKeys(std::move(keys));
}

std::size_t LessonPlayer::stepsDone() const {
  std::size_t done = 0;
  for (std::size_t i = 0; i < lesson_->steps.size(); ++i)
    if (is_done(lesson_->steps[i], *lesson_, runs_, clocks_[i])) ++done;
  return done;
}

QString LessonPlayer::processorNote() const {
  return lesson_ ? QString::fromStdString(other_processor(*lesson_, runs_)) : QString();
}

// The record is read from the run's folder, as by accrue-run: one reader, and no copy of the plots' data.
void LessonPlayer::takeEnd(RunSeries* run) {
  const bool discarded = run == discarded_;
  if (discarded) discarded_ = nullptr;
  if (!lesson_ || discarded) return;
  jobs_.run([dir = std::filesystem::path(run->folder().toStdString())] { return read_run_facts(dir); },
            [this, round = round_](Result<RunFacts> facts) {
              if (round != round_) return;
              if (!facts) {
                Q_EMIT failed(QString::fromStdString(facts.error().text()));
                return;
              }
              runs_.push_back(std::move(*facts));
              judgeStep();
            });
}

void LessonPlayer::judgeStep() {
  results_.clear();
  for (const LessonCheck& check : step().checks)
    results_.push_back(judge(check, step(), *lesson_, runs_, clocks_[step_]));
  Q_EMIT judged();
}

QStringList builtInLessons() {
  const QDir folder(QStringLiteral(":/lessons"));
  QStringList files;
  for (const QString& name : folder.entryList({QStringLiteral("*.accrue-lesson")}, QDir::Files, QDir::Name))
    files.append(folder.filePath(name));
  return files;
}

}  // namespace accrue::ui

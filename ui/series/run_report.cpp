// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_report.h"

#include <algorithm>
#include <type_traits>

#include "accrue/run/record/run_store.h"
#include "kit/text.h"

namespace accrue::ui {

void RunReport::recall(const accrue::RunSummary& summary) {
  startedAt_ = fromView(summary.started_at);
  branchedFrom_ = fromView(summary.branched_from);
  outcome_ = {fromView(summary.state),
              fromView(summary.message),
              fromView(summary.weights_sha256),
              summary.updates,
              summary.loss,
              summary.seconds};
  if (summary.state == "running") outcome_.outcome.clear();
}

void RunReport::take(const accrue::RunEvent& event) {
  const auto visitor = [&](const auto& body) {
    using Body = std::decay_t<decltype(body)>;
    if constexpr (std::is_same_v<Body, accrue::RunStarted>)
      takeStarted(body);
    else if constexpr (std::is_same_v<Body, accrue::ExactnessCheck>)
      lamp_.take(body);
    else if constexpr (std::is_same_v<Body, accrue::CheckpointDone>)
      checkpointUpdate_ = body.update;
    else if constexpr (std::is_same_v<Body, accrue::Held>)
      held_ = body;
    else if constexpr (std::is_same_v<Body, accrue::StateChanged>)
      takeState(body);
    else if constexpr (std::is_same_v<Body, accrue::Warning>)
      takeProblem({.rank = event.rank,
                   .className = fromView(body.class_name),
                   .message = fromView(body.message),
                   .whatToDo = fromView(body.what_to_do),
                   .phase = {},
                   .logTail = {},
                   .update = body.update});
    else if constexpr (std::is_same_v<Body, accrue::RankFailed>)
      takeProblem({true, event.rank, fromView(body.class_name), fromView(body.message), fromView(body.what_to_do),
                   fromView(body.phase), fromView(body.log_tail), body.signal, body.update, body.micro_step});
    else if constexpr (std::is_same_v<Body, accrue::RunFinished>)
      takeFinished(body);
  };
  std::visit(visitor, event.body);
}

void RunReport::takeStarted(const accrue::RunStarted& body) {
  // A resumed run keeps its place among the others.
  if (startedAt_.isEmpty() || !body.resumed) startedAt_ = fromView(body.started_at);
  // A branch that is resumed later reports the place where it continues, not its origin.
  if (branchUpdate_ == 0 && !body.branched_from.empty()) branchUpdate_ = body.resumed_update;
  branchedFrom_ = fromView(body.branched_from);
  if (body.resumed) lamp_.rewind(body.resumed_update);
  outcome_ = {};
}

void RunReport::takeState(const accrue::StateChanged& body) {
  const auto state = accrue::run_state_from(body.state);
  if (!state) return;
  if (setState(*state, fromView(body.detail))) stateMoved_ = true;
  if (state_ != accrue::RunState::paused) held_.reset();
}

bool RunReport::setState(accrue::RunState state, const QString& detail) {
  if (state == state_ && detail == stateDetail_) return false;
  state_ = state;
  stateDetail_ = detail;
  return true;
}

void RunReport::takeProblem(RunProblem problem) {
  problems_.push_back(std::move(problem));
  ++problemCount_;
  if (problems_.size() <= mostProblems) return;
  const auto newest = problems_.end() - 1;
  const auto warning = std::ranges::find(problems_.begin(), newest, false, &RunProblem::fatal);
  problems_.erase(warning == newest ? problems_.begin() : warning);
}

void RunReport::takeFinished(const accrue::RunFinished& body) {
  outcome_ = {fromView(body.outcome),
              fromView(body.reason),
              fromView(body.weights_sha256),
              body.updates,
              body.loss,
              body.seconds};
  if (accrue::is_over(state_)) return;
  setState(body.outcome == "failed" ? accrue::RunState::failed : accrue::RunState::finished, fromView(body.reason));
  stateMoved_ = true;
}

void RunReport::clear() {
  lamp_.rewind(0);
  problems_.clear();
  problemCount_ = 0;
  outcome_ = {};
  branchUpdate_ = checkpointUpdate_ = 0;
}

}  // namespace accrue::ui

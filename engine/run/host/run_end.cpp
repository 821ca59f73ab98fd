// SPDX-License-Identifier: Apache-2.0
#include "run_end.h"

#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/base/counted.h"
#include "accrue/run/events/run_state.h"

namespace accrue {
namespace {

/// Place where an unfinished run would continue, unless it is where it ended.
std::string resume_text(const CheckpointMark& newest, std::int64_t updates) {
  if (newest.valid() && newest.update >= updates) return {};
  if (updates == 0) return {};
  if (!newest.valid()) return "; no checkpoint was taken, so resuming starts over";
  return fmt::format("; resuming begins at update {}, the newest checkpoint", newest.update);
}

/// Returns "; 1 window was empty, 2 overflowed"; empty if all windows were trained on.
std::string skipped_text(const Update& last) {
  std::string text;
  if (const auto empty = last.empty_windows; empty > 0)
    text = fmt::format("; {} {} without a label", counted(empty, "window"), empty == 1 ? "was" : "were");
  if (last.overflowed_windows > 0)
    text += fmt::format("{} {} overflowed", text.empty() ? ";" : ",", counted(last.overflowed_windows, "window"));
  return text;
}

RunEvent disk_warning(std::string message, std::string what_to_do) {
  return {supervisor_rank, -1, 0, Warning{"disk", std::move(message), std::move(what_to_do), 0}};
}

}  // namespace

RunOutcome outcome_of(const LastAttempt& attempt) {
  using Ending = StopLadder::Ending;
  const auto stopped = [](const char* why) { return RunOutcome{"stopped", exit_status(ErrorCode::cancelled), why}; };
  const auto failed = [&attempt](const std::string& addition) {
    return RunOutcome{"failed", exit_status(attempt.failure->code), attempt.failure->message + addition};
  };
  const auto& reported = attempt.reported;
  if (attempt.ending == Ending::kill) return stopped("Killed by you");
  if (attempt.ending == Ending::last_failure) return stopped("Stopped by you");
  if (attempt.ending == Ending::failure && attempt.failure) return failed(attempt.no_restart);
  if (reported && reported->outcome == "finished" && !attempt.folder_lost) return {"finished", 0, {}};
  if (attempt.failure) return failed({});
  if (attempt.ending == Ending::stop || attempt.ending == Ending::save) return stopped("Stopped by you");
  if (reported && reported->outcome == "stopped")
    return stopped(attempt.launched_here ? reported->reason.c_str() : "Stopped by a signal");
  const int numerics = exit_status(ErrorCode::numerics);
  if (reported) return {reported->outcome, numerics, reported->reason};
  return {"failed", numerics, "The ranks ended without saying how"};
}

std::string ended_text(const RunFinished& end, const Update& last, bool resumable, const CheckpointMark& newest) {
  if (end.outcome == "finished" && end.updates == 0) return "Finished without an update";
  if (end.outcome == "finished" && !end.reason.empty()) return end.reason + skipped_text(last);
  const std::string loss = last.empty_windows < end.updates ? fmt::format(", loss {:.4g}", end.loss) : "";
  if (end.outcome == "finished") return "Finished " + counted(end.updates, "update") + loss + skipped_text(last);
  const std::string going_on = resumable ? resume_text(newest, end.updates) : std::string();
  if (end.outcome == "stopped")
    return fmt::format("{} after {}{}", end.reason.empty() ? "Stopped" : end.reason, counted(end.updates, "update"),
                       going_on);
  return fmt::format("Failed: {}{}", end.reason, going_on);
}

void tell_of_lost_end(std::vector<RunEvent>& shown, const Error& error) {
  const std::string reason = "The end of the run could not be recorded: " + error.message;
  for (RunEvent& event : shown) {
    if (auto* changed = std::get_if<StateChanged>(&event.body)) {
      changed->state = to_string(RunState::failed);
      changed->detail = reason;
    } else if (auto* finished = std::get_if<RunFinished>(&event.body)) {
      finished->outcome = "failed";
      finished->exit_status = exit_status(ErrorCode::disk);
      finished->reason = reason;
    }
  }
  shown.insert(shown.begin(), disk_warning(error.text(), "Resume the run once its folder can be written again"));
}

void tell_of_missing_summary(std::vector<RunEvent>& shown, const Error& error) {
  for (RunEvent& event : shown)
    if (auto* finished = std::get_if<RunFinished>(&event.body); finished != nullptr && finished->exit_status == 0)
      finished->exit_status = exit_status(ErrorCode::disk);
  shown.insert(shown.begin(),
               disk_warning(error.text(), "The run itself is recorded; \"resume\" makes its summary again"));
}

}  // namespace accrue

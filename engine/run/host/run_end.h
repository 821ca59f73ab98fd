// SPDX-License-Identifier: Apache-2.0
// End of a run: the outcome in its record, and its wording.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "failure_book.h"
#include "stop_ladder.h"

namespace accrue {

/// Facts known once all ranks of the last attempt are gone.
struct LastAttempt {
  StopLadder::Ending ending = StopLadder::Ending::none;
  std::optional<FailureBook::Failure> failure;
  std::string no_restart;               ///< addition to the failure
  std::optional<RunFinished> reported;  ///< report of rank 0
  bool folder_lost = false;
  bool launched_here = true;  ///< false: another launcher started the ranks, and may signal them
};

struct RunOutcome {
  std::string outcome;  ///< finished, stopped or failed
  int exit_status = 0;
  std::string reason;
};
RunOutcome outcome_of(const LastAttempt& attempt);

/// Returns the detail of the last state: "Stopped by you after 12 updates; resuming begins at update 10, ...".
/// `resumable`: the cause of the end may not recur; `newest`: its newest checkpoint.
std::string ended_text(const RunFinished& end, const Update& last, bool resumable, const CheckpointMark& newest);

/// Changes the shown events of an end that the folder does not record: the run is reported as failed.
void tell_of_lost_end(std::vector<RunEvent>& shown, const Error& error);
/// Does the same if only the summary is missing.
void tell_of_missing_summary(std::vector<RunEvent>& shown, const Error& error);

}  // namespace accrue

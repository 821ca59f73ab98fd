// SPDX-License-Identifier: Apache-2.0
// Behaviour of a fake rank besides training on schedule, from the environment variable ACCRUE_FAKE_RANK: entries
// separated by commas, e.g. "micro_ms=5,die=1@7:9". An entry with a rank acts on that rank only; @ names the micro-step
// in which it happens.
//   micro_ms=T         a micro-step takes T milliseconds (default 5)
//   rate=N             N micro-steps a second, each reported in a line of its own
//   join_ms=T          it takes T milliseconds to join
//   save_ms=T          rank 0 writes T milliseconds at a checkpoint, while the others wait
//   finish_ms=T        likewise the final model
//   late=R:T           what rank R sends is held back for T milliseconds, while it trains
//   absent=R           rank R never joins
//   die=R@M:S          signal S kills rank R
//   exit=R@M:S         rank R exits with status S
//   fail=R@M:C         rank R reports a failure of class C and exits with that class's status
//   stall=R@M          rank R stops making progress, but answers and sends heartbeats
//   nan=M              the loss is NaN in micro-step M: all ranks warn at the boundary, then pause (interactive) or
//                      exit with 3
//   flood=R@M:B        rank R prints B bytes to standard output
//   garble=R@M         rank R sends a damaged line
//   gap=R@M:N          rank R leaves out N numbers of its sequence
//   version=R          rank R speaks version 99 of the protocol
//   hang_on_loss=R     rank R does not notice that a peer is gone
//   deaf=R             rank R answers no command
//   once               die, exit, fail and stall happen in the run's first attempt only
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fake_rank {

struct Action {
  std::string name;
  std::int64_t rank = 0;
  std::int64_t micro_step = 0;
  std::string value;
};

class Script {
 public:
  /// From the environment; exits with status 2 on an entry it does not know.
  static Script from_environment(std::int64_t rank);

  std::int64_t number(const char* name, std::int64_t otherwise) const;
  /// An entry that names this rank, whatever the micro-step.
  bool has(const char* name) const;
  std::optional<Action> at(const char* name, std::int64_t micro_step) const;

 private:
  std::int64_t rank_ = 0;
  std::vector<Action> actions_;
};

}  // namespace fake_rank

// SPDX-License-Identifier: Apache-2.0
// Facts about one run that a lesson can check, from its spec and its events.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/events/run_event.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

struct RunFacts {
  RunSpec spec;
  std::string outcome;  ///< of run_finished; empty while the run is in progress
  std::string weights_sha256;
  std::string processor;               ///< name and instruction set; bits are equal only on equal processors
  std::vector<Update> updates;         ///< ascending; an update that was trained again counts once
  std::vector<ExactnessCheck> checks;  ///< the same
  std::int64_t reductions = 0;         ///< of gradients along the data axis, by the first rank
  std::int64_t reduced_bytes = 0;      ///< their payload
  std::int64_t activation_bytes = 0;   ///< maximum that a rank kept for later backwards

  explicit RunFacts(RunSpec spec = {}) : spec(std::move(spec)) {}
  void take(const RunEvent& event);

 private:
  std::string processor_name_;
};

/// Reads the facts of a run folder. Errors: as read_run and read_events.
Result<RunFacts> read_run_facts(const std::filesystem::path& run_dir);

}  // namespace accrue

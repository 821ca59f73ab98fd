// SPDX-License-Identifier: Apache-2.0
// What a lesson may ask about one run, taken from its spec and its events.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_event.h"
#include "accrue/run/run_spec.h"

namespace accrue {

struct RunFacts {
  RunSpec spec;
  std::string outcome;  ///< of run_finished; empty while the run goes on
  std::string weights_sha256;
  std::string processor;               ///< name and instruction set: equal bits are promised on equal ones only
  std::vector<Update> updates;         ///< by rising number; an update that was trained again counts once
  std::vector<ExactnessCheck> checks;  ///< likewise
  std::int64_t reductions = 0;         ///< of gradients along the data axis, by the first rank
  std::int64_t reduced_bytes = 0;      ///< their payload
  std::int64_t activation_bytes = 0;   ///< most that a rank kept for backwards still to come

  explicit RunFacts(RunSpec spec = {}) : spec(std::move(spec)) {}
  void take(const RunEvent& event);

 private:
  std::string processor_name_;
};

/// Of a run folder. Errors: as read_run and read_events.
Result<RunFacts> read_run_facts(const std::filesystem::path& run_dir);

}  // namespace accrue

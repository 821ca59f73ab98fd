// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run did and when, in the trace-event format that Perfetto and chrome://tracing open: a process a
// rank, a track for what it computes and one for each axis it communicates along, a span an operation with its
// micro-step, chunk or bytes, and a flow that joins the spans of one collective on all its ranks.
// Source: "Trace Event Format", the document of the Chromium project.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "accrue/run/result.h"

namespace accrue {

struct TraceCounts {
  std::int64_t ranks = 0;
  std::int64_t operations = 0;
  std::int64_t collectives = 0;  ///< spans of communication
  std::int64_t flows = 0;
  bool operator==(const TraceCounts&) const = default;
};

/// Is told how much is done, in [0, 1]; answers false to give up, which leaves no file.
using ExportProgress = std::function<bool(double)>;

/// Writes the trace of a run folder. What a resumed run did again is in it once. Errors: no run folder, a run without
/// spans (config), cannot be read or written (disk), events of another version (protocol), given up (cancelled).
Result<TraceCounts> write_chrome_trace(const std::filesystem::path& run_dir, const std::filesystem::path& file,
                                       const ExportProgress& progress = {});

}  // namespace accrue

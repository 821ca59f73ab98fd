// SPDX-License-Identifier: Apache-2.0
// Timeline of a run's ranks in the trace-event format of Perfetto and chrome://tracing. Each rank is a process, with a
// track for computation and one for each communication axis. Each operation is a span with its micro-step, chunk or
// bytes, and a flow joins the spans of one collective on all its ranks.
// Source: "Trace Event Format", the document of the Chromium project.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "accrue/run/base/result.h"

namespace accrue {

struct TraceCounts {
  std::int64_t ranks = 0;
  std::int64_t operations = 0;
  std::int64_t collectives = 0;  ///< spans of communication
  std::int64_t flows = 0;
  bool operator==(const TraceCounts&) const = default;
};

/// Called with the progress in [0, 1]; false cancels and leaves no file.
using ExportProgress = std::function<bool(double)>;

/// Writes the trace of a run folder. Work that a resumed run repeated appears once. Errors: no run folder, a run
/// without spans (config), cannot be read or written (disk), events of another version (protocol), cancelled.
Result<TraceCounts> write_chrome_trace(const std::filesystem::path& run_dir, const std::filesystem::path& file,
                                       const ExportProgress& progress = {});

}  // namespace accrue

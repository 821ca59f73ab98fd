// SPDX-License-Identifier: Apache-2.0
// One file that takes runs to another machine: *.accrue-bundle. It carries the record of each run (spec, plan, events,
// summary) as it is, byte for byte, on request its final weights, and of the studio a spec and the notes on the runs.
// It is a tar archive, compressed with gzip. Its first entry, manifest.json, names every other file with its size and
// SHA-256, in their order.
//
// Printed output of ranks and checkpoints are not included: an imported run can be shown and compared, but not resumed.
// A record contains the paths of its data and the name of its host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

struct BundleRequest {
  std::vector<std::filesystem::path> runs;  ///< their folders
  std::string spec;                         ///< the text of a spec; empty: none
  std::string notes;                        ///< a JSON object of the studio, by run id; empty: none
  bool with_weights = false;
};

struct BundleWritten {
  std::int64_t runs = 0;
  std::int64_t content_bytes = 0;  ///< of all files, uncompressed
  std::int64_t weight_bytes = 0;   ///< of them, final weights
  std::int64_t file_bytes = 0;     ///< of the bundle
};

/// Called now and then with the progress from 0 to 1; false cancels the work.
using BundleProgress = std::function<bool(double)>;

/// Writes the file whole or not at all. Errors: nothing to carry, no run folder, a run that is training, one without an
/// id, a duplicate id, with_weights but no run has any, more than an import accepts (config); a record that changes
/// meanwhile or cannot be read, a full disk (disk); cancelled.
Result<BundleWritten> write_bundle(const BundleRequest& request, const std::filesystem::path& file,
                                   const BundleProgress& go_on = {});
/// Bytes of a run's final weights that a bundle would carry; 0 if it has none.
std::int64_t bundled_weight_bytes(const std::filesystem::path& run_dir);

struct BundledRun {
  std::string run_id;
  std::string name;
  std::filesystem::path dir;
  bool was_there = false;  ///< it existed with the same record, so nothing was written
};

struct BundleContents {
  std::vector<BundledRun> runs;
  std::string spec;  ///< as in BundleRequest
  std::string notes;
  bool ignores_layout = false;  ///< an older bundle, with a window layout, which nothing reads any more
};

/// Makes a folder for each run in runs_dir, named by its id and marked as imported. Nothing is overwritten, and after
/// an error nothing new remains. Errors: no such file, a run whose id exists with another record (config); not a
/// bundle, or one that is damaged, cut short, larger than it says or from a newer version (protocol); no space or not
/// writable (disk); cancelled.
Result<BundleContents> import_bundle(const std::filesystem::path& file, const std::filesystem::path& runs_dir,
                                     const BundleProgress& go_on = {});

}  // namespace accrue

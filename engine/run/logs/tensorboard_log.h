// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files, read: the scalars of a log folder by tag, as TensorBoard shows them. Files come from other
// programs and may be damaged, cut short or hostile: every length has a limit, and both checksums of a record are
// compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_log.h"

namespace accrue {

/// Reads the records of a run's files, in their order, and of what they hold the scalars: simple values, and tensors of
/// one float or double. Where a program was started again, what it had said from there on is dropped: at the start of a
/// session, and in files without a version at a step that lies before the last one.
class TensorboardReader {
 public:
  /// A damaged record ends the file with a sentence in the problems, as does one that is cut short. go_on is asked now
  /// and then; false ends it.
  void read(std::string_view bytes, const std::string& name, const std::function<bool()>& go_on = {});
  /// By step; of a step that is told twice the later value. Steps below 0 are left out, with a sentence in the
  /// problems.
  RunLog log() &&;

 private:
  bool take(std::string_view event);
  void add(std::string_view value, LoggedScalar at);
  void purge(std::int64_t from, const std::vector<std::string>& tags);

  RunLog log_;
  bool versioned_ = false;
  std::int64_t last_step_ = 0;
  std::size_t count_ = 0;
  std::size_t negative_ = 0;
  bool full_ = false;
};

/// Whether bytes begin with a record of an event file.
bool looks_like_events(std::string_view bytes);
/// An event file that may hold scalars, by its name.
bool is_event_file(const std::filesystem::path& path);

/// The runs of one file, of a folder of event files, or of its folders. A folder train with one named validation or the
/// like is one run: the tags of the latter then begin with "validation/". A folder in that of a run that holds single
/// values alone is no run, and is named in the problems. Errors: no event file, no scalar in them
/// (config), unreadable (disk), go_on said false (cancelled).
Result<std::vector<RunLog>> read_tensorboard(const std::filesystem::path& path,
                                             const std::function<bool()>& go_on = {});

}  // namespace accrue

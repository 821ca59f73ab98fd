// SPDX-License-Identifier: Apache-2.0
// Reader of TensorBoard's event files: the scalars of a log folder by tag, as TensorBoard shows them. Files may be
// damaged, cut short or hostile: every length has a limit, and both checksums of a record are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/run_log.h"

namespace accrue {

/// Reader of the records of a run's files, in order; keeps their scalars: simple values, and tensors of one float or
/// double. If a program was restarted, its earlier values from there on are dropped: at the start of a session, and in
/// files without a version at a step before the last one.
class TensorboardReader {
 public:
  /// A damaged or incomplete record ends the file, with a sentence in the problems. go_on is called now and then; false
  /// cancels.
  void read(std::string_view bytes, const std::string& name, const std::function<bool()>& go_on = {});
  /// Returns the scalars by step; for a duplicate step the later value. Steps below 0 are skipped, with a sentence in
  /// the problems.
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
/// Whether the name is that of an event file with scalars.
bool is_event_file(const std::filesystem::path& path);

/// Returns the runs of one file, of a folder of event files, or of its folders. A folder train with a folder validation
/// or similar is one run: tags of the latter then begin with "validation/". A folder inside a run's folder that holds
/// only single values is not a run, and is named in the problems. Errors: no event file, no scalar (config), unreadable
/// (disk), cancelled.
Result<std::vector<RunLog>> read_tensorboard(const std::filesystem::path& path,
                                             const std::function<bool()>& go_on = {});

}  // namespace accrue

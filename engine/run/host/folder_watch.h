// SPDX-License-Identifier: Apache-2.0
// Whether a run can still be recorded: its folder, its lock and its record are what their names lead to, and the disk
// takes what is written. Open descriptors outlive a folder that is removed or renamed, so nothing else would notice:
// the record would go nowhere, and without run.lock a second supervisor would be let in. Thread: engine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "accrue/run/result.h"

namespace accrue {

class FolderWatch {
 public:
  using Clock = std::chrono::steady_clock;

  FolderWatch() = default;
  /// Remembers what the names lead to now.
  explicit FolderWatch(std::filesystem::path dir);

  struct Loss {
    Error error;                 ///< class disk
    bool folder_remains = true;  ///< a checkpoint can still be saved in it
  };
  /// What is not there any more, or is another file; empty if all is well.
  std::optional<Loss> look() const;
  /// The same, but a loss is reported once.
  std::optional<Loss> look_once();
  /// The same once an interval.
  std::optional<Loss> look_if_due(Clock::time_point now);
  bool lost() const { return lost_; }
  /// Time between two looks: a loss is reported within a second.
  static constexpr std::chrono::milliseconds interval{500};

  /// A write failed. True the first time: the run has to end. Of what fails while the end is recorded, the first error
  /// is kept.
  bool disk_failed(const Error& error);
  /// Lines of the record are missing.
  bool disk_has_failed() const { return disk_ == Disk::failed; }
  /// From now on the end of the run is recorded.
  void begin_end() { disk_ = Disk::ending; }
  /// Why the end could not be recorded.
  const std::optional<Error>& end_error() const { return end_error_; }

 private:
  enum class Disk { works, failed, ending };
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };
  static Identity identity_of(const std::filesystem::path& path);
  static bool is_lost(const std::filesystem::path& path, const Identity& had);

  std::filesystem::path dir_;
  Identity folder_;
  Identity lock_;
  Identity events_;
  bool lost_ = false;
  Clock::time_point next_look_{};
  Disk disk_ = Disk::works;
  std::optional<Error> end_error_;
};

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Checks that a run can still be recorded: its folder, lock and record still have their names, and the disk accepts
// writes. Open descriptors outlive a removed or renamed folder. Without this check the record would be lost silently,
// and without run.lock a second supervisor could start. Thread: engine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "accrue/run/base/result.h"

namespace accrue {

class FolderWatch {
 public:
  using Clock = std::chrono::steady_clock;

  FolderWatch() = default;
  /// Remembers the files behind the names.
  explicit FolderWatch(std::filesystem::path dir);

  struct Loss {
    Error error;                 ///< class disk
    bool folder_remains = true;  ///< a checkpoint can still be saved in the folder
  };
  /// Returns the file that is gone or was replaced; empty if all is well.
  std::optional<Loss> look() const;
  /// Does the same, but reports a loss once.
  std::optional<Loss> look_once();
  /// Does the same, once per interval.
  std::optional<Loss> look_if_due(Clock::time_point now);
  bool lost() const { return lost_; }
  /// Time between two checks: a loss is reported within a second.
  static constexpr std::chrono::milliseconds interval{500};

  /// Records that a write failed. Returns true the first time: the run has to end. Of the errors while the end is
  /// recorded, the first is kept.
  bool disk_failed(const Error& error);
  /// Whether lines of the record are missing.
  bool disk_has_failed() const { return disk_ == Disk::failed; }
  /// From now on the end of the run is recorded.
  void begin_end() { disk_ = Disk::ending; }
  /// Returns why the end could not be recorded.
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

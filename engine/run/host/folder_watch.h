// SPDX-License-Identifier: Apache-2.0
// Whether a run's folder, its lock and its record are still what their names lead to. Open descriptors outlive a folder
// that is removed or renamed, so nothing else would tell: the record would go nowhere, and without run.lock a second
// supervisor would be let in. Thread: engine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "accrue/run/result.h"

namespace accrue {

class FolderWatch {
 public:
  FolderWatch() = default;
  /// Remembers what the names lead to now.
  explicit FolderWatch(std::filesystem::path dir);

  struct Loss {
    Error error;                 ///< class disk
    bool folder_remains = true;  ///< a checkpoint can still be saved in it
  };
  /// What is not there any more, or is another file; empty if all is well.
  std::optional<Loss> look() const;
  /// Time between two looks: what is taken away is said within a second.
  static constexpr std::chrono::milliseconds interval{500};

 private:
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
};

}  // namespace accrue

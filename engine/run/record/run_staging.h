// SPDX-License-Identifier: Apache-2.0
// Where runs that are imported are made before they are runs: a hidden folder beside their places, gone with the
// object.
#pragma once

#include <filesystem>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

class RunStaging {
 public:
  /// Makes runs_dir and the folder in it. What a killed import left in runs_dir is removed. Errors: disk.
  static Result<RunStaging> make(const std::filesystem::path& runs_dir);
  RunStaging(RunStaging&& other) noexcept;
  RunStaging& operator=(RunStaging&&) = delete;
  ~RunStaging();

  const std::filesystem::path& dir() const { return dir_; }
  /// Moves these folders of dir() into runs_dir, all or none; an empty folder in a place gives way. Errors: something
  /// of that name is there (config), disk.
  Result<void> take_places(const std::vector<std::string>& names);

 private:
  RunStaging(std::filesystem::path dir, int fd) : dir_(std::move(dir)), fd_(fd) {}

  std::filesystem::path dir_;
  int fd_ = -1;  ///< holds the folder's lock: another import does not take it for a leftover
};

}  // namespace accrue

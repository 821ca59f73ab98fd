// SPDX-License-Identifier: Apache-2.0
// Staging folder of imported runs: a hidden folder beside their destinations, removed with the object.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {

class RunStaging {
 public:
  /// Makes runs_dir and the folder in it. Removes remains of a killed import from runs_dir. Errors: disk.
  static Result<RunStaging> make(const std::filesystem::path& runs_dir);
  RunStaging(RunStaging&&) = default;
  RunStaging& operator=(RunStaging&&) = delete;
  ~RunStaging();

  const std::filesystem::path& dir() const { return dir_; }
  /// Moves these folders of dir() into runs_dir, all or none; replaces empty folders. Errors: the name exists (config),
  /// disk.
  Result<void> take_places(const std::vector<std::string>& names);

 private:
  RunStaging(std::filesystem::path dir, OwnedFd fd) : dir_(std::move(dir)), fd_(std::move(fd)) {}

  std::filesystem::path dir_;
  OwnedFd fd_;  ///< holds the folder's lock, so that another import does not remove it
};

}  // namespace accrue

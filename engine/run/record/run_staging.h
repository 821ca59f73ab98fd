// SPDX-License-Identifier: Apache-2.0
// Staging folder of imported runs: a hidden folder beside their destinations, removed with the object.
#pragma once

#include <filesystem>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

class RunStaging {
 public:
  /// Makes runs_dir and the folder in it. Removes remains of a killed import from runs_dir. Errors: disk.
  static Result<RunStaging> make(const std::filesystem::path& runs_dir);
  RunStaging(RunStaging&& other) noexcept;
  RunStaging& operator=(RunStaging&&) = delete;
  ~RunStaging();

  const std::filesystem::path& dir() const { return dir_; }
  /// Moves these folders of dir() into runs_dir, all or none; replaces empty folders. Errors: the name exists (config),
  /// disk.
  Result<void> take_places(const std::vector<std::string>& names);

 private:
  RunStaging(std::filesystem::path dir, int fd) : dir_(std::move(dir)), fd_(fd) {}

  std::filesystem::path dir_;
  int fd_ = -1;  ///< holds the folder's lock, so that another import does not remove it
};

}  // namespace accrue

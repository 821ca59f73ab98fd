// SPDX-License-Identifier: Apache-2.0
// The folder that save_state() replaces as a whole: files are written into a folder beside it, which takes its place by
// one rename. The next save removes remains of a killed one, and so does a load unless another process is saving. The
// program's own files in the folder are kept. Thread: the training thread of rank 0, except for the paths.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "accrue/comm/communicator.h"
#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue::accelerate {

class StateFolder {
 public:
  explicit StateFolder(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return target_; }
  /// Folder that a save writes to between begin() and commit().
  const std::filesystem::path& part() const { return part_; }
  static std::filesystem::path model_file(const std::filesystem::path& in) { return in / "model.safetensors"; }
  static std::filesystem::path shared_file(const std::filesystem::path& in) { return in / "state.safetensors"; }
  static std::filesystem::path rank_file(const std::filesystem::path& in, std::int64_t rank);

  /// Begins a save. Errors, here and below: disk.
  Result<void> begin();
  /// Replaces the folder by the part.
  Result<void> commit();
  /// Call before a load: restores the folder of the last committed save, with the program's own files.
  Result<void> settle();

 private:
  Result<void> give_name_back();
  Result<void> clear_beside();
  Result<void> remove_after(const std::filesystem::path& old);
  bool put_in_place();
  bool lock(int how);

  std::filesystem::path target_;
  std::filesystem::path parent_;
  std::filesystem::path part_;
  std::filesystem::path replaced_;
  OwnedFd lock_;  ///< the open parent folder: saves lock it shared, a load exclusively to clean up
};

/// Returns the first error of any rank: this rank's own, or a note about the others. Collective: the axis.
Result<void> agreed(Result<void> mine, Communicator& axis, const std::filesystem::path& folder);
/// Saves on all ranks: `write` puts this one's files into the part. Collective: the axis.
Result<void> save_folder(const std::filesystem::path& path, Communicator& axis,
                         const std::function<Result<void>(const std::filesystem::path& part)>& write);
/// Runs the work without a graph; turns exceptions into an error that names the file.
Result<void> guarded(const std::filesystem::path& file, const char* hint, const std::function<Result<void>()>& work);

}  // namespace accrue::accelerate

// SPDX-License-Identifier: Apache-2.0
// A file system that cannot exchange two names (NFS, some of FUSE) takes two renames. A kill between them leaves the
// folder under another name; the next caller restores it.
#include "accumulation/accelerate/state_folder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "accrue/run/base/sync_path.h"
#include "checkpoint/checkpoint_folders.h"

namespace accrue::accelerate {

namespace fs = std::filesystem;

namespace {

bool is_ours(const fs::path& name) {
  const std::string text = name.string();
  return name == StateFolder::model_file({}) || name == StateFolder::shared_file({}) ||
         (text.starts_with("rank-") && text.ends_with(".safetensors"));
}

}  // namespace

StateFolder::StateFolder(const fs::path& folder)
    : target_(folder.has_filename() ? folder : folder.parent_path()),
      parent_(target_.has_parent_path() ? target_.parent_path() : fs::path(".")),
      part_(target_.parent_path() / ("." + target_.filename().string() + ".part")),
      replaced_(target_.parent_path() / ("." + target_.filename().string() + ".replaced")) {}

fs::path StateFolder::rank_file(const fs::path& in, std::int64_t rank) {
  return in / ("rank-" + std::to_string(rank) + ".safetensors");
}

/// Returns false if another process holds it, or the file system has no locks.
bool StateFolder::lock(int how) {
  if (!lock_) lock_ = OwnedFd(::open(parent_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return lock_ && ::flock(lock_.get(), how | LOCK_NB) == 0;
}

Result<void> StateFolder::begin() {
  std::error_code failure;
  fs::create_directories(parent_, failure);
  lock(LOCK_SH);
  if (auto given = give_name_back(); !given) return given;
  if (auto cleared = clear_beside(); !cleared) return cleared;
  fs::create_directories(part_, failure);
  if (failure) return disk_failure(part_, "the folder could not be made", failure.value());
  return {};
}

Result<void> StateFolder::commit() {
  if (auto synced = sync_path(part_); !synced) return synced;
  if (!put_in_place()) return disk_failure(target_, "the state could not be put in place", errno);
  if (auto synced = sync_path(parent_); !synced) return synced;
  return clear_beside();
}

Result<void> StateFolder::settle() {
  if (auto given = give_name_back(); !given) return given;
  // The state is complete: the next save removes, or reports, what cannot be removed now.
  if (lock(LOCK_EX)) static_cast<void>(clear_beside());
  if (lock_) ::flock(lock_.get(), LOCK_UN);
  return {};
}

/// After a save that was killed between its two renames.
Result<void> StateFolder::give_name_back() {
  std::error_code failure;
  if (!fs::exists(target_, failure) && fs::exists(replaced_, failure)) fs::rename(replaced_, target_, failure);
  if (failure) return disk_failure(replaced_, "the state could not be given its name back", failure.value());
  return {};
}

Result<void> StateFolder::clear_beside() {
  std::error_code failure;
  for (const fs::path& old : {replaced_, part_})
    if (fs::exists(old, failure))
      if (auto removed = remove_after(old); !removed) return removed;
  return {};
}

/// Removes an obsolete folder, after moving the program's own files from it to the folder with its name.
Result<void> StateFolder::remove_after(const fs::path& old) {
  std::error_code failure;
  std::vector<fs::path> others;
  for (fs::directory_iterator at(old, failure), end; !failure && at != end; at.increment(failure))
    if (!is_ours(at->path().filename())) others.push_back(at->path().filename());
  if (!failure && !others.empty()) fs::create_directories(target_, failure);  // it may have been removed meanwhile
  for (const fs::path& name : others)
    if (!failure && !fs::exists(target_ / name, failure)) fs::rename(old / name, target_ / name, failure);
  if (!failure) fs::remove_all(old, failure);
  if (failure)
    return disk_failure(old, "the state is whole, but what it has replaced could not be cleared", failure.value());
  return {};
}

/// Returns false if renaming failed; see errno.
bool StateFolder::put_in_place() {
  std::error_code ignored;
  if (!fs::exists(target_, ignored)) return ::rename(part_.c_str(), target_.c_str()) == 0;
  if (::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (::rename(target_.c_str(), replaced_.c_str()) != 0) return false;
  if (::rename(part_.c_str(), target_.c_str()) == 0) return true;
  const int failed = errno;
  ::rename(replaced_.c_str(), target_.c_str());
  errno = failed;
  return false;
}

Result<void> agreed(Result<void> mine, Communicator& axis, const fs::path& folder) {
  at::Tensor failed = at::full({1}, mine ? 0.0 : 1.0, at::kDouble);
  axis.all_reduce(failed);
  if (mine && failed.item<double>() > 0.0)
    return fail(ErrorCode::disk, "another rank failed on its part of the state", folder.string());
  return mine;
}

Result<void> save_folder(const fs::path& path, Communicator& axis,
                         const std::function<Result<void>(const fs::path& part)>& write) {
  StateFolder folder(path);
  const bool first = axis.rank() == 0;
  if (auto done = agreed(first ? folder.begin() : Result<void>(), axis, path); !done) return done;
  if (auto done = agreed(write(folder.part()), axis, path); !done) return done;
  return agreed(first ? folder.commit() : Result<void>(), axis, path);
}

Result<void> guarded(const fs::path& file, const char* hint, const std::function<Result<void>()>& work) {
  try {
    const at::NoGradGuard no_grad;
    return work();
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& failure) {
    return fail(ErrorCode::protocol, failure.what(), file.string(), hint);
  }
}

}  // namespace accrue::accelerate

// SPDX-License-Identifier: Apache-2.0
#include "run_staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "accrue/run/base/sync_path.h"
#include "accrue/run/record/run_store.h"
#include "posix_file.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view prefix = ".import-";
constexpr std::string_view suffix = ".part";

/// The folder with its lock; none if another process holds it, or it is gone.
OwnedFd lock_folder(const fs::path& dir) {
  OwnedFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  const bool held = fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(fd.get(), &facts) == 0;
  return held && facts.st_nlink > 0 ? std::move(fd) : OwnedFd();
}

/// Renames without replacing anything; errno, or 0. Some file systems cannot guarantee this: there the destination is
/// checked first.
int rename_to_free(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  struct stat facts {};
  if (::lstat(to.c_str(), &facts) == 0) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

void clear_killed_imports(const fs::path& runs_dir) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(runs_dir, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(suffix)) found.push_back(at->path());
  }
  for (const fs::path& dir : found)
    if (const OwnedFd lock = lock_folder(dir); lock) fs::remove_all(dir, error);
}

}  // namespace

Result<RunStaging> RunStaging::make(const fs::path& runs_dir) {
  std::error_code error;
  fs::create_directories(runs_dir, error);
  if (error) return disk_error(runs_dir, "cannot be created", error.value());
  clear_killed_imports(runs_dir);
  while (true) {
    const fs::path dir = runs_dir / (std::string(prefix) + new_run_id() + std::string(suffix));
    if (::mkdir(dir.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return disk_error(runs_dir, "cannot be written", errno);
    }
    // Another import may have removed it as a leftover before it was locked.
    if (OwnedFd lock = lock_folder(dir); lock) return RunStaging(dir, std::move(lock));
    ::rmdir(dir.c_str());
  }
}

RunStaging::~RunStaging() {
  std::error_code ignored;
  if (fd_) fs::remove_all(dir_, ignored);
}

Result<void> RunStaging::take_places(const std::vector<std::string>& names) {
  const fs::path runs_dir = dir_.parent_path();
  std::vector<std::string> placed;
  const auto take_back = [&] {
    for (const std::string& name : placed) std::rename((runs_dir / name).c_str(), (dir_ / name).c_str());
  };
  for (const std::string& name : names) {
    const fs::path place = runs_dir / name;
    ::rmdir(place.c_str());  // if it is an empty folder
    const int failed = rename_to_free(dir_ / name, place);
    if (failed == 0) {
      placed.push_back(name);
      continue;
    }
    take_back();
    if (failed == EEXIST)
      return fail(ErrorCode::config, "is there already and is not that run", place.string(),
                  "Move it away, or choose another folder; nothing was imported");
    return disk_error(place, "the run cannot be put there, and nothing was imported", failed);
  }
  if (auto synced = sync_path(runs_dir); !synced) {
    take_back();
    return synced;
  }
  return {};
}

}  // namespace accrue

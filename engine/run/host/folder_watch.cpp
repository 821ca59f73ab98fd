// SPDX-License-Identifier: Apache-2.0
#include "folder_watch.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace accrue {

FolderWatch::FolderWatch(std::filesystem::path dir)
    : dir_(std::move(dir)),
      folder_(identity_of(dir_)),
      lock_(identity_of(dir_ / "run.lock")),
      events_(identity_of(dir_ / "events.jsonl")) {}

FolderWatch::Identity FolderWatch::identity_of(const std::filesystem::path& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino};
}

/// Another file system error (EIO, a stale handle) is not a loss yet: the next check decides.
bool FolderWatch::is_lost(const std::filesystem::path& path, const Identity& had) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return errno == ENOENT || errno == ENOTDIR;
  return Identity{facts.st_dev, facts.st_ino} != had;
}

std::optional<FolderWatch::Loss> FolderWatch::look() const {
  if (is_lost(dir_, folder_))
    return Loss{{ErrorCode::disk, "the run folder was removed or renamed while the run trained", dir_.string(),
                 "What was saved before lies where the folder is now, if anywhere"},
                false};
  if (is_lost(dir_ / "run.lock", lock_))
    return Loss{{ErrorCode::disk, "the lock was removed while the run trained, so another process could train it, too",
                 (dir_ / "run.lock").string(),
                 "Resume the run; nothing in its folder is to be removed while it trains"}};
  if (is_lost(dir_ / "events.jsonl", events_))
    return Loss{{ErrorCode::disk, "the record was removed while the run trained, so nothing more is written down",
                 (dir_ / "events.jsonl").string(),
                 "Resume the run; nothing in its folder is to be removed while it trains"}};
  return std::nullopt;
}

std::optional<FolderWatch::Loss> FolderWatch::look_once() {
  if (lost_) return std::nullopt;
  auto loss = look();
  lost_ = loss.has_value();
  return loss;
}

std::optional<FolderWatch::Loss> FolderWatch::look_if_due(Clock::time_point now) {
  if (now < next_look_) return std::nullopt;
  next_look_ = now + interval;
  return look_once();
}

bool FolderWatch::disk_failed(const Error& error) {
  if (disk_ == Disk::ending && !end_error_) end_error_ = error;
  if (disk_ != Disk::works) return false;
  disk_ = Disk::failed;
  return true;
}

}  // namespace accrue

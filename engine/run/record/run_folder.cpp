// SPDX-License-Identifier: Apache-2.0
#include "run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "accrue/run/record/leftovers.h"
#include "posix_file.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

// Files that RunWriter::create() makes before plan.json, in order. Folders count only while empty.
constexpr std::array<std::string_view, 6> made_before_plan = {"ranks",           "checkpoints", ".spec.toml.part",
                                                              ".plan.json.part", "spec.toml",   "events.jsonl"};

bool is_made_before_plan(const fs::path& entry) {
  if (std::ranges::find(made_before_plan, entry.filename().string()) == made_before_plan.end()) return false;
  std::error_code error;
  const auto status = fs::symlink_status(entry, error);
  if (fs::is_directory(status)) return fs::is_empty(entry, error) && !error;
  if (!fs::is_regular_file(status)) return false;
  return entry.filename() != "events.jsonl" || (fs::file_size(entry, error) == 0 && !error);
}

}  // namespace

Result<void> make_own_folder(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir.parent_path(), error);
  if (error) return disk_error(dir, "cannot be created", error.value());
  if (::mkdir(dir.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return disk_error(dir, "cannot be created", errno);
  struct stat facts {};
  if (::lstat(dir.c_str(), &facts) != 0) return disk_error(dir, "cannot be examined", errno);
  if (S_ISLNK(facts.st_mode))
    return fail(ErrorCode::config, "is a link, which a run folder cannot be", dir.string(),
                "Give the folder that it points to, or a new one");
  if (!S_ISDIR(facts.st_mode))
    return fail(ErrorCode::config, "is not a folder", dir.string(), "Choose a new or an empty folder");
  if (facts.st_uid != ::geteuid())
    return fail(ErrorCode::config, "belongs to another user", dir.string(), "Choose a folder of your own");
  constexpr mode_t writable_by_others = S_IWGRP | S_IWOTH;
  if ((facts.st_mode & writable_by_others) != 0 &&
      ::chmod(dir.c_str(), facts.st_mode & 0777 & ~writable_by_others) != 0)
    return disk_error(dir, "cannot be closed to other users", errno);
  return {};
}

Result<bool> is_free_folder(const fs::path& dir) {
  std::error_code error;
  const bool was_begun = fs::exists(dir / "run.lock", error);  // a start takes the lock before it makes anything else
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error))
    if (at->path().filename() != "run.lock" && !(was_begun && is_made_before_plan(at->path()))) return false;
  if (error) return disk_error(dir, "cannot be read", error.value(), FileUse::read);
  return true;
}

Result<void> check_free(const fs::path& dir) {
  const auto free = is_free_folder(dir);
  if (!free) return tl::unexpected(free.error());
  if (*free) return {};
  std::error_code error;
  if (fs::exists(dir / "events.jsonl", error) || fs::exists(dir / "plan.json", error))
    return fail(ErrorCode::config, "the folder already holds a run", dir.string(),
                "Continue it with \"resume\", or choose another folder");
  return fail(ErrorCode::config, "the folder is not empty", dir.string(), "Choose a new or an empty folder");
}

Result<void> check_not_imported(const fs::path& dir) {
  std::error_code error;
  if (!fs::exists(dir / import_mark, error)) return {};
  return fail(ErrorCode::config, "was imported, and its checkpoints stayed where it was trained", dir.string(),
              "Resume it there; \"accrue-run run\" with its spec.toml trains it anew");
}

void clear_failed_start(const fs::path& dir) {
  std::error_code error;
  for (const auto name : made_before_plan)
    if (is_made_before_plan(dir / name)) fs::remove(dir / name, error);
}

void clear_leftovers(const fs::path& dir) {
  for (const auto& folder : {dir, dir / "checkpoints", dir / "final"}) clear_leftovers_in(folder);
}

}  // namespace accrue

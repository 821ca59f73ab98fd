// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint_folders.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <system_error>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/sync_path.h"
#include "accrue/run/record/best_checkpoint.h"
#include "accrue/run/record/leftovers.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/manifest.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

std::string random_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 12; ++i) token += "0123456789abcdefghijklmnopqrstuv"[random() & 31];
  return token;
}

std::vector<std::string> names_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  return names;
}

std::set<std::string> kept(const fs::path& run_dir, const std::vector<std::string>& newest_first, std::int64_t keep) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(keep, 2));
  std::set<std::string> names(newest_first.begin(),
                              newest_first.begin() + static_cast<std::ptrdiff_t>(std::min(count, newest_first.size())));
  for (const std::string& name : newest_first) {
    const auto manifest = read_manifest(checkpoints_dir(run_dir) / name);
    if (!manifest || !manifest->cursor.finite) continue;
    names.insert(name);
    break;
  }
  if (const auto best = best_checkpoint(run_dir)) names.insert(checkpoint_name(best->mark));
  return names;
}

}  // namespace

tl::unexpected<Error> disk_failure(const fs::path& path, const std::string& what, int error) {
  return fail(ErrorCode::disk, what + ": " + std::strerror(error), path.string());
}

fs::path checkpoints_dir(const fs::path& run_dir) {
  return run_dir / "checkpoints";
}

Result<std::vector<std::string>> committed_checkpoints(const fs::path& run_dir) {
  std::error_code error;
  std::vector<std::string> names = names_in(checkpoints_dir(run_dir), error);
  if (error && error != std::errc::no_such_file_or_directory)
    return disk_failure(checkpoints_dir(run_dir), "the folder cannot be read", error.value());
  std::erase_if(names, [](const std::string& name) { return !checkpoint_mark(name).valid(); });
  std::ranges::sort(names, std::ranges::greater(), checkpoint_mark);
  return names;
}

Result<fs::path> make_part_folder(const fs::path& run_dir, const CheckpointMark& mark) {
  const fs::path parent = checkpoints_dir(run_dir);
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return disk_failure(parent, "the folder cannot be made", error.value());
  const fs::path part = parent / ("." + checkpoint_name(mark) + "." + random_token() + ".part");
  if (!fs::create_directory(part, error)) return disk_failure(part, "the folder cannot be made", error.value());
  return part;
}

Result<void> write_synced(const fs::path& file, const std::string& text) {
  OwnedFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return disk_failure(file, "the file cannot be made", errno);
  std::size_t done = 0;
  int failed = 0;
  while (done < text.size() && failed == 0) {
    const auto count = ::write(fd.get(), text.data() + done, text.size() - done);
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      failed = errno;
  }
  if (failed == 0 && ::fsync(fd.get()) != 0) failed = errno;
  if (const int error = fd.close(); failed == 0) failed = error;
  if (failed) return disk_failure(file, "the file cannot be written", failed);
  return {};
}

Result<void> commit_folder(const fs::path& part, const std::string& name) {
  const fs::path parent = part.parent_path();
  const fs::path target = parent / name;
  if (auto synced = sync_path(part); !synced) return synced;
  std::error_code error;
  fs::path replaced;
  if (fs::exists(target, error)) {
    const auto moved = set_aside(target, "replaced");
    if (!moved) return tl::unexpected(moved.error());
    replaced = parent / *moved;
  }
  fs::rename(part, target, error);
  if (error) {
    std::error_code back;
    if (!replaced.empty()) fs::rename(replaced, target, back);
    return disk_failure(target, "the checkpoint cannot be given its name", error.value());
  }
  return sync_path(parent);
}

Result<void> retain_checkpoints(const fs::path& run_dir, std::int64_t keep) {
  const fs::path folder = checkpoints_dir(run_dir);
  const auto committed = committed_checkpoints(run_dir);
  if (!committed) return tl::unexpected(committed.error());
  const std::set<std::string> stay = kept(run_dir, *committed, keep);
  std::error_code ignored;
  const bool clean = std::ranges::none_of(names_in(folder, ignored), is_leftover);
  if (committed->empty() || (clean && stay.size() == committed->size())) return {};

  const std::string& newest = committed->front();
  if (auto verified = verify_checkpoint(folder / newest, newest); !verified)
    return fail(ErrorCode::disk, "the checkpoint does not read back as it was written: " + verified.error().message,
                (folder / newest / verified.error().where).string(), "Check the disk.");
  for (const std::string& name : *committed)
    if (!stay.contains(name)) fs::rename(folder / name, folder / (".trash-" + name + "." + random_token()), ignored);
  clear_leftovers_in(folder);
  return {};
}

}  // namespace accrue

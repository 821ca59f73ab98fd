// SPDX-License-Identifier: Apache-2.0
// Problem: the file is untrusted, and the destination folder holds weeks of work. Solution: every entry must be the
// next one of the manifest, with its size and hash. All entries are first written into a hidden folder. Only when the
// last byte was right does each run get its place, by a rename that replaces nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/sha256.h"
#include "accrue/run/base/sync_path.h"
#include "accrue/run/export/bundle.h"
#include "accrue/run/record/run_store.h"
#include "bundle_archive.h"
#include "bundle_manifest.h"
#include "posix_file.h"
#include "run_staging.h"

namespace accrue {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t spare_bytes = std::int64_t{16} << 20;

/// A file of the staging folder while it is written; a text is kept in memory instead.
class Target {
 public:
  explicit Target(std::string& text) : text_(&text) {}
  Target(const fs::path& path, OwnedFd fd) : path_(path), fd_(std::move(fd)) {}
  /// Discards what is read.
  Target() = default;

  Result<void> add(std::string_view bytes) {
    if (text_ != nullptr) text_->append(bytes);
    if (!fd_) return {};
    const int error = write_all(fd_.get(), bytes);
    return error == 0 ? Result<void>() : disk_error(path_, "cannot be written, and nothing was imported", error);
  }
  Result<void> finish() {
    if (!fd_ || ::fdatasync(fd_.get()) == 0) return {};
    return disk_error(path_, "cannot be brought to the disk, and nothing was imported", errno);
  }

 private:
  fs::path path_;
  OwnedFd fd_;
  std::string* text_ = nullptr;
};

/// Empty if there is no regular file to read.
std::string hash_of(const fs::path& path) {
  const auto fd = open_regular(path, O_RDONLY);
  if (!fd) return {};
  Sha256 hash;
  std::string slice(std::size_t{256} << 10, '\0');
  ssize_t count = 0;
  do {
    count = ::read(fd->get(), slice.data(), slice.size());
    if (count > 0) hash.update(slice.data(), static_cast<std::size_t>(count));
  } while (count > 0 || (count < 0 && errno == EINTR));
  return count == 0 ? hash.hex() : std::string();
}

class BundleImporter {
 public:
  BundleImporter(const fs::path& file, const fs::path& runs_dir, const BundleProgress& go_on)
      : file_(file), runs_dir_(runs_dir), go_on_(go_on) {}

  Result<BundleContents> import() {
    auto archive = ArchiveReader::open(file_);
    if (!archive) return tl::unexpected(archive.error());
    auto manifest = manifest_of(*archive);
    if (!manifest) return tl::unexpected(manifest.error());
    manifest_ = std::move(*manifest);
    if (auto placed = place_runs(); !placed) return tl::unexpected(placed.error());
    if (auto room = check_room(); !room) return tl::unexpected(room.error());
    auto staging = RunStaging::make(runs_dir_);
    if (!staging) return tl::unexpected(staging.error());
    for (const ManifestFile& file : manifest_.files)
      if (auto taken = take_file(*archive, file, staging->dir()); !taken) return tl::unexpected(taken.error());
    const auto end = archive->next();
    if (!end) return tl::unexpected(end.error());
    if (*end) return refused(fmt::format("holds \"{}\", which its manifest does not name", quotable((*end)->name)));
    if (auto checked = check_runs(staging->dir()); !checked) return tl::unexpected(checked.error());
    if (auto taken = staging->take_places(fresh_); !taken) return tl::unexpected(taken.error());
    return std::move(contents_);
  }

 private:
  tl::unexpected<Error> refused(std::string what) const {
    return fail(ErrorCode::protocol, std::move(what), file_.string(), "Ask for the bundle again; nothing was imported");
  }

  Result<BundleManifest> manifest_of(ArchiveReader& archive) {
    const auto entry = archive.next();
    if (!entry) return tl::unexpected(entry.error());
    if (!*entry || (*entry)->name != manifest_entry || (*entry)->bytes > max_manifest_bytes)
      return refused("is not a bundle of Accrue: it does not begin with a manifest");
    std::string text;
    Target target(text);
    if (auto copied = copy(archive, target, nullptr); !copied) return tl::unexpected(copied.error());
    return read_manifest(text, archive.file_bytes(), file_.string());
  }

  /// Determines which runs are new, and which exist with the same record.
  Result<void> place_runs() {
    std::multimap<std::string, fs::path> there;
    for (const RunSummary& run : list_runs(runs_dir_)) there.emplace(run.run_id, run.dir);
    for (const ManifestRun& run : manifest_.runs) {
      BundledRun bundled{.run_id = run.run_id, .name = run.name, .dir = runs_dir_ / run.run_id};
      const auto [first, last] = there.equal_range(run.run_id);
      if (first != last) {
        // A copy of the folder may have continued.
        const auto same =
            std::find_if(first, last, [&](const auto& each) { return holds_record(each.second, run.run_id); });
        if (same == last)
          return fail(ErrorCode::config,
                      fmt::format("holds the run {} with another record than it has there", run.run_id),
                      first->second.string(), "Choose another folder for the import; nothing was imported");
        bundled.dir = same->second;
        bundled.was_there = true;
      } else {
        fresh_.push_back(run.run_id);
      }
      contents_.runs.push_back(std::move(bundled));
    }
    return {};
  }

  bool holds_record(const fs::path& dir, const std::string& run_id) const {
    return std::ranges::all_of(record_files, [&](std::string_view name) {
      const auto file = std::ranges::find(manifest_.files, run_entry(run_id, name), &ManifestFile::entry);
      std::error_code error;
      // A summary can be rebuilt from the other files at any time.
      if (file == manifest_.files.end()) return name == "summary.json" || !fs::exists(dir / name, error);
      return hash_of(dir / name) == file->sha256;
    });
  }

  Result<void> check_room() const {
    std::error_code error;
    fs::path place = fs::absolute(runs_dir_, error);
    while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
    const std::int64_t free = free_bytes(place);
    std::int64_t wanted = spare_bytes;
    for (const ManifestFile& file : manifest_.files)
      if (is_fresh(run_of(file.entry))) wanted += file.bytes;
    if (free < 0 || free >= wanted) return {};
    return fail(ErrorCode::disk,
                fmt::format("the bundle's runs need {} and {} are free", format_bytes(wanted), format_bytes(free)),
                runs_dir_.string(), "Free some space, or choose a folder on another disk; nothing was imported");
  }

  bool is_fresh(const std::string& run_id) const { return std::ranges::find(fresh_, run_id) != fresh_.end(); }

  Result<Target> target_of(const ManifestFile& file, const fs::path& staging) {
    if (file.entry == spec_entry) return Target(contents_.spec);
    if (file.entry == notes_entry) return Target(contents_.notes);
    if (file.entry == layout_entry) {
      contents_.ignores_layout = true;
      return Target();
    }
    const std::string run_id = run_of(file.entry);
    if (!is_fresh(run_id)) return Target();
    const fs::path path = staging / run_id / place_of(file.entry);
    for (const fs::path& dir : {staging / run_id, path.parent_path()})
      if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST)
        return disk_error(dir, "cannot be created, and nothing was imported", errno);
    OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return disk_error(path, "cannot be created, and nothing was imported", errno);
    return Target(path, std::move(fd));
  }

  Result<void> take_file(ArchiveReader& archive, const ManifestFile& file, const fs::path& staging) {
    const auto entry = archive.next();
    if (!entry) return tl::unexpected(entry.error());
    if (!*entry) return refused(fmt::format("ends before \"{}\", which its manifest names", file.entry));
    if ((*entry)->name != file.entry)
      return refused(fmt::format("holds \"{}\" where its manifest names \"{}\"", quotable((*entry)->name), file.entry));
    if ((*entry)->bytes != file.bytes)
      return refused(
          fmt::format("\"{}\" has {} bytes where its manifest says {}", file.entry, (*entry)->bytes, file.bytes));
    auto target = target_of(file, staging);
    if (!target) return tl::unexpected(target.error());
    if (auto copied = copy(archive, *target, &file); !copied) return copied;
    return target->finish();
  }

  /// Copies the entry's contents and compares them with the manifest.
  Result<void> copy(ArchiveReader& archive, Target& target, const ManifestFile* file) {
    Sha256 hash;
    bool first = file != nullptr && place_of(file->entry).starts_with("final/");
    while (true) {
      if (auto go_on = asked(archive.done()); !go_on) return go_on;
      const auto bytes = archive.read();
      if (!bytes) return tl::unexpected(bytes.error());
      if (std::exchange(first, false) && !begins_as_weights(*bytes))
        return refused(fmt::format("\"{}\" does not hold weights", file->entry));
      if (bytes->empty()) break;
      hash.update(bytes->data(), bytes->size());
      if (auto added = target.add(*bytes); !added) return added;
    }
    if (file == nullptr || hash.hex() == file->sha256) return {};
    return refused(fmt::format("\"{}\" is damaged: it has not the SHA-256 that the manifest says", file->entry));
  }

  Result<void> asked(double done) const {
    if (!go_on_ || go_on_(done)) return {};
    return fail(ErrorCode::cancelled, "the import was given up");
  }

  /// Checks that each new folder is the run of the manifest, marks it as imported, and syncs it.
  Result<void> check_runs(const fs::path& staging) const {
    for (const std::string& run_id : fresh_) {
      if (auto go_on = asked(1.0); !go_on) return go_on;
      const auto run = read_run(staging / run_id);
      if (!run || run->run_id != run_id)
        return refused(fmt::format("what it holds of {} is not the record of that run", run_id));
      if (auto marked = write_file(staging / run_id / import_mark, "{}\n"); !marked) return marked;
      std::error_code error;
      for (const fs::path& dir : {staging / run_id / "final", staging / run_id})
        if (fs::exists(dir, error))
          if (auto synced = sync_path(dir); !synced) return synced;
    }
    return {};
  }

  const fs::path& file_;
  const fs::path& runs_dir_;
  const BundleProgress& go_on_;
  BundleManifest manifest_;
  BundleContents contents_;
  std::vector<std::string> fresh_;  ///< ids of the new runs
};

}  // namespace

Result<BundleContents> import_bundle(const fs::path& file, const fs::path& runs_dir, const BundleProgress& go_on) {
  const auto dir = absolute_folder(runs_dir);
  if (!dir) return tl::unexpected(dir.error());
  return BundleImporter(file, *dir, go_on).import();
}

}  // namespace accrue

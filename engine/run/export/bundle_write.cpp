// SPDX-License-Identifier: Apache-2.0
// The manifest comes first, so every file is read twice: for its hash, and into the archive. A record that changed in
// between is an error, because the bundle could not be imported.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/sha256.h"
#include "accrue/run/export/bundle.h"
#include "accrue/run/record/run_store.h"
#include "bundle_archive.h"
#include "bundle_manifest.h"
#include "posix_file.h"

namespace accrue {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t read_bytes = std::size_t{256} << 10;

/// Source of the contents of an entry.
struct Source {
  fs::path file;
  std::string text;  ///< if there is no file
};

std::vector<fs::path> weight_files(const fs::path& run_dir) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_dir / "final", error))
    if (entry.is_regular_file(error) && is_weight_file(entry.path().filename().string())) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

class BundleWriter {
 public:
  BundleWriter(const BundleRequest& request, const BundleProgress& go_on) : request_(request), go_on_(go_on) {}

  Result<BundleWritten> write(const fs::path& file) {
    for (const auto& [entry, text] : {std::pair(spec_entry, &request_.spec), std::pair(notes_entry, &request_.notes)})
      if (auto added = add_text(std::string(entry), *text); !added) return tl::unexpected(added.error());
    for (const fs::path& run : request_.runs)
      if (auto added = add_run(run); !added) return tl::unexpected(added.error());
    if (sources_.empty()) return fail(ErrorCode::config, "there is nothing to put into a bundle", file.string());
    if (request_.with_weights && written_.weight_bytes == 0)
      return fail(ErrorCode::config, "no run of the bundle has final weights", file.string(),
                  "Only a run that has finished has some; leave them out.");
    written_.runs = static_cast<std::int64_t>(manifest_.runs.size());
    written_.content_bytes = manifest_.content_bytes();
    const std::string manifest = to_json(manifest_);
    // The compressed size is not known yet: assume no compression.
    if (auto readable = check_readable(manifest, written_.content_bytes, file); !readable)
      return tl::unexpected(readable.error());
    auto archive = ArchiveWriter::create(file);
    if (!archive) return tl::unexpected(archive.error());
    if (auto begun = archive->begin(std::string(manifest_entry), static_cast<std::int64_t>(manifest.size())); !begun)
      return tl::unexpected(begun.error());
    if (auto added = archive->add(manifest); !added) return tl::unexpected(added.error());
    for (std::size_t i = 0; i < sources_.size(); ++i)
      if (auto packed = pack(*archive, manifest_.files[i], sources_[i]); !packed) return tl::unexpected(packed.error());
    const auto bytes = archive->finish();
    if (!bytes) return tl::unexpected(bytes.error());
    if (auto readable = check_readable(manifest, *bytes, file); !readable) return tl::unexpected(readable.error());
    if (auto placed = archive->place(); !placed) return tl::unexpected(placed.error());
    written_.file_bytes = *bytes;
    return written_;
  }

 private:
  /// Checks that the importer would accept such a manifest.
  static Result<void> check_readable(const std::string& manifest, std::int64_t file_bytes, const fs::path& file) {
    const auto refused = [&](const std::string& why) {
      return fail(ErrorCode::config, "cannot be imported again: " + why, file.string(), "Put fewer runs into it");
    };
    if (static_cast<std::int64_t>(manifest.size()) > max_manifest_bytes)
      return refused(fmt::format("its manifest has {}, at most {} are read", format_bytes(manifest.size()),
                                 format_bytes(max_manifest_bytes)));
    const auto read = read_manifest(manifest, file_bytes, file.string());
    return read ? Result<void>() : refused(read.error().message);
  }

  Result<void> add_text(std::string entry, const std::string& text) {
    if (text.empty()) return {};
    return add({std::move(entry), static_cast<std::int64_t>(text.size()), sha256_hex(text)}, {{}, text});
  }

  Result<void> add(ManifestFile file, Source source) {
    if (const std::int64_t most = largest_size(file.entry); file.bytes > most)
      return fail(ErrorCode::config,
                  fmt::format("\"{}\" has {}; a bundle holds at most {} of it", file.entry, format_bytes(file.bytes),
                              format_bytes(most)),
                  source.file.string(), "Leave it out");
    manifest_.files.push_back(std::move(file));
    sources_.push_back(std::move(source));
    return {};
  }

  Result<void> add_run(const fs::path& dir) {
    const auto run = read_run(dir);
    if (!run) return tl::unexpected(run.error());
    if (run->state == "running")
      return fail(ErrorCode::config, "is being trained, and its record still grows", run->dir.string(),
                  "Wait for its end, or stop it");
    if (!is_portable_id(run->run_id))
      return fail(ErrorCode::config,
                  fmt::format("the run's id cannot name a folder on another machine: \"{}\"", quotable(run->run_id)),
                  run->dir.string(), "Leave this run out");
    if (!ids_.insert(run->run_id).second)
      return fail(ErrorCode::config, fmt::format("is the run {} once more", run->run_id), run->dir.string(),
                  "Name each run once");
    manifest_.runs.push_back({run->run_id, run->name});
    std::error_code error;
    for (const std::string_view name : record_files)
      if (fs::exists(run->dir / name, error))
        if (auto added = add_file(run_entry(run->run_id, name), run->dir / name); !added) return added;
    if (!request_.with_weights) return {};
    for (const fs::path& weights : weight_files(run->dir)) {
      const std::string place = "final/" + weights.filename().string();
      if (auto added = add_file(run_entry(run->run_id, place), weights); !added) return added;
      written_.weight_bytes += manifest_.files.back().bytes;
    }
    return {};
  }

  static tl::unexpected<Error> no_weights(const fs::path& file) {
    return fail(ErrorCode::config, "does not hold weights", file.string(), "Leave the weights out");
  }

  Result<void> add_file(std::string entry, const fs::path& file) {
    Sha256 hash;
    std::int64_t bytes = 0;
    const bool weights = place_of(entry).starts_with("final/");
    auto read = for_each_slice(file, [&](std::string_view slice) -> Result<void> {
      if (weights && bytes == 0 && !begins_as_weights(slice)) return no_weights(file);
      hash.update(slice.data(), slice.size());
      bytes += static_cast<std::int64_t>(slice.size());
      return asked(0.0);
    });
    if (!read) return read;
    if (weights && bytes == 0) return no_weights(file);
    return add({std::move(entry), bytes, hash.hex()}, {file, {}});
  }

  Result<void> pack(ArchiveWriter& archive, const ManifestFile& file, const Source& source) {
    if (auto begun = archive.begin(file.entry, file.bytes); !begun) return begun;
    if (source.file.empty()) {
      packed_ += file.bytes;
      return archive.add(source.text);
    }
    const auto changed = [&] {
      return fail(ErrorCode::disk, "changed while it was put into the bundle", source.file.string(),
                  "Wait until nothing writes to the run, and try again");
    };
    Sha256 hash;
    std::int64_t bytes = 0;
    auto read = for_each_slice(source.file, [&](std::string_view slice) -> Result<void> {
      bytes += static_cast<std::int64_t>(slice.size());
      if (bytes > file.bytes) return changed();
      hash.update(slice.data(), slice.size());
      packed_ += static_cast<std::int64_t>(slice.size());
      if (auto added = archive.add(slice); !added) return added;
      return asked(static_cast<double>(packed_) / static_cast<double>(written_.content_bytes));
    });
    if (!read) return read;
    return bytes == file.bytes && hash.hex() == file.sha256 ? Result<void>() : changed();
  }

  Result<void> for_each_slice(const fs::path& file, const std::function<Result<void>(std::string_view)>& take) {
    const auto fd = open_regular(file, O_RDONLY);
    if (!fd) return tl::unexpected(fd.error());
    std::string slice(read_bytes, '\0');
    Result<void> taken;
    while (taken) {
      const ssize_t count = ::read(fd->get(), slice.data(), slice.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) taken = disk_error(file, "cannot be read", errno, FileUse::read);
      if (count <= 0) break;
      taken = take({slice.data(), static_cast<std::size_t>(count)});
    }
    return taken;
  }

  Result<void> asked(double done) const {
    if (!go_on_ || go_on_(done)) return {};
    return fail(ErrorCode::cancelled, "the export was given up");
  }

  const BundleRequest& request_;
  const BundleProgress& go_on_;
  BundleManifest manifest_;
  std::vector<Source> sources_;  ///< of the manifest's files
  std::set<std::string> ids_;
  BundleWritten written_;
  std::int64_t packed_ = 0;
};

}  // namespace

Result<BundleWritten> write_bundle(const BundleRequest& request, const fs::path& file, const BundleProgress& go_on) {
  return BundleWriter(request, go_on).write(file);
}

std::int64_t bundled_weight_bytes(const fs::path& run_dir) {
  std::int64_t sum = 0;
  std::error_code error;
  for (const fs::path& file : weight_files(run_dir)) sum += static_cast<std::int64_t>(fs::file_size(file, error));
  return sum;
}

}  // namespace accrue

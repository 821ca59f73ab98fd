// SPDX-License-Identifier: Apache-2.0
#include "corpus_hash.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/data/mapped_file.h"
#include "accrue/run/facts/kept_index.h"
#include "content_hash.h"
#include "file_state.h"
#include "posix_file.h"

namespace accrue {
namespace {

Result<void> hash_file(ContentHash& hash, const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  constexpr std::int64_t end_bytes = 65536, place_bytes = 4096, places = 62;
  const std::int64_t size = file->size();
  hash.update(&size, sizeof size);
  const auto add = [&](std::int64_t from, std::int64_t bytes) {
    const std::int64_t begin = std::clamp<std::int64_t>(from, 0, size);
    hash.update(file->data() + begin, static_cast<std::size_t>(std::min(bytes, size - begin)));
  };
  add(0, end_bytes);
  if (size > 2 * end_bytes)
    for (std::int64_t place = 1; place <= places; ++place) add(size / (places + 1) * place, place_bytes);
  add(std::max(end_bytes, size - end_bytes), end_bytes);
  return {};
}

Result<struct stat> status_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return disk_error(path, "cannot be read", errno, FileUse::read);
  return status;
}

}  // namespace

Result<HashedFiles> hash_files(const std::vector<std::filesystem::path>& files, const FileMark& known) {
  HashedFiles hashed;
  std::vector<std::string> states;
  for (const auto& file : files) {
    const auto status = status_of(file);
    if (!status) return tl::unexpected(status.error());
    hashed.bytes += status->st_size;
    hashed.mark.state += states.emplace_back(state_of(*status)) + ";";
  }
  if (known.state == hashed.mark.state) {
    hashed.mark = known;
    return hashed;
  }
  ContentHash hash;
  for (const auto& file : files)
    if (auto added = hash_file(hash, file); !added) return tl::unexpected(added.error());
  hashed.mark.fingerprint = hash.hex();
  for (std::size_t i = 0; i < files.size(); ++i)
    if (!is_settled(files[i], states[i])) hashed.mark.state.clear();
  return hashed;
}

Result<CorpusMark> mark_of_corpus(const std::filesystem::path& prefix) {
  const auto path = idx_path(prefix);
  ContentHash hash;
  if (auto added = hash_file(hash, path); !added) return tl::unexpected(added.error());
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (error) return disk_error(path, "cannot be read", error.value(), FileUse::read);
  // A copy may keep the modification time; a move does.
  const auto status = status_of(path);
  if (!status) return tl::unexpected(status.error());
  using FileClock = std::chrono::file_clock;
  const auto placed = FileClock::from_sys(std::chrono::sys_time<std::chrono::nanoseconds>(
      std::chrono::seconds(status->st_ctim.tv_sec) + std::chrono::nanoseconds(status->st_ctim.tv_nsec)));
  return CorpusMark{hash.hex(), std::max(written, std::chrono::time_point_cast<FileClock::duration>(placed))};
}

}  // namespace accrue

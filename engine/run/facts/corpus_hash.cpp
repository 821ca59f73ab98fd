// SPDX-License-Identifier: Apache-2.0
#include "corpus_hash.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/data/mapped_file.h"
#include "accrue/run/facts/kept_index.h"
#include "posix_file.h"

namespace accrue {

Result<std::int64_t> hash_file(ContentHash& hash, const std::filesystem::path& path) {
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
  return size;
}

Result<CorpusMark> mark_of_corpus(const std::filesystem::path& prefix) {
  const auto path = idx_path(prefix);
  ContentHash hash;
  if (const auto size = hash_file(hash, path); !size) return tl::unexpected(size.error());
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (error) return disk_error(path, "cannot be read", error.value(), FileUse::read);
  // A copy may keep the modification time; a move does.
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return disk_error(path, "cannot be read", errno, FileUse::read);
  using FileClock = std::chrono::file_clock;
  const auto placed = FileClock::from_sys(std::chrono::sys_time<std::chrono::nanoseconds>(
      std::chrono::seconds(facts.st_ctim.tv_sec) + std::chrono::nanoseconds(facts.st_ctim.tv_nsec)));
  return CorpusMark{hash.hex(), std::max(written, std::chrono::time_point_cast<FileClock::duration>(placed))};
}

}  // namespace accrue

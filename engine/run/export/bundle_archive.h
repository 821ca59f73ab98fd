// SPDX-License-Identifier: Apache-2.0
// Container of a bundle: a gzipped tar archive of plain files, written and read sequentially. Every archiver can open
// the output. The reader accepts this exact form alone: no links, no folders, no extensions, no bytes after the end.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {

inline constexpr std::size_t longest_entry_name = 100;
/// Largest size that fits into an entry's header.
inline constexpr std::int64_t largest_entry = (std::int64_t{1} << 33) - 1;

struct DeflateEnd {
  void operator()(z_stream* stream) const;
};
struct InflateEnd {
  void operator()(z_stream* stream) const;
};

/// An archive under construction: written to a temporary file, which is removed unless it is completed.
class ArchiveWriter {
 public:
  /// Errors: disk.
  static Result<ArchiveWriter> create(const std::filesystem::path& path);
  ArchiveWriter(ArchiveWriter&&) = default;
  ArchiveWriter& operator=(ArchiveWriter&&) = delete;
  ~ArchiveWriter();

  /// Begins the next entry. The caller then adds exactly `bytes` bytes. Errors: disk.
  Result<void> begin(const std::string& name, std::int64_t bytes);
  Result<void> add(std::string_view bytes);
  /// Writes the rest to the disk and returns the size. Errors: disk.
  Result<std::int64_t> finish();
  /// Renames it to the file's name; after finish(). Errors: disk.
  Result<void> place();

 private:
  ArchiveWriter(std::filesystem::path path, OwnedFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Result<void> pad();
  Result<void> deflate_all(std::string_view bytes, int flush);

  std::filesystem::path path_;
  OwnedFd fd_;
  std::unique_ptr<z_stream, DeflateEnd> stream_;
  std::vector<char> packed_;
  std::int64_t entry_bytes_ = 0;
  std::int64_t file_bytes_ = 0;
};

struct ArchiveEntry {
  std::string name;  ///< as found in the archive, unchecked
  std::int64_t bytes = 0;
};

/// Reader of an archive, in one pass. Its file may be damaged, cut short or hostile: every field is checked, and at
/// most one block is in memory.
class ArchiveReader {
 public:
  /// Errors: it does not exist (config), it is not a regular file (disk).
  static Result<ArchiveReader> open(const std::filesystem::path& path);

  /// Returns the next entry after all bytes of the last one were read; none at the end of a complete archive. Errors
  /// (protocol): cut short, damaged, an entry that is not a plain file, bytes after the end; (disk): cannot be read.
  Result<std::optional<ArchiveEntry>> next();
  /// Returns the next bytes of the entry, valid until the next call; empty once all were read. Errors: as next().
  Result<std::string_view> read();
  std::int64_t file_bytes() const { return file_bytes_; }
  /// Fraction of the file that was read, from 0 to 1.
  double done() const;

 private:
  ArchiveReader(std::filesystem::path path, OwnedFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  /// Fills the block's first `bytes`.
  Result<void> fill(std::size_t bytes);
  Result<void> take_packed();
  Result<void> check_end();
  tl::unexpected<Error> refused(std::string what) const;

  std::filesystem::path path_;
  OwnedFd fd_;
  std::unique_ptr<z_stream, InflateEnd> stream_;
  std::vector<char> packed_;
  std::vector<char> block_;
  std::int64_t file_bytes_ = 0;
  std::int64_t taken_ = 0;
  std::int64_t left_ = 0;     ///< unread bytes of the entry
  std::int64_t padding_ = 0;  ///< padding after them
  bool ended_ = false;        ///< the compressed stream ended
};

/// Makes text of a foreign file fit for a message: one line, no control characters, limited length.
std::string quotable(std::string_view text);

}  // namespace accrue

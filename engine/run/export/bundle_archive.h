// SPDX-License-Identifier: Apache-2.0
// The container of a bundle: a tar archive of plain files, compressed with gzip, written and read from end to end. What
// is written opens with every archiver; what is read is refused unless it has this very form: no links, no folders, no
// extensions, no bytes behind the end.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

inline constexpr std::size_t longest_entry_name = 100;
/// The largest size that an entry's header can say.
inline constexpr std::int64_t largest_entry = (std::int64_t{1} << 33) - 1;

struct DeflateEnd {
  void operator()(z_stream* stream) const;
};
struct InflateEnd {
  void operator()(z_stream* stream) const;
};

/// An archive while it is written: beside its place until it is whole, removed where it never is.
class ArchiveWriter {
 public:
  /// Errors: disk.
  static Result<ArchiveWriter> create(const std::filesystem::path& path);
  ArchiveWriter(ArchiveWriter&& other) noexcept;
  ArchiveWriter& operator=(ArchiveWriter&&) = delete;
  ~ArchiveWriter();

  /// The next entry. The caller then adds exactly so many bytes. Errors: disk.
  Result<void> begin(const std::string& name, std::int64_t bytes);
  Result<void> add(std::string_view bytes);
  /// Writes what is left and brings it to the disk. Answers the size. Errors: disk.
  Result<std::int64_t> finish();
  /// Takes the file's place; after finish(). Errors: disk.
  Result<void> place();

 private:
  ArchiveWriter(std::filesystem::path path, std::filesystem::path part, int fd)
      : path_(std::move(path)), part_(std::move(part)), fd_(fd) {}
  Result<void> pad();
  Result<void> deflate_all(std::string_view bytes, int flush);

  std::filesystem::path path_;
  std::filesystem::path part_;  ///< its own: two writers of one file do not meet
  int fd_ = -1;
  std::unique_ptr<z_stream, DeflateEnd> stream_;
  std::vector<char> packed_;
  std::int64_t entry_bytes_ = 0;
  std::int64_t file_bytes_ = 0;
};

struct ArchiveEntry {
  std::string name;  ///< as it stands there, whatever it is
  std::int64_t bytes = 0;
};

/// Reads an archive once. Its file may be damaged, cut short or hostile: nothing is taken for granted, and no more than
/// a block is held.
class ArchiveReader {
 public:
  /// Errors: not there (config), no regular file (disk).
  static Result<ArchiveReader> open(const std::filesystem::path& path);
  ArchiveReader(ArchiveReader&& other) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) = delete;
  ~ArchiveReader();

  /// The next entry, once all bytes of the last one were read; none at the end of a whole archive. Errors (protocol):
  /// cut short, damaged, an entry that is no plain file, bytes behind the end; (disk): cannot be read.
  Result<std::optional<ArchiveEntry>> next();
  /// The next bytes of the entry, until the next call; empty once all were read. Errors: as next().
  Result<std::string_view> read();
  std::int64_t file_bytes() const { return file_bytes_; }
  /// How much of the file was read, from 0 to 1.
  double done() const;

 private:
  ArchiveReader(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  /// Fills the block's first `bytes`.
  Result<void> fill(std::size_t bytes);
  Result<void> take_packed();
  Result<void> check_end();
  tl::unexpected<Error> refused(std::string what) const;

  std::filesystem::path path_;
  int fd_ = -1;
  std::unique_ptr<z_stream, InflateEnd> stream_;
  std::vector<char> packed_;
  std::vector<char> block_;
  std::int64_t file_bytes_ = 0;
  std::int64_t taken_ = 0;
  std::int64_t left_ = 0;     ///< of the entry's contents
  std::int64_t padding_ = 0;  ///< behind them
  bool ended_ = false;        ///< the compressed stream did
};

/// Text of another's file, fit for a message: one line, no control characters, not long.
std::string quotable(std::string_view text);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/weights/archive_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace accrue {
namespace {

constexpr const char* damaged_hint = "The file is damaged or incomplete: take another checkpoint, or copy it again.";

tl::unexpected<Error> in_file(Error error, const std::string& file) {
  error.where = error.where.empty() ? file : file + ", " + error.where;
  if (error.hint.empty() && error.code == ErrorCode::protocol) error.hint = damaged_hint;
  return tl::unexpected<Error>(std::move(error));
}

/// Reads exactly `bytes` from a place in the file.
Result<void> read_at(int fd, std::uint64_t offset, void* into, std::uint64_t bytes) {
  char* to = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t done = ::pread(fd, to, std::min<std::uint64_t>(bytes, 1 << 26), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return fail(ErrorCode::disk, std::string("reading failed: ") + std::strerror(errno));
    if (done == 0) return fail(ErrorCode::protocol, "the file became shorter while it was read");
    to += done;
    offset += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::uint64_t>(done);
  }
  return {};
}

Result<void> read_header(ArchiveFile& archive, std::uint64_t file_bytes) {
  std::uint64_t length = 0;
  if (file_bytes < sizeof length)
    return fail(ErrorCode::protocol, "it holds " + data_size(file_bytes) + ", too few for a safetensors file");
  if (auto read = read_at(archive.fd.get(), 0, &length, sizeof length); !read) return read;
  if (length > max_archive_header_bytes)
    return fail(ErrorCode::protocol, "the header claims " + data_size(length) + ", more than the 8 MB that are read");
  if (length > file_bytes - sizeof length)
    return fail(ErrorCode::protocol, "the header claims " + data_size(length) + ", the file has " +
                                         data_size(file_bytes - sizeof length) + " after the length");
  archive.head.resize(sizeof length + length);
  if (auto read = read_at(archive.fd.get(), 0, archive.head.data(), archive.head.size()); !read) return read;
  auto header =
      parse_archive_header(std::string_view(archive.head).substr(sizeof length), file_bytes - sizeof length - length);
  if (!header) return tl::unexpected(header.error());
  archive.header = std::move(*header);
  return {};
}

}  // namespace

std::string data_size(std::uint64_t bytes) {
  return std::to_string(bytes) + " bytes";
}

Result<ArchiveFile> ArchiveFile::open(const std::filesystem::path& file) {
  ArchiveFile archive{.fd = OwnedFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)),
                      .path = file.string(),
                      .head = {},
                      .header = {}};
  struct stat facts {};
  if (!archive.fd || ::fstat(archive.fd.get(), &facts) != 0)
    return fail(ErrorCode::disk, std::string("cannot open the file: ") + std::strerror(errno), archive.path);
  if (!S_ISREG(facts.st_mode)) return fail(ErrorCode::disk, "this is not a regular file", archive.path);
  if (auto read = read_header(archive, static_cast<std::uint64_t>(facts.st_size)); !read)
    return in_file(read.error(), archive.path);
  return archive;
}

Result<void> ArchiveFile::read_bytes(std::uint64_t offset, void* into, std::uint64_t bytes) const {
  if (auto done = read_at(fd.get(), head.size() + offset, into, bytes); !done) return in_file(done.error(), path);
  return {};
}

Result<void> ArchiveFile::read(const ArchiveEntry& entry, void* into) const {
  const std::uint64_t bytes = entry.end - entry.begin;
  if (auto done = read_bytes(entry.begin, into, bytes); !done) return done;
  const auto* values = static_cast<const unsigned char*>(into);
  if (entry.dtype == "BOOL" && std::any_of(values, values + bytes, [](unsigned char value) { return value > 1; }))
    return in_file(
        {ErrorCode::protocol, "a BOOL is neither 0 nor 1", "tensor \"" + printable_name(entry.name) + "\"", {}}, path);
  return {};
}

}  // namespace accrue

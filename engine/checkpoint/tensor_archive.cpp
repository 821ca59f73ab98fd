// SPDX-License-Identifier: Apache-2.0
// Files are streamed once in each direction and hashed on the way with XXH3-128, which costs a few per cent of the
// disk's time. SHA-256 is used only for weights_sha256, which people compare between runs.
#include "accrue/checkpoint/tensor_archive.h"

#define XXH_INLINE_ALL
#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <set>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/sha256.h"
#include "accrue/run/base/system_error.h"
#include "accrue/run/weights/archive_file.h"
#include "accrue/run/weights/archive_header.h"
#include "checkpoint/archive_types.h"

namespace accrue {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

class Xxh3 {
 public:
  Xxh3() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_128bits_reset(state_.get()); }
  void update(const void* data, std::size_t bytes) { XXH3_128bits_update(state_.get(), data, bytes); }
  std::string hex() const {
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(state_.get()));
    std::string text;
    for (const unsigned char byte : bytes.digest) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

/// Makes the error of a failed write of `wanted` bytes, of which `written` are on the disk.
tl::unexpected<Error> write_failure(int error, const std::filesystem::path& file, std::uint64_t wanted,
                                    std::uint64_t written) {
  if (error == EFBIG)
    return fail(ErrorCode::disk, "no room for " + data_size(wanted) + ": " + system_words(error), file.string(),
                system_hint(error));
  if (error != ENOSPC && error != EDQUOT)
    return fail(ErrorCode::disk, std::string("writing failed: ") + std::strerror(error), file.string());
  std::uint64_t missing = wanted - written;
  struct statvfs space {};
  if (error == ENOSPC && ::statvfs(file.parent_path().c_str(), &space) == 0) {
    const std::uint64_t free = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
    if (wanted > free) missing = wanted - free;
  }
  return fail(ErrorCode::disk,
              "no room for " + data_size(wanted) + ": the disk is " + data_size(missing) + " short (" +
                  std::strerror(error) + ")",
              file.string(), "Free some space or choose another run folder.");
}

/// Writer that also hashes; remembers the first failure.
class ArchiveWriter {
 public:
  ArchiveWriter(int fd) : fd_(fd) {}
  bool write(const void* data, std::uint64_t bytes) {
    const char* from = static_cast<const char*>(data);
    hash_.update(from, bytes);
    while (bytes > 0) {
      const ssize_t done = ::write(fd_, from, std::min<std::uint64_t>(bytes, 1 << 26));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) {
        error = errno;
        return false;
      }
      from += done;
      bytes -= static_cast<std::uint64_t>(done);
      written += static_cast<std::uint64_t>(done);
    }
    return true;
  }
  std::string hex() const { return hash_.hex(); }

  int error = 0;
  std::uint64_t written = 0;

 private:
  int fd_;
  Xxh3 hash_;
};

Result<ArchiveHeader> header_for(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata) {
  ArchiveHeader header{.entries = {}, .metadata = metadata};
  std::set<std::string> names;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const char* const dtype = archive_dtype(tensor.scalar_type());
    if (name == "__metadata__" || !names.insert(name).second) {
      return fail(ErrorCode::internal, "the name occurs twice or is reserved",
                  "tensor \"" + printable_name(name) + "\"");
    }
    if (dtype == nullptr) {
      return fail(ErrorCode::internal, std::string("type ") + c10::toString(tensor.scalar_type()) + " cannot be stored",
                  "tensor \"" + printable_name(name) + "\"");
    }
    const auto bytes = static_cast<std::uint64_t>(tensor.nbytes());
    header.entries.push_back({name, dtype, tensor.sizes().vec(), offset, offset + bytes});
    offset += bytes;
  }
  return header;
}

Result<WrittenArchive> write_open_file(int fd, const std::filesystem::path& file, const std::string& header,
                                       std::uint64_t data_bytes, const NamedTensors& tensors) {
  const std::uint64_t length = header.size();
  const std::uint64_t total = sizeof length + length + data_bytes;
  // Reserves space at once, so that a full disk is noticed before minutes of writing; not every file system supports
  // it.
  if (::fallocate(fd, 0, 0, static_cast<off_t>(total)) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    return write_failure(errno, file, total, 0);
  }
  ArchiveWriter writer(fd);
  bool good = writer.write(&length, sizeof length) && writer.write(header.data(), length);
  for (const auto& named : tensors) {
    if (!good) break;
    const at::Tensor plain = named.second.detach().cpu().contiguous();
    good = writer.write(plain.const_data_ptr(), plain.nbytes());
  }
  if (!good) return write_failure(writer.error, file, total, writer.written);
  if (::fdatasync(fd) != 0) return write_failure(errno, file, total, 0);
  return WrittenArchive{static_cast<std::int64_t>(total), writer.hex()};
}

Result<Archive> read_open_file(const ArchiveFile& file) {
  Archive archive;
  Xxh3 hash;
  hash.update(file.head.data(), file.head.size());
  archive.metadata = file.header.metadata;
  for (const ArchiveEntry& entry : file.header.entries) {
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(archive_scalar_type(entry.dtype)));
    if (auto read = file.read(entry, tensor.mutable_data_ptr()); !read) return tl::unexpected(read.error());
    hash.update(tensor.const_data_ptr(), tensor.nbytes());
    archive.tensors.emplace_back(entry.name, std::move(tensor));
  }
  archive.xxh3 = hash.hex();
  return archive;
}

}  // namespace

Result<WrittenArchive> write_archive(const std::filesystem::path& file, const NamedTensors& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  auto header = header_for(tensors, metadata);
  if (!header) {
    header.error().where = file.string() + ", " + header.error().where;
    return tl::unexpected(header.error());
  }
  const std::uint64_t data_bytes = header->entries.empty() ? 0 : header->entries.back().end;
  std::string json;
  try {
    json = format_archive_header(*header);
  } catch (const std::exception& error) {  // a name that is not UTF-8
    return fail(ErrorCode::internal, std::string("a tensor name cannot be stored: ") + error.what(), file.string());
  }
  OwnedFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) {
    return fail(ErrorCode::disk, std::string("cannot create the file: ") + std::strerror(errno), file.string(),
                errno == EEXIST ? "Files are never overwritten: remove it or choose another name." : "");
  }
  auto written = write_open_file(fd.get(), file, json, data_bytes, tensors);
  if (const int error = fd.close(); error != 0 && written) written = write_failure(error, file, data_bytes, 0);
  if (!written) ::unlink(file.c_str());
  return written;
}

Result<Archive> read_archive(const std::filesystem::path& file) {
  try {
    auto open = ArchiveFile::open(file);
    if (!open) return tl::unexpected(open.error());
    return read_open_file(*open);
  } catch (const std::exception&) {  // allocation
    return fail(ErrorCode::out_of_memory, "no memory for the tensors of this file", file.string());
  }
}

const at::Tensor* Archive::find(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& named) { return named.first == name; });
  return found == tensors.end() ? nullptr : &found->second;
}

std::string weights_sha256(const NamedTensors& tensors) {
  std::vector<const std::pair<std::string, at::Tensor>*> sorted;
  for (const auto& named : tensors) sorted.push_back(&named);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  Sha256 hash;
  for (const auto* named : sorted) {
    const at::Tensor plain = named->second.detach().cpu().contiguous();
    std::string head = named->first + '\0' + c10::toString(plain.scalar_type()) + '\0';
    for (const std::int64_t size : plain.sizes()) head += std::to_string(size) + ',';
    head += '\0';
    hash.update(head.data(), head.size());
    hash.update(plain.const_data_ptr(), plain.nbytes());
  }
  return hash.hex();
}

}  // namespace accrue

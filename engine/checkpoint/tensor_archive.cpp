// SPDX-License-Identifier: Apache-2.0
// Files are streamed once in each direction, and hashed on the way with XXH3-128, which costs a few per cent of a
// disk's time; SHA-256 is for weights_sha256 only, a name that outlives the process.
#include "accrue/checkpoint/tensor_archive.h"

#define XXH_INLINE_ALL
#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <set>

#include "accrue/run/sha256.h"
#include "checkpoint/tensor_archive_header.h"

namespace accrue {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr const char* damaged_hint = "The file is damaged or incomplete: take another checkpoint, or copy it again.";

constexpr std::array<std::pair<const char*, at::ScalarType>, 8> dtype_names{{{"BOOL", at::kBool},
                                                                             {"U8", at::kByte},
                                                                             {"I32", at::kInt},
                                                                             {"I64", at::kLong},
                                                                             {"F16", at::kHalf},
                                                                             {"BF16", at::kBFloat16},
                                                                             {"F32", at::kFloat},
                                                                             {"F64", at::kDouble}}};

const char* dtype_name(at::ScalarType type) {
  for (const auto& [name, known] : dtype_names) {
    if (known == type) return name;
  }
  return nullptr;
}

at::ScalarType dtype_of(const std::string& name) {
  for (const auto& [known, type] : dtype_names) {
    if (name == known) return type;
  }
  return at::ScalarType::Undefined;
}

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

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release_and_close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

std::string data_size(std::uint64_t bytes) {
  return std::to_string(bytes) + " bytes";
}

/// The error of a failed write of `wanted` bytes in all, of which `written` are on the disk.
tl::unexpected<Error> write_failure(int error, const std::filesystem::path& file, std::uint64_t wanted,
                                    std::uint64_t written) {
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) {
    return fail(ErrorCode::disk, std::string("writing failed: ") + std::strerror(error), file.string());
  }
  std::uint64_t missing = wanted - written;
  struct statvfs space {};
  if (error == ENOSPC && ::statvfs(file.parent_path().c_str(), &space) == 0) {
    const std::uint64_t free = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
    if (wanted > free) missing = wanted - free;
  }
  return fail(
      ErrorCode::disk,
      "no room for " + data_size(wanted) + ": " + data_size(missing) + " are missing (" + std::strerror(error) + ")",
      file.string(), "Free some space or choose another run folder.");
}

/// Writes and hashes; remembers the first failure.
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
    const char* const dtype = dtype_name(tensor.scalar_type());
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
  // Space is asked for at once, so that a full disk is noticed before minutes of writing; not every file system can.
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

struct OpenArchive {
  int fd;
  std::string file;
  Xxh3 hash;

  /// Reads exactly `bytes` and hashes them.
  Result<void> read(void* into, std::uint64_t bytes) {
    char* to = static_cast<char*>(into);
    std::uint64_t left = bytes;
    while (left > 0) {
      const ssize_t done = ::read(fd, to, std::min<std::uint64_t>(left, 1 << 26));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return fail(ErrorCode::disk, std::string("reading failed: ") + std::strerror(errno), file);
      if (done == 0) return fail(ErrorCode::protocol, "the file became shorter while it was read", file, damaged_hint);
      to += done;
      left -= static_cast<std::uint64_t>(done);
    }
    hash.update(into, bytes);
    return {};
  }
};

tl::unexpected<Error> in_file(Error error, const std::string& file) {
  error.where = error.where.empty() ? file : file + ", " + error.where;
  if (error.hint.empty()) error.hint = damaged_hint;
  return tl::unexpected<Error>(std::move(error));
}

Result<ArchiveHeader> read_header(OpenArchive& in, std::uint64_t file_bytes) {
  std::uint64_t length = 0;
  if (file_bytes < sizeof length) {
    return fail(ErrorCode::protocol, data_size(file_bytes) + " are too few for a safetensors file");
  }
  if (auto read = in.read(&length, sizeof length); !read) return tl::unexpected<Error>(read.error());
  if (length > max_archive_header_bytes) {
    return fail(ErrorCode::protocol, "the header claims " + data_size(length) + ", more than the 8 MB that are read");
  }
  if (length > file_bytes - sizeof length) {
    return fail(ErrorCode::protocol, "the header claims " + data_size(length) + ", the file has " +
                                         data_size(file_bytes - sizeof length) + " after the length");
  }
  std::string json(length, '\0');
  if (auto read = in.read(json.data(), length); !read) return tl::unexpected<Error>(read.error());
  return parse_archive_header(json, file_bytes - sizeof length - length);
}

Result<at::Tensor> read_tensor(OpenArchive& in, const ArchiveEntry& entry) {
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(dtype_of(entry.dtype)));
  if (auto read = in.read(tensor.mutable_data_ptr(), entry.end - entry.begin); !read) {
    return tl::unexpected<Error>(read.error());
  }
  if (tensor.scalar_type() == at::kBool) {
    const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
    if (std::any_of(bytes, bytes + tensor.nbytes(), [](unsigned char byte) { return byte > 1; })) {
      return fail(ErrorCode::protocol, "a BOOL is neither 0 nor 1", "tensor \"" + printable_name(entry.name) + "\"");
    }
  }
  return tensor;
}

Result<Archive> read_open_file(OpenArchive& in, std::uint64_t file_bytes) {
  auto header = read_header(in, file_bytes);
  if (!header) return in_file(std::move(header.error()), in.file);
  Archive archive;
  archive.metadata = std::move(header->metadata);
  for (const ArchiveEntry& entry : header->entries) {
    auto tensor = read_tensor(in, entry);
    if (!tensor) return in_file(std::move(tensor.error()), in.file);
    archive.tensors.emplace_back(entry.name, std::move(*tensor));
  }
  archive.xxh3 = in.hash.hex();
  return archive;
}

}  // namespace

Result<WrittenArchive> write_archive(const std::filesystem::path& file, const NamedTensors& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  auto header = header_for(tensors, metadata);
  if (!header) return in_file(std::move(header.error()), file.string());
  const std::uint64_t data_bytes = header->entries.empty() ? 0 : header->entries.back().end;
  std::string json;
  try {
    json = format_archive_header(*header);
  } catch (const std::exception& error) {  // a name that is not UTF-8
    return fail(ErrorCode::internal, std::string("a tensor name cannot be stored: ") + error.what(), file.string());
  }
  Descriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.get() < 0) {
    return fail(ErrorCode::disk, std::string("cannot create the file: ") + std::strerror(errno), file.string(),
                errno == EEXIST ? "Files are never overwritten: remove it or choose another name." : "");
  }
  auto written = write_open_file(fd.get(), file, json, data_bytes, tensors);
  if (fd.release_and_close() != 0 && written) written = write_failure(errno, file, data_bytes, 0);
  if (!written) ::unlink(file.c_str());
  return written;
}

Result<Archive> read_archive(const std::filesystem::path& file) {
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (fd.get() < 0 || ::fstat(fd.get(), &facts) != 0) {
    return fail(ErrorCode::disk, std::string("cannot open the file: ") + std::strerror(errno), file.string());
  }
  if (!S_ISREG(facts.st_mode)) return fail(ErrorCode::disk, "this is not a regular file", file.string());
  OpenArchive in{fd.get(), file.string(), {}};
  try {
    return read_open_file(in, static_cast<std::uint64_t>(facts.st_size));
  } catch (const std::exception&) {  // allocation
    return fail(ErrorCode::out_of_memory, "no memory for a file of " + std::to_string(facts.st_size) + " bytes",
                file.string());
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

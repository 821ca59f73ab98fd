// SPDX-License-Identifier: Apache-2.0
// Source: "ustar Interchange Format" of POSIX.1-2017 (pax), and RFC 1952 for gzip, which zlib writes and reads.
#include "bundle_archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "posix_file.h"

namespace accrue {

namespace {

constexpr std::size_t tar_block = 512;
constexpr std::size_t slice_bytes = std::size_t{256} << 10;
constexpr int gzip_window = 15 + 16;  // 32 KiB of history, with gzip's header and checksum

// Offsets of the fields of a header.
constexpr std::size_t mode_at = 100;
constexpr std::size_t size_at = 124;
constexpr std::size_t size_digits = 11;
constexpr std::size_t checksum_at = 148;
constexpr std::size_t checksum_width = 8;
constexpr std::size_t type_at = 156;
constexpr std::size_t magic_at = 257;
constexpr std::size_t prefix_at = 345;
constexpr std::string_view magic{"ustar\00000", 8};

using Header = std::array<char, tar_block>;

void put(Header& header, std::size_t at, std::string_view text) {
  std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(at));
}

/// Returns the sum of its bytes, with spaces in place of the sum itself.
unsigned sum_of(const Header& header) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < tar_block; ++i) {
    const bool own = i >= checksum_at && i < checksum_at + checksum_width;
    sum += own ? static_cast<unsigned>(' ') : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

Header header_of(const std::string& name, std::int64_t bytes) {
  Header header{};
  put(header, 0, name);
  put(header, mode_at, {"0000644\0000000000\0000000000\000", 24});  // mode, owner, group
  put(header, size_at, fmt::format("{:0{}o}", bytes, size_digits));
  put(header, size_at + size_digits + 1, "00000000000");  // no time: equal contents give equal bytes
  put(header, type_at, "0");
  put(header, magic_at, magic);
  put(header, checksum_at, fmt::format("{:06o}", sum_of(header)));
  header[checksum_at + checksum_width - 1] = ' ';
  return header;
}

std::optional<std::int64_t> octal(std::string_view digits) {
  std::int64_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + (digit - '0');
  }
  return value;
}

std::int64_t padding_of(std::int64_t bytes) {
  constexpr auto block = static_cast<std::int64_t>(tar_block);
  return (block - bytes % block) % block;
}

std::string_view kind_of(char type) {
  switch (type) {
    case '1':
    case '2':
      return "a link";
    case '3':
    case '4':
      return "a device";
    case '5':
      return "a folder";
    case '6':
      return "a pipe";
    default:
      return "an entry of a kind that no bundle has";
  }
}

}  // namespace

std::string quotable(std::string_view text) {
  constexpr std::size_t longest = 120;
  const auto follows = [](char each) { return (static_cast<unsigned char>(each) & 0xC0U) == 0x80U; };
  std::size_t end = std::min(longest, text.size());
  while (end < text.size() && end > 0 && follows(text[end])) --end;  // not inside a multi-byte character
  std::string shown;
  for (std::size_t i = 0; i < end; ++i) {
    const char each = text[i];
    // Control characters are a byte, or the two bytes C2 80 to C2 9F.
    const bool second =
        each == '\xC2' && i + 1 < end && follows(text[i + 1]) && static_cast<unsigned char>(text[i + 1]) < 0xA0U;
    if (second) ++i;
    shown += second || (each >= 0 && each < ' ') || each == '\x7f' ? '?' : each;
  }
  return end < text.size() ? shown + "..." : shown;
}

void DeflateEnd::operator()(z_stream* stream) const {
  ::deflateEnd(stream);
  delete stream;
}

void InflateEnd::operator()(z_stream* stream) const {
  ::inflateEnd(stream);
  delete stream;
}

Result<ArchiveWriter> ArchiveWriter::create(const std::filesystem::path& path) {
  // Readable for others as the umask allows, because a bundle is meant to be shared.
  auto part = create_part(path, 0644);
  if (!part) return tl::unexpected(part.error());
  ArchiveWriter writer(path, std::move(*part));
  writer.stream_.reset(new z_stream{});
  if (::deflateInit2(writer.stream_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return fail(ErrorCode::out_of_memory, "there is no memory to compress a bundle", path.string());
  writer.packed_.resize(slice_bytes);
  return writer;
}

ArchiveWriter::~ArchiveWriter() {
  if (fd_) ::unlink(part_of(path_).c_str());
}

Result<void> ArchiveWriter::begin(const std::string& name, std::int64_t bytes) {
  if (auto padded = pad(); !padded) return padded;
  const Header header = header_of(name, bytes);
  entry_bytes_ = bytes;
  return deflate_all({header.data(), header.size()}, Z_NO_FLUSH);
}

Result<void> ArchiveWriter::add(std::string_view bytes) {
  return deflate_all(bytes, Z_NO_FLUSH);
}

Result<void> ArchiveWriter::pad() {
  const std::string zeros(static_cast<std::size_t>(padding_of(std::exchange(entry_bytes_, 0))), '\0');
  return deflate_all(zeros, Z_NO_FLUSH);
}

Result<void> ArchiveWriter::deflate_all(std::string_view bytes, int flush) {
  while (true) {
    const std::string_view slice = bytes.substr(0, slice_bytes);
    bytes.remove_prefix(slice.size());
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(slice.data()));
    stream_->avail_in = static_cast<uInt>(slice.size());
    do {
      stream_->next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_->avail_out = static_cast<uInt>(packed_.size());
      ::deflate(stream_.get(), bytes.empty() ? flush : Z_NO_FLUSH);
      const std::size_t made = packed_.size() - stream_->avail_out;
      if (const int error = write_all(fd_.get(), {packed_.data(), made}); error != 0)
        return disk_error(path_, "cannot be written", error);
      file_bytes_ += static_cast<std::int64_t>(made);
    } while (stream_->avail_out == 0);
    if (bytes.empty()) return {};
  }
}

Result<std::int64_t> ArchiveWriter::finish() {
  if (auto padded = pad(); !padded) return tl::unexpected(padded.error());
  const std::string end(2 * tar_block, '\0');
  if (auto written = deflate_all(end, Z_FINISH); !written) return tl::unexpected(written.error());
  if (::fsync(fd_.get()) != 0) return disk_error(path_, "cannot be brought to the disk", errno);
  return file_bytes_;
}

Result<void> ArchiveWriter::place() {
  return place_part(path_, std::move(fd_));
}

Result<ArchiveReader> ArchiveReader::open(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return fail(ErrorCode::config, "does not exist", path.string(), "Check the path");
  auto fd = open_regular(path, O_RDONLY);
  if (!fd) return tl::unexpected(fd.error());
  ArchiveReader reader(path, std::move(*fd));
  struct stat facts {};
  if (::fstat(reader.fd_.get(), &facts) != 0) return disk_error(path, "cannot be examined", errno);
  reader.file_bytes_ = facts.st_size;
  reader.stream_.reset(new z_stream{});
  if (::inflateInit2(reader.stream_.get(), gzip_window) != Z_OK)
    return fail(ErrorCode::out_of_memory, "there is no memory to read a bundle", path.string());
  reader.packed_.resize(slice_bytes);
  reader.block_.resize(slice_bytes);
  return reader;
}

tl::unexpected<Error> ArchiveReader::refused(std::string what) const {
  return fail(ErrorCode::protocol, std::move(what), path_.string(), "Ask for the bundle again; nothing was imported");
}

double ArchiveReader::done() const {
  return file_bytes_ > 0 ? static_cast<double>(taken_) / static_cast<double>(file_bytes_) : 1.0;
}

Result<void> ArchiveReader::take_packed() {
  ssize_t count = 0;
  do count = ::read(fd_.get(), packed_.data(), packed_.size());
  while (count < 0 && errno == EINTR);
  if (count < 0) return disk_error(path_, "cannot be read", errno, FileUse::read);
  stream_->next_in = reinterpret_cast<Bytef*>(packed_.data());
  stream_->avail_in = static_cast<uInt>(count);
  taken_ += count;
  return {};
}

Result<void> ArchiveReader::fill(std::size_t bytes) {
  stream_->next_out = reinterpret_cast<Bytef*>(block_.data());
  stream_->avail_out = static_cast<uInt>(bytes);
  while (stream_->avail_out > 0) {
    if (ended_) return refused("the bundle is cut short");
    if (stream_->avail_in == 0) {
      if (auto taken = take_packed(); !taken) return taken;
      if (stream_->avail_in == 0) return refused(taken_ == 0 ? "is empty, not a bundle" : "the bundle is cut short");
    }
    const int answer = ::inflate(stream_.get(), Z_NO_FLUSH);
    ended_ = answer == Z_STREAM_END;
    if (answer == Z_OK || answer == Z_STREAM_END || answer == Z_BUF_ERROR) continue;
    if (stream_->total_out == 0) return refused("is not a bundle of Accrue");
    return refused("the bundle is damaged: what is compressed in it cannot be read");
  }
  return {};
}

Result<std::optional<ArchiveEntry>> ArchiveReader::next() {
  if (auto skipped = fill(static_cast<std::size_t>(std::exchange(padding_, 0))); !skipped)
    return tl::unexpected(skipped.error());
  if (auto filled = fill(tar_block); !filled) return tl::unexpected(filled.error());
  Header header{};
  std::copy_n(block_.begin(), tar_block, header.begin());
  if (std::ranges::all_of(header, [](char byte) { return byte == '\0'; })) {
    if (auto end = check_end(); !end) return tl::unexpected(end.error());
    return std::optional<ArchiveEntry>();
  }
  const auto field = [&](std::size_t at, std::size_t width) { return std::string_view(header.data() + at, width); };
  if (field(magic_at, magic.size()) != magic) return refused("is not a bundle of Accrue");
  if (octal(field(checksum_at, checksum_width - 2)) != static_cast<std::int64_t>(sum_of(header)))
    return refused("the bundle is damaged: the head of an entry is not what was written");
  const std::string_view name = field(0, longest_entry_name);
  ArchiveEntry entry{.name = std::string(name.substr(0, name.find('\0')))};
  if (header[prefix_at] != '\0')
    return refused(fmt::format("holds \"{}\" under a path that no bundle has", quotable(entry.name)));
  if (header[type_at] != '0')
    return refused(fmt::format("holds \"{}\", which is {}; a bundle holds plain files alone", quotable(entry.name),
                               kind_of(header[type_at])));
  const auto bytes = octal(field(size_at, size_digits));
  if (!bytes) return refused(fmt::format("does not say how large \"{}\" is", quotable(entry.name)));
  entry.bytes = left_ = *bytes;
  padding_ = padding_of(*bytes);
  return std::optional(std::move(entry));
}

Result<std::string_view> ArchiveReader::read() {
  const auto bytes = static_cast<std::size_t>(std::min(left_, static_cast<std::int64_t>(block_.size())));
  if (auto filled = fill(bytes); !filled) return tl::unexpected(filled.error());
  left_ -= static_cast<std::int64_t>(bytes);
  return std::string_view(block_.data(), bytes);
}

/// After the first empty block there must be a second one, the end of the compressed stream, and nothing else.
Result<void> ArchiveReader::check_end() {
  if (auto filled = fill(tar_block); !filled) return filled;
  if (std::any_of(block_.begin(), block_.begin() + tar_block, [](char byte) { return byte != '\0'; }))
    return refused("the bundle is damaged: its end is not what was written");
  while (!ended_) {
    char extra = 0;
    stream_->next_out = reinterpret_cast<Bytef*>(&extra);
    stream_->avail_out = 1;
    if (stream_->avail_in == 0) {
      if (auto taken = take_packed(); !taken) return taken;
      if (stream_->avail_in == 0) return refused("the bundle is cut short");
    }
    const int answer = ::inflate(stream_.get(), Z_NO_FLUSH);
    ended_ = answer == Z_STREAM_END;
    if (stream_->avail_out == 0) return refused("holds more bytes behind its last file");
    if (!ended_ && answer != Z_OK && answer != Z_BUF_ERROR)
      return refused("the bundle is damaged: what is compressed in it cannot be read");
  }
  if (stream_->avail_in == 0)
    if (auto taken = take_packed(); !taken) return taken;
  return stream_->avail_in == 0 ? Result<void>() : refused("holds more bytes behind its end");
}

}  // namespace accrue

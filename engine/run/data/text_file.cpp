// SPDX-License-Identifier: Apache-2.0
// zlib reads unpacked files unchanged, so one path handles both.
#include "text_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <utility>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/system_error.h"
#include "accrue/run/base/utf8.h"
#include "foreign_file.h"

namespace accrue {
namespace {

constexpr std::size_t text_part_bytes = std::size_t{1} << 18;

}  // namespace

tl::unexpected<Error> unreadable_text(const std::filesystem::path& path, int error) {
  return fail(ErrorCode::data, "the text cannot be read: " + system_words(error), path.string(),
              system_hint(error, FileUse::read));
}

struct TextFile::Unpacker {
  gzFile file = nullptr;
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker() {
    if (file != nullptr) ::gzclose(file);
  }
};

TextFile::TextFile(std::filesystem::path path)
    : path_(std::move(path)), unpacker_(std::make_unique<Unpacker>()), part_(text_part_bytes, '\0') {}
TextFile::TextFile(TextFile&&) noexcept = default;
TextFile& TextFile::operator=(TextFile&&) noexcept = default;
TextFile::~TextFile() = default;

Result<TextFile> TextFile::open(const std::filesystem::path& path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return unreadable_text(path, errno);
  TextFile text(path);
  text.unpacker_->file = ::gzdopen(fd.get(), "rb");
  if (text.unpacker_->file == nullptr)
    return fail(ErrorCode::out_of_memory, "there is no memory to read the text", path.string());
  fd.release();  // the unpacker's now
  ::gzbuffer(text.unpacker_->file, static_cast<unsigned>(text_part_bytes));
  const auto head = text.read();
  if (!head) return tl::unexpected(head.error());
  if (auto checked = check_is_text(head->substr(0, file_head_bytes), path, "text"); !checked)
    return tl::unexpected(checked.error());
  if (head->starts_with(byte_order_mark)) text.begin_ = std::ssize(byte_order_mark);
  if (auto gone = text.go_to(text.begin_); !gone) return tl::unexpected(gone.error());
  return text;
}

tl::unexpected<Error> TextFile::failed() const {
  int error = Z_OK;
  ::gzerror(unpacker_->file, &error);
  if (error == Z_ERRNO)
    return fail(ErrorCode::disk, "the text cannot be read on: " + system_words(errno), path_.string(),
                system_hint(errno, FileUse::read));
  return fail(ErrorCode::data, error == Z_BUF_ERROR ? "the gzip file was cut" : "the gzip file is damaged",
              path_.string(), "Copy it again, or unpack what there is of it: gzip -dc");
}

Result<void> TextFile::go_to(std::int64_t offset) {
  if (::gzseek(unpacker_->file, static_cast<z_off_t>(offset), SEEK_SET) < 0) return failed();
  return {};
}

Result<std::string_view> TextFile::read() {
  errno = 0;
  const int count = ::gzread(unpacker_->file, part_.data(), static_cast<unsigned>(part_.size()));
  int error = Z_OK;
  if (count >= 0) ::gzerror(unpacker_->file, &error);
  if (count < 0 || (count == 0 && error != Z_OK)) return failed();
  return std::string_view(part_).substr(0, static_cast<std::size_t>(count));
}

std::int64_t TextFile::read_of_file() const {
  return ::gzoffset(unpacker_->file);
}

}  // namespace accrue

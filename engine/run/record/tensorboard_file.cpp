// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/tensorboard_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "posix_file.h"

namespace accrue {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? 0x82f63b78U : 0U);
    table[i] = value;
  }
  return table;
}

void put_fixed(std::string& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
}

void put_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80U; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
  bytes.push_back(static_cast<char>(value));
}

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_key(std::string& bytes, std::uint64_t field, Wire wire) {
  put_varint(bytes, field << 3U | static_cast<std::uint64_t>(wire));
}

void put_text(std::string& bytes, std::uint64_t field, std::string_view text) {
  put_key(bytes, field, Wire::bytes);
  put_varint(bytes, text.size());
  bytes.append(text);
}

std::string event_at(double wall_time) {
  std::string event;
  put_key(event, 1, Wire::fixed64);
  put_fixed(event, std::bit_cast<std::uint64_t>(wall_time), 8);
  return event;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "localhost";
  return name.data();
}

Result<void> make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return disk_error(folder, "the folder for TensorBoard cannot be made", failed.value());
  return {};
}

/// TensorBoard reads files with "tfevents" in their names, in name order.
std::string stem_at(double wall_time) {
  return "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_time)) + "." + host_name() + "." +
         std::to_string(::getpid());
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = crc_table();
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

std::string tensorboard_event(double wall_time, std::int64_t step, const TensorboardScalars& scalars) {
  std::string event = event_at(wall_time);
  put_key(event, 2, Wire::varint);
  put_varint(event, static_cast<std::uint64_t>(step));
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    std::string one;
    put_text(one, 1, tag);
    put_key(one, 2, Wire::fixed32);
    put_fixed(one, std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
    put_text(summary, 1, one);
  }
  put_text(event, 5, summary);
  return event;
}

std::string tensorboard_version_event(double wall_time) {
  std::string event = event_at(wall_time);
  put_text(event, 3, "brain.Event:2");
  return event;
}

std::string tensorboard_record(std::string_view event) {
  std::string record;
  put_fixed(record, event.size(), 8);
  put_fixed(record, masked_crc32c(record), 4);
  record.append(event);
  put_fixed(record, masked_crc32c(event), 4);
  return record;
}

Result<TensorboardFile> TensorboardFile::create(const std::filesystem::path& folder, double wall_time) {
  if (auto made = make_folder(folder); !made) return tl::unexpected(made.error());
  const std::string stem = stem_at(wall_time);
  for (int number = 0;; ++number) {
    const std::filesystem::path path = folder / (stem + "." + std::to_string(number));
    OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
    if (!fd && errno == EEXIST) continue;
    if (!fd) return disk_error(path, "the file for TensorBoard cannot be made", errno);
    TensorboardFile file(path, std::move(fd));
    if (auto written = file.write(tensorboard_version_event(wall_time)); !written)
      return tl::unexpected(written.error());
    return file;
  }
}

Result<TensorboardFile> TensorboardFile::create_hidden(const std::filesystem::path& folder, double wall_time) {
  if (auto made = make_folder(folder); !made) return tl::unexpected(made.error());
  TensorboardFile file(folder / (stem_at(wall_time) + ".0"), OwnedFd());
  const std::filesystem::path hidden = folder / ".accrue-scalars.part";
  ::unlink(hidden.c_str());  // that of a killed export
  file.fd_ = OwnedFd(::open(hidden.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!file.fd_) return disk_error(hidden, "the file for TensorBoard cannot be made", errno);
  file.hidden_ = hidden;
  if (auto written = file.write(tensorboard_version_event(wall_time)); !written) return tl::unexpected(written.error());
  return file;
}

Result<void> TensorboardFile::publish() {
  if (::fsync(fd_.get()) != 0 || ::rename(hidden_.c_str(), path_.c_str()) != 0)
    return disk_error(path_, "TensorBoard's events cannot be written", errno);
  hidden_.clear();
  return {};
}

TensorboardFile::TensorboardFile(TensorboardFile&& other) noexcept
    : path_(std::move(other.path_)), hidden_(std::exchange(other.hidden_, {})), fd_(std::move(other.fd_)) {}

TensorboardFile& TensorboardFile::operator=(TensorboardFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(hidden_, other.hidden_);
  std::swap(fd_, other.fd_);
  return *this;
}

TensorboardFile::~TensorboardFile() {
  if (!hidden_.empty()) ::unlink(hidden_.c_str());
}

Result<void> TensorboardFile::add(double wall_time, std::int64_t step, const TensorboardScalars& scalars) {
  return write(tensorboard_event(wall_time, step, scalars));
}

/// A truncated record would make the following ones unreadable.
Result<void> TensorboardFile::write(std::string_view event) {
  if (!fd_) return {};
  const int failed = write_all(fd_.get(), tensorboard_record(event));
  if (failed == 0) return {};
  fd_.reset();
  return disk_error(path_, "TensorBoard's events cannot be written", failed);
}

double wall_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace accrue

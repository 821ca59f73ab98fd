// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: scalars by tag and step, as TensorBoard reads them. A file is a row of records, each with
// its length and two checksums; a record is an Event message, encoded here by hand: three messages of a few fields are
// less than a library for all of Protocol Buffers, and Debian has TensorBoard's own writer only within TensorFlow.
// Source: the TFRecord framing and the messages Event and Summary of TensorFlow's documentation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

using TensorboardScalars = std::vector<std::pair<std::string, double>>;  ///< tag, value

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::string_view bytes);
/// What a record keeps of a checksum, so that records may lie in records.
std::uint32_t masked_crc32c(std::string_view bytes);
/// An Event with a summary of scalars; a value is a float.
std::string tensorboard_event(double wall_time, std::int64_t step, const TensorboardScalars& scalars);
/// The first Event of a file: its version.
std::string tensorboard_version_event(double wall_time);
/// A record of a file: the event's length, its checksum, the event, its checksum.
std::string tensorboard_record(std::string_view event);

class TensorboardFile {
 public:
  /// A new file in the folder, which is made where it is missing. TensorBoard finds it by its name, which has the time,
  /// the host and the process. wall_time: seconds since 1970. Errors: disk.
  static Result<TensorboardFile> create(const std::filesystem::path& folder, double wall_time);
  /// The same under a hidden name, which TensorBoard does not see and a later call takes over, until publish() gives it
  /// its own; removed where that is not called. Errors: disk.
  static Result<TensorboardFile> create_hidden(const std::filesystem::path& folder, double wall_time);
  TensorboardFile(TensorboardFile&& other) noexcept;
  TensorboardFile& operator=(TensorboardFile&& other) noexcept;
  ~TensorboardFile();

  /// Appends one event; a reader sees it at once. After an error nothing more is written. Errors: disk.
  Result<void> add(double wall_time, std::int64_t step, const TensorboardScalars& scalars);
  /// Of a hidden file that is whole: its data are on the disk, and then it has its name. Errors: disk.
  Result<void> publish();
  const std::filesystem::path& path() const { return path_; }

 private:
  TensorboardFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<void> write(std::string_view event);

  std::filesystem::path path_;
  std::filesystem::path hidden_;  ///< where it is until then; empty: at path_
  int fd_ = -1;
};

/// Seconds since 1970.
double wall_clock_seconds();

}  // namespace accrue

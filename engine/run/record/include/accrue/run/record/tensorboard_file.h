// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: scalars by tag and step. A file is a sequence of records, each with its length and two
// checksums. A record is an Event message. It is encoded by hand: three messages with a few fields need less code than
// the Protocol Buffers library, and Debian has TensorBoard's own writer only within TensorFlow. Source: the TFRecord
// framing and the messages Event and Summary of TensorFlow's documentation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {

using TensorboardScalars = std::vector<std::pair<std::string, double>>;  ///< tag, value

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::string_view bytes);
/// Checksum as stored in a record, masked so that records can be nested.
std::uint32_t masked_crc32c(std::string_view bytes);
/// Encodes an Event with a summary of scalars; values are floats.
std::string tensorboard_event(double wall_time, std::int64_t step, const TensorboardScalars& scalars);
/// Encodes the first Event of a file: its version.
std::string tensorboard_version_event(double wall_time);
/// Encodes a record: the event's length, its checksum, the event, its checksum.
std::string tensorboard_record(std::string_view event);

class TensorboardFile {
 public:
  /// Makes a new file in the folder, and the folder if necessary. Its name contains the time, the host and the process,
  /// by which TensorBoard finds it. wall_time: seconds since 1970. Errors: disk.
  static Result<TensorboardFile> create(const std::filesystem::path& folder, double wall_time);
  /// Makes a file with a hidden name that TensorBoard ignores, until publish() renames it. Without publish() it is
  /// removed; a later call replaces the file of a killed process. Errors: disk.
  static Result<TensorboardFile> create_hidden(const std::filesystem::path& folder, double wall_time);
  TensorboardFile(TensorboardFile&& other) noexcept;
  TensorboardFile& operator=(TensorboardFile&& other) noexcept;
  ~TensorboardFile();

  /// Appends one event, which a reader sees at once. After an error nothing more is written. Errors: disk.
  Result<void> add(double wall_time, std::int64_t step, const TensorboardScalars& scalars);
  /// Syncs a complete hidden file to the disk, then renames it. Errors: disk.
  Result<void> publish();
  const std::filesystem::path& path() const { return path_; }

 private:
  TensorboardFile(std::filesystem::path path, OwnedFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Result<void> write(std::string_view event);

  std::filesystem::path path_;
  std::filesystem::path hidden_;  ///< temporary path until then; empty: path_ is used
  OwnedFd fd_;
};

/// Seconds since 1970.
double wall_clock_seconds();

}  // namespace accrue

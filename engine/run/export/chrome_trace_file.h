// SPDX-License-Identifier: Apache-2.0
// A trace file under construction: written to a temporary file, which is removed unless it is completed.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"
#include "json_text.h"

namespace accrue {

class TraceFile {
 public:
  static Result<TraceFile> create(const std::filesystem::path& path);
  TraceFile(TraceFile&&) = default;
  TraceFile& operator=(TraceFile&&) = delete;
  ~TraceFile();

  void open_object(const std::string& run_name);
  void event(const Json& event);
  /// The first error so far.
  Result<void> state() const { return state_; }
  /// Writes the rest and renames the file.
  Result<void> close_object();

 private:
  TraceFile(std::filesystem::path path, OwnedFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  void flush();

  std::filesystem::path path_;
  OwnedFd fd_;
  std::string buffer_;
  bool first_ = true;
  Result<void> state_;
};

}  // namespace accrue

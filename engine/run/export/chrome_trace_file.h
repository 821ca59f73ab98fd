// SPDX-License-Identifier: Apache-2.0
// A trace file while it is written: beside its place until it is whole, removed where it never is.
#pragma once

#include <filesystem>
#include <string>

#include "accrue/run/result.h"
#include "json_text.h"

namespace accrue {

class TraceFile {
 public:
  static Result<TraceFile> create(const std::filesystem::path& path);
  TraceFile(TraceFile&& other) noexcept;
  TraceFile& operator=(TraceFile&&) = delete;
  ~TraceFile();

  void open_object(const std::string& run_name);
  void event(const Json& event);
  /// What went wrong so far.
  Result<void> state() const { return state_; }
  /// Writes what is left and takes the file's place.
  Result<void> close_object();

 private:
  TraceFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  void flush();

  std::filesystem::path path_;
  int fd_ = -1;
  std::string buffer_;
  bool first_ = true;
  Result<void> state_;
};

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace accrue::cli {

/// A new folder below the temporary one, removed with this object. Its path is empty if none could be made.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& purpose) {
    std::string name = (std::filesystem::temp_directory_path() / ("accrue-" + purpose + "-XXXXXX")).string();
    if (::mkdtemp(name.data())) path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace accrue::cli

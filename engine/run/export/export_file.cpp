// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/export/export_file.h"

#include "posix_file.h"

namespace accrue {

Result<void> write_export(const std::filesystem::path& file, std::string_view text) {
  return write_file(file, text, 0644);
}

}  // namespace accrue

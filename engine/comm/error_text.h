// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace accrue {

/// LibTorch's messages contain a backtrace; users see the first line.
inline std::string first_line(const std::string& what) {
  const std::string line = what.substr(0, what.find('\n'));
  return line.substr(0, line.find(" Exception raised from"));
}

}  // namespace accrue

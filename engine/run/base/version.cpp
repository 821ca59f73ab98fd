// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/base/version.h"

#include <string_view>

namespace accrue {

static_assert(std::string_view(headers_version) == ACCRUE_VERSION, "version.h says another version than the project");

const char* version() {
  return ACCRUE_VERSION;
}

}  // namespace accrue

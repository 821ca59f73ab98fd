// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/version.h"

namespace accrue {

const char* version() {
  return ACCRUE_VERSION;
}

}  // namespace accrue

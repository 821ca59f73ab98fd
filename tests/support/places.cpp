// SPDX-License-Identifier: Apache-2.0
// The only unit of the tests that knows where this build lies; the others are the same at every path, and so is what
// the compiler cache keeps of them.
#include "support/places.h"

#include <QLatin1Char>

namespace accrue::test {

QString sourcePath(const char* relative) {
  return QLatin1String(ACCRUE_SOURCE_DIR) + QLatin1Char('/') + QLatin1String(relative);
}

QString programPath(const char* name) {
  return QLatin1String(ACCRUE_BIN_DIR) + QLatin1Char('/') + QLatin1String(name);
}

}  // namespace accrue::test

// SPDX-License-Identifier: Apache-2.0
// The only unit of the tests that knows the build's path; the others are the same at every path, so that the compiler
// cache serves all of them.
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

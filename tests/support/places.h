// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

namespace accrue::test {

/// A file or folder of the project's sources.
QString sourcePath(const char* relative);
/// A program of this build.
QString programPath(const char* name);

}  // namespace accrue::test

// SPDX-License-Identifier: Apache-2.0
// What the system's error numbers mean to a user. Where the reason is a limit of this process (ulimit), it is named
// with its value, because nothing else helps.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/result.h"

namespace accrue {

/// "No space left on device"; "File too large: a file may hold at most 32.0 KiB (ulimit -f)".
std::string system_words(int error);
/// What a file was opened for.
enum class FileUse { read, write };
/// What to do about it; empty if there is no advice.
std::string system_hint(int error, FileUse use = FileUse::write);

/// "no pipe can be made: Too many open files: ...". Class device where too many files are open, else internal.
tl::unexpected<Error> system_error(std::string_view what, int error);

}  // namespace accrue

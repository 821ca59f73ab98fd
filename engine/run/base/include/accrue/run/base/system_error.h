// SPDX-License-Identifier: Apache-2.0
// System error numbers in a user's words. If a limit of this process (ulimit) is the reason, the text names the limit
// and its value, because raising it is the only remedy.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/base/result.h"

namespace accrue {

/// Describes an error, for example "No space left on device" or "File too large: a file may hold at most 32.0 KiB
/// (ulimit -f)".
std::string system_words(int error);
/// Whether a file was opened to read or to write.
enum class FileUse { read, write };
/// Returns advice for the error; empty if there is none.
std::string system_hint(int error, FileUse use = FileUse::write);

/// Returns an Error such as "no pipe can be made: Too many open files: ...". Its class is device for too many open
/// files, else internal.
tl::unexpected<Error> system_error(std::string_view what, int error);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// MD5 for the names of index files, which others chose. It protects nothing.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/result.h"

namespace accrue {

/// 32 lower-case hex digits. Errors: device where the system's libcrypto does without MD5.
Result<std::string> md5_hex(std::string_view bytes);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// MD5 for names of index files, as other programs chose them. It protects nothing.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/base/result.h"

namespace accrue {

/// Returns 32 lower-case hex digits. Errors: device if the system's libcrypto lacks MD5.
Result<std::string> md5_hex(std::string_view bytes);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {
/// That these headers belong to; version() is that of the program.
inline constexpr char headers_version[] = "0.1.0";
/// "0.1.0"
const char* version();
}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {
/// Version of these headers. version() returns that of the linked library.
inline constexpr char headers_version[] = "0.1.0";
/// "0.1.0"
const char* version();
}  // namespace accrue

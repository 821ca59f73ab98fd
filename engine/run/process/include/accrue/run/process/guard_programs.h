// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// Main function of a guard process (see ProgramGroupOptions::guard). Reads from `fd` which ranks live, and kills the
/// remaining ones when its other end is closed.
void guard_programs(int fd);

}  // namespace accrue

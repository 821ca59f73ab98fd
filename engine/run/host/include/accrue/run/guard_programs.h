// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// The whole of a guard's process (see ProgramGroupOptions::guard): reads from `fd` which ranks live and, when its
/// other end is gone, kills those that are left.
void guard_programs(int fd);

}  // namespace accrue

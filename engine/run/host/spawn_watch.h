// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "spawn_support.h"

namespace accrue {

/// posix_spawn(), which returns only once the child has become the program. A child that somebody stops (SIGSTOP)
/// before that is killed after `patience`; the caller then finds it dead. Returns an errno or 0.
int spawn_in_time(pid_t& pid, const std::string& program, const SpawnSettings& settings,
                  std::vector<std::string>& arguments, std::vector<std::string>& environment,
                  std::chrono::milliseconds patience);

}  // namespace accrue

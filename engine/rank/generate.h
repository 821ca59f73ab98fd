// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

/// accrue-rank generate DIR ...: continues a prompt with the final weights of a run, on standard output.
/// Errors (config): an invalid option, a model that makes no text; (disk, protocol): those of the run's files.
Result<void> generate_from_run(const std::vector<std::string>& words);

}  // namespace accrue

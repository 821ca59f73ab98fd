// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

/// Data sets as named by Megatron-LM's data_path and similar fields.
struct MegatronBlend {
  std::vector<double> weights;  ///< one per path; empty: none were given
  std::vector<std::string> paths;
};

/// Reads "0.3 a 0.7 b" as words, or paths alone: weights are recognised if every other word, from the first, is a
/// number. Errors (config): only some of these are numbers, or a weight has no path; `where` is the word.
Result<MegatronBlend> read_megatron_blend(const std::vector<std::string>& words);

}  // namespace accrue

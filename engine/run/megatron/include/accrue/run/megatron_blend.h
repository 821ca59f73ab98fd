// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

/// Data sets as Megatron-LM's data_path and its siblings name them.
struct MegatronBlend {
  std::vector<double> weights;  ///< one a path; empty: none were given
  std::vector<std::string> paths;
};

/// "0.3 a 0.7 b" as so many words, or paths alone: by whether every other word, from the first, is a number. Errors
/// (config): only some of these are, or a weight has no path; `where` is the word.
Result<MegatronBlend> read_megatron_blend(const std::vector<std::string>& words);

}  // namespace accrue

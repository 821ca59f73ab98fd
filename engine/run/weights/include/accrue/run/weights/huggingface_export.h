// SPDX-License-Identifier: Apache-2.0
// A run's final weights in Hugging Face's layout, which transformers opens with from_pretrained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

struct HuggingFaceExport {
  std::vector<std::filesystem::path> files;  ///< in the order in which they were written
  std::uint64_t bytes = 0;                   ///< of all tensors
  std::string tokenizer;                     ///< a line: whose is there, or why none and what to do
};

/// Writes config.json, generation_config.json and model.safetensors, which is cut into files of at most
/// `most_file_bytes` with an index beside them, into a new or an empty folder, and copies the tokenizer's files if they
/// are known: those of the weights that the run started from, or those that its dataset names. The numbers stay as they
/// are, in the model's type. `go_on`: asked before each tensor; false ends the export. Errors (cancelled); (config): no
/// such model in transformers, `out` is not empty; (data): the run has no final weights; (disk). On an error nothing
/// that was written is left in `out`.
Result<HuggingFaceExport> export_huggingface(const std::filesystem::path& run_dir, const std::filesystem::path& out,
                                             const std::function<bool()>& go_on = {},
                                             std::uint64_t most_file_bytes = std::uint64_t{5'000'000'000});

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// What belongs to a run's weights so that others can read and write text with them: the tokenizer's files, and the
// tokens that begin and end a text. They come from the weights that the run started from, or from its dataset.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/fields/spec.h"
#include "json_text.h"

namespace accrue {

inline constexpr const char* generation_name = "generation_config.json";

struct TextFiles {
  struct Copy {
    std::filesystem::path from;
    std::string name;  ///< under which transformers looks for it
  };
  std::vector<Copy> copies;
  Json tokens = Json::object();  ///< bos_token_id, eos_token_id and pad_token_id, as far as they are known
  std::string summary;           ///< a line for the user: whose tokenizer it is, or why there is none and what to do
};

/// `run_dir`: where paths of its spec start. Only files that are there, and are what they were, are named.
TextFiles text_files_of(const RunSpec& spec, const std::filesystem::path& run_dir);

}  // namespace accrue

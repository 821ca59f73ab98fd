// SPDX-License-Identifier: Apache-2.0
// config.json of Hugging Face's transformers, as keys of [model].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/weights/weight_names.h"

namespace accrue {

struct HuggingFaceConfig {
  std::string model_type;  ///< gpt2, llama, mistral or qwen2
  WeightNames names = WeightNames::gpt2;
  ModelSpec model;                     ///< what it says, beside defaults
  std::vector<std::string> keys;       ///< the keys of a spec that it sets
  std::int64_t positions = 0;          ///< tokens of the longest text
  std::optional<std::int64_t> window;  ///< a token sees no further back: texts up to this long are as without
};

/// `where`: the file, for errors. Errors (data): no JSON, a model_type or a setting that Accrue's blocks do not have.
Result<HuggingFaceConfig> read_huggingface_config(const std::string& text, const std::string& where);

/// Writes the config of a model under its model_type, whose own tokens that begin and end a text are taken away: a null
/// is no token. Errors (config): the model has a part that no such type has.
Result<std::string> write_huggingface_config(const ModelSpec& model);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Rules between the fields of the plug-in, and between them and the model.
#pragma once

#include <string>
#include <vector>

#include "accrue/run/megatron/megatron_fields.h"

namespace accrue {

/// Returns every broken rule; each finding names both sides.
std::vector<Finding> check_megatron(const ResolvedMegatron& resolved, const MegatronFacts& facts);

namespace megatron_detail {

/// Text for a key that the spec sets beside the field that gives it. `--set` cannot leave a key out.
inline std::string set_to_another(const std::string& by, const std::string& field_key) {
  if (by.starts_with("custom_")) return "is not what the data sets of the plug-in library say: leave it out";
  return "is set by " + by + " of the plug-in to another value: set " + field_key + " in its place";
}

}  // namespace megatron_detail

}  // namespace accrue

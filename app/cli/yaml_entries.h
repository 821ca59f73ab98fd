// SPDX-License-Identifier: Apache-2.0
// A configuration file in YAML as a list of keys and values. The only place that uses libyaml. Its events are read one
// by one and nothing is expanded, so an alias cannot grow.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/megatron/accelerate_config.h"

namespace accrue::cli {

inline constexpr std::size_t max_yaml_bytes = std::size_t{64} * 1024;

/// Returns values of the top level and of one level of blocks ("block.key"), integers in decimal as YAML 1.1 reads
/// them; skips a byte-order mark. Also reads JSON of one object. Refused by name (config): text that is not YAML, a
/// file that is too large, a top level that is not a mapping, several documents, anchors, aliases, tags, duplicate
/// keys, deeper nesting than a list inside a block.
Result<std::vector<ConfigEntry>> yaml_entries(std::string_view text, const std::string& file_name);
Result<std::vector<ConfigEntry>> read_yaml_entries(const std::filesystem::path& file);

}  // namespace accrue::cli

// SPDX-License-Identifier: Apache-2.0
// A configuration file in YAML as a list of keys and values. The only place that sees libyaml, whose events are read
// one by one: nothing is expanded, so an alias cannot grow.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/accelerate_config.h"
#include "accrue/run/result.h"

namespace accrue::cli {

inline constexpr std::size_t max_yaml_bytes = 64 * 1024;

/// Values of the top level and of one level of blocks ("block.key"), whole numbers in decimal as YAML 1.1 reads them; a
/// byte-order mark is passed over. JSON of one object is read as well. Refused by name (config): text that is no YAML,
/// a file that is too large, a top level that is no mapping, several documents, anchors, aliases, tags, a key given
/// twice, deeper nesting than a list within a block.
Result<std::vector<ConfigEntry>> yaml_entries(std::string_view text, const std::string& file_name);
Result<std::vector<ConfigEntry>> read_yaml_entries(const std::filesystem::path& file);

}  // namespace accrue::cli

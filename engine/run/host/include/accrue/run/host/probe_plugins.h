// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/megatron/plugin_facts.h"

namespace accrue {

/// Returns what libraries register, as "accrue-rank plugins" prints it. A separate process loads them, never the
/// caller. Takes about 0.3 s, or nothing without libraries. Errors: config if loading one ends that process.
Result<std::vector<PluginFacts>> probe_plugins(const std::string& rank_program,
                                               const std::vector<std::filesystem::path>& files);
/// Does the same, with an entry for each library; the entry of one that cannot be probed says why. A file that is given
/// twice is probed once.
std::vector<PluginFacts> describe_plugins(const std::string& rank_program,
                                          const std::vector<std::filesystem::path>& files);

}  // namespace accrue

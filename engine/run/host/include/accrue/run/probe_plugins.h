// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/plugin_facts.h"

namespace accrue {

/// What libraries register, as "accrue-rank plugins" says: a process of its own loads them, never the caller. Takes
/// about 0.3 s; without libraries nothing is asked. Errors: config where loading one ends that process.
Result<std::vector<PluginFacts>> probe_plugins(const std::string& rank_program,
                                               const std::vector<std::filesystem::path>& files);
/// The same, an entry for each library: where one cannot even be asked, its entry says why. A file that is given twice
/// is asked once.
std::vector<PluginFacts> describe_plugins(const std::string& rank_program,
                                          const std::vector<std::filesystem::path>& files);

}  // namespace accrue

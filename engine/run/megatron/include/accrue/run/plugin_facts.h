// SPDX-License-Identifier: Apache-2.0
// Plug-in libraries as the supervisor and the studio know them: what accrue-rank, which alone loads them, says that
// they register, and whether a spec names it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/findings.h"
#include "accrue/run/megatron_spec.h"
#include "accrue/run/result.h"

namespace accrue {

/// Of data sets that have a size of their own.
struct DatasetSizes {
  std::int64_t training = 0;    ///< samples
  std::int64_t validation = 0;  ///< samples; 0: nothing is evaluated
  bool operator==(const DatasetSizes&) const = default;
};

struct PluginEntry {
  std::string field;  ///< "custom_loss_function"
  std::string name;
  std::optional<DatasetSizes> sizes = {};  ///< of data sets; unset: as many samples as are asked for
  bool operator==(const PluginEntry&) const = default;
};

/// One library. Where it cannot be used, `error` says why and the entries are empty.
struct PluginFacts {
  std::string file;
  std::string name;    ///< as it calls itself
  std::string sha256;  ///< of the file
  std::vector<PluginEntry> entries;
  std::string error;
  bool operator==(const PluginFacts&) const = default;
};

std::string to_json(std::span<const PluginFacts> libraries);
Result<std::vector<PluginFacts>> plugin_facts_from_json(const std::string& json);

/// What registers the name under the field; nullptr where nothing does.
const PluginEntry* find_entry(std::span<const PluginFacts> libraries, std::string_view field, std::string_view name);

/// Errors: a library that cannot be used, a name that two of them register, a name of [megatron] that none does; the
/// nearest one is said. Pure.
std::vector<Finding> check_plugins(const MegatronSpec& spec, std::span<const PluginFacts> libraries);

/// What a run's record keeps of a library.
struct PluginRecord {
  std::string file;
  std::string name;
  std::string sha256;
  bool operator==(const PluginRecord&) const = default;
};
std::vector<PluginRecord> records_of(std::span<const PluginFacts> libraries);
/// A run keeps to the libraries that it began with. Errors (config): names the one that is gone, or another.
Result<void> check_unchanged(std::span<const PluginRecord> recorded);
/// Errors: disk.
Result<std::string> sha256_of_file(const std::filesystem::path& file);

}  // namespace accrue

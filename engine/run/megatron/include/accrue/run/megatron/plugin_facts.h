// SPDX-License-Identifier: Apache-2.0
// Plug-in libraries as known to the supervisor and the studio: what they register, according to accrue-rank (the only
// program that loads them), and whether a spec names it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/megatron_keys.h"

namespace accrue {

/// Sizes of data sets that know their own size.
struct DatasetSizes {
  std::int64_t training = 0;    ///< samples
  std::int64_t validation = 0;  ///< samples; 0: no evaluation
  bool operator==(const DatasetSizes&) const = default;
};

struct PluginEntry {
  std::string field;  ///< "custom_loss_function"
  std::string name;
  std::optional<DatasetSizes> sizes = {};  ///< of data sets; unset: as many samples as requested
  bool operator==(const PluginEntry&) const = default;
};

/// One library. If it is unusable, `error` says why and there are no entries.
struct PluginFacts {
  std::string file;
  std::string name;    ///< its own name for itself
  std::string sha256;  ///< of the file
  std::vector<PluginEntry> entries;
  std::string error;
  bool operator==(const PluginFacts&) const = default;
};

std::string to_json(std::span<const PluginFacts> libraries);
Result<std::vector<PluginFacts>> plugin_facts_from_json(const std::string& json);

/// Returns the entry with the name under the field; nullptr if there is none.
const PluginEntry* find_entry(std::span<const PluginFacts> libraries, std::string_view field, std::string_view name);

/// Findings: an unusable library, a name that two libraries register, a name of [megatron] that none registers, with
/// the nearest one. Pure.
std::vector<Finding> check_plugins(const MegatronSpec& spec, std::span<const PluginFacts> libraries);

/// Facts about a library that a run's record keeps.
struct PluginRecord {
  std::string file;
  std::string name;
  std::string sha256;
  bool operator==(const PluginRecord&) const = default;
};
std::vector<PluginRecord> records_of(std::span<const PluginFacts> libraries);
/// A run keeps the libraries that it began with. Errors (config): names one that is gone or changed.
Result<void> check_unchanged(std::span<const PluginRecord> recorded);
/// Errors: disk.
Result<std::string> sha256_of_file(const std::filesystem::path& file);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// A configuration file of Accelerate as a run spec. Every key of the file is accounted for: used, omitted because it
// changes nothing, or not supported, with the reason.
// Source: accelerate v1.15.0, commands/config/config_args.py and cluster.py, which write such files, and
// commands/launch.py, which applies them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

/// One value of the file: "num_processes", "megatron_lm_config.megatron_lm_tp_degree".
struct ConfigEntry {
  std::string key;
  std::string value;    ///< as spelled, without quotes; an integer in decimal; for a list or a mapping inside a
                        ///< block: empty
  bool nested = false;  ///< a list, or a mapping where a value is expected
  bool quoted = false;  ///< so that 'no' is a word and not false
  int line = 0;         ///< 1-based
};

enum class ConfigUse {
  used,      ///< the spec holds it
  idle,      ///< without effect here
  not_taken  ///< has an effect that the spec cannot express
};

struct ConfigNote {
  std::string key;
  std::string value;
  ConfigUse use = ConfigUse::used;
  std::string why;  ///< for a used entry: the keys that it set
  int line = 0;
  std::string file;  ///< empty: the configuration; else DeepSpeed's file
};

/// The JSON that deepspeed_config_file names.
struct DeepSpeedFile {
  std::string name;
  std::vector<ConfigEntry> entries;
  std::string problem;  ///< why it could not be read; empty if it was
};

struct AccelerateImport {
  RunSpec spec;
  std::vector<ConfigNote> notes;  ///< one per entry, in the order of the files, and one if more must be said
};

/// Returns the DeepSpeed file that the configuration names, as it names it; empty if there is none.
std::string deepspeed_file_of(const std::vector<ConfigEntry>& entries);

/// Pure. Model and data keep a spec's defaults, as Accelerate's file says nothing about them. `deepspeed`: the file
/// that deepspeed_file_of() names. Errors: config if there is no key of Accelerate.
Result<AccelerateImport> import_accelerate(const std::vector<ConfigEntry>& entries,
                                           const std::optional<DeepSpeedFile>& deepspeed = {});

/// Returns a line per note that is not `used`: "accelerate.yaml:12: gpu_ids = 0,1: not taken: ...". A number of
/// processes that differs from the spec comes first, then the unsupported keys, and after an empty line those without
/// effect.
std::string import_report(const AccelerateImport& import, std::string_view file);

}  // namespace accrue

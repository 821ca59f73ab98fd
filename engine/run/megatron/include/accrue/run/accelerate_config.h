// SPDX-License-Identifier: Apache-2.0
// A configuration file of Accelerate as a run spec. Every key of the file is answered for: used, left out because it
// changes nothing, or not taken, with the reason.
// Source: accelerate v1.15.0, commands/config/config_args.py and cluster.py, which write such files, and
// commands/launch.py, which says what they start.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_spec.h"

namespace accrue {

/// One value of the file: "num_processes", "megatron_lm_config.megatron_lm_tp_degree".
struct ConfigEntry {
  std::string key;
  std::string value;    ///< as it is spelt, without quotes; a whole number in decimal; of a list or a mapping within a
                        ///< block empty
  bool nested = false;  ///< a list, or a mapping where a value is expected
  bool quoted = false;  ///< so that 'no' is a word and not false
  int line = 0;         ///< 1-based
};

enum class ConfigUse {
  used,      ///< the spec holds it
  idle,      ///< it changes nothing here
  not_taken  ///< it means something that the spec does not hold
};

struct ConfigNote {
  std::string key;
  std::string value;
  ConfigUse use = ConfigUse::used;
  std::string why;  ///< of what was used: the keys that it set
  int line = 0;
  std::string file;  ///< empty: the configuration; else DeepSpeed's
};

/// The JSON that deepspeed_config_file names.
struct DeepSpeedFile {
  std::string name;
  std::vector<ConfigEntry> entries;
  std::string problem;  ///< why it could not be read; empty where it was
};

struct AccelerateImport {
  RunSpec spec;
  std::vector<ConfigNote> notes;  ///< one an entry, in the order of the files, and one where something is left to say
};

/// The file of DeepSpeed that the configuration names, as it names it; empty where it names none.
std::string deepspeed_file_of(const std::vector<ConfigEntry>& entries);

/// Pure. Model and data stand at the defaults of a spec: Accelerate's file says nothing about them. `deepspeed` is what
/// deepspeed_file_of() names. Errors: config, where there is no key of Accelerate.
Result<AccelerateImport> import_accelerate(const std::vector<ConfigEntry>& entries,
                                           const std::optional<DeepSpeedFile>& deepspeed = {});

/// One line a note that is not `used`: "accelerate.yaml:12: gpu_ids = 0,1: not taken: ...". A number of processes that
/// the spec does not have comes first, then what else is not taken, and after an empty line what changes nothing.
std::string import_report(const AccelerateImport& import, std::string_view file);

}  // namespace accrue

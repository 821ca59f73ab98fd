// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/accelerate_config.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "print.h"
#include "verbs.h"
#include "yaml_entries.h"

namespace accrue::cli {
namespace {

namespace fs = std::filesystem;

/// Reads the file as the configuration names it: relative to the working directory, as Accelerate does, or to the
/// configuration.
std::optional<DeepSpeedFile> read_deepspeed_file(const std::vector<ConfigEntry>& entries, const fs::path& config) {
  const std::string named = deepspeed_file_of(entries);
  if (named.empty()) return std::nullopt;
  std::error_code error;
  const fs::path file = fs::exists(named, error) ? fs::path(named) : config.parent_path() / named;
  auto read = read_yaml_entries(file);
  if (!read) return DeepSpeedFile{file.string(), {}, read.error().where + ": " + read.error().message};
  return DeepSpeedFile{file.string(), std::move(*read), {}};
}

int print_import(const std::string& file) {
  const auto entries = read_yaml_entries(file);
  if (!entries) return report(entries.error());
  auto import = import_accelerate(*entries, read_deepspeed_file(*entries, file));
  if (!import) {
    import.error().where = file;
    return report(import.error());
  }
  say(import_report(*import, file));
  put_data(write_spec(import->spec));
  return status_done;
}

}  // namespace

int print_spec(const SpecOptions& options) {
  if (!options.from_accelerate.empty()) return print_import(options.from_accelerate);
  const std::string text = options.schema     ? json_schema()
                           : options.megatron ? megatron_reference()
                                              : annotated_defaults();
  put_data(text);
  return status_done;
}

}  // namespace accrue::cli

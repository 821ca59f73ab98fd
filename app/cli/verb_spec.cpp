// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/accelerate_config.h"
#include "accrue/run/megatron_lowering.h"
#include "accrue/run/spec_io.h"
#include "print.h"
#include "verbs.h"
#include "yaml_entries.h"

namespace accrue::cli {
namespace {

int print_import(const std::string& file) {
  const auto entries = read_yaml_entries(file);
  if (!entries) return report(entries.error());
  const AccelerateImport import = import_accelerate(*entries);
  say(import_report(import, file));
  put_data(write_spec(import.spec));
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

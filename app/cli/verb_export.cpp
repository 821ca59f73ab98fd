// SPDX-License-Identifier: Apache-2.0
// export: a spec as code for another tool. The text goes to standard output or into a file; what could not be carried
// over stands in the text, and goes to standard error.
#include <cstdio>

#include "accrue/run/code_export.h"
#include "accrue/run/export_file.h"
#include "printable.h"
#include "verbs.h"

namespace accrue::cli {

namespace {

int export_spec(const ExportOptions& options, CodeTarget target) {
  const auto plan = plan_from({.file = options.from, .sets = options.sets});
  if (!plan) return status_refused;
  const auto code = export_code(*plan, target);
  if (!code) return report(code.error());
  for (const NotCarried& each : code->not_carried)
    std::fprintf(stderr, "accrue-run: not carried over: %s\n", printable(each.text()).c_str());
  if (!options.out.empty()) {
    if (const auto written = write_export(options.out, code->text); !written) return report(written.error());
  }
  if (options.json)
    std::printf("%s\n", to_json(*code).c_str());
  else if (options.out.empty())
    std::fputs(code->text.c_str(), stdout);
  return status_done;
}

}  // namespace

int export_to(const ExportOptions& options) {
  const auto targets = code_targets();
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (options.to == targets[i]) return export_spec(options, static_cast<CodeTarget>(i));
  return status_refused;
}

}  // namespace accrue::cli

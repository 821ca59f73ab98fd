// SPDX-License-Identifier: Apache-2.0
// export: a spec as code for another tool, or a run's record for one. Code goes to standard output or into a file.
// Settings that cannot be exported are listed in the text and on standard error.
#include <cstdio>

#include "accrue/run/base/number_text.h"
#include "accrue/run/export/chrome_trace.h"
#include "accrue/run/export/code_export.h"
#include "accrue/run/export/export_file.h"
#include "accrue/run/export/tensorboard_export.h"
#include "accrue/run/weights/huggingface_export.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {

namespace {

int export_spec(const ExportOptions& options, CodeTarget target) {
  const auto plan = plan_from({.file = options.from, .sets = options.sets});
  if (!plan) return status_refused;
  const auto code = export_code(*plan, target);
  if (!code) return report(code.error());
  if (const auto named = check_file_name(*code, options.out); !named) return report(named.error());
  for (const NotCarried& each : code->not_carried) say("accrue-run: not carried over: %s\n", each.text().c_str());
  if (!options.out.empty()) {
    if (const auto written = write_export(options.out, code->text); !written) return report(written.error());
  }
  if (options.json)
    put_data(to_json(*code) + "\n");
  else if (options.out.empty())
    put_data(code->text);
  return status_done;
}

int export_trace(const ExportOptions& options) {
  const auto counts = write_chrome_trace(options.from, options.out);
  if (!counts) return report(counts.error());
  say("%lld ranks, %lld spans of computation, %lld of communication, %lld joined by flows\n",
      static_cast<long long>(counts->ranks), static_cast<long long>(counts->operations),
      static_cast<long long>(counts->collectives), static_cast<long long>(counts->flows));
  put_data(options.out + "\n");
  return status_done;
}

int export_scalars(const ExportOptions& options) {
  const auto written = export_tensorboard(options.from, options.out);
  if (!written) return report(written.error());
  put_data(written->file.string() + "\n");
  return status_done;
}

int export_weights(const ExportOptions& options) {
  const auto written = export_huggingface(options.from, options.out);
  if (!written) return report(written.error());
  say("%zu files, %s of weights; %s\n", written->files.size(),
      format_bytes(static_cast<double>(written->bytes)).c_str(), written->tokenizer.c_str());
  put_data(options.out + "\n");
  return status_done;
}

/// A record goes into a file or a folder, and has no key for --set to change.
bool fits_record(const ExportOptions& options) {
  const char* const wrong = options.out.empty()     ? "--out is required: where the record goes"
                            : !options.sets.empty() ? "--set changes a spec; a run folder is exported as it is"
                            : options.json          ? "--json is for code; the record is in the file"
                                                    : nullptr;
  if (wrong != nullptr) say("accrue-run: export --to %s: %s\n", options.to.c_str(), wrong);
  return wrong == nullptr;
}

}  // namespace

int export_to(const ExportOptions& options) {
  if (options.to == "chrome-trace") return fits_record(options) ? export_trace(options) : status_refused;
  if (options.to == "tensorboard") return fits_record(options) ? export_scalars(options) : status_refused;
  if (options.to == "huggingface") return fits_record(options) ? export_weights(options) : status_refused;
  const auto targets = code_targets();
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (options.to == targets[i]) return export_spec(options, static_cast<CodeTarget>(i));
  return status_refused;
}

}  // namespace accrue::cli

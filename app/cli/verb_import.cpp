// SPDX-License-Identifier: Apache-2.0
// import: runs from a bundle, or curves of another tool's log.
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/base/number_text.h"
#include "accrue/run/export/bundle.h"
#include "accrue/run/export/export_file.h"
#include "accrue/run/logs/log_import.h"
#include "accrue/run/logs/log_reader.h"
#include "accrue/run/record/run_store.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {

namespace {

namespace fs = std::filesystem;

int refuse(const std::string& file, const char* why, const char* remedy) {
  return report({ErrorCode::config, why, file, remedy});
}

bool names_columns(const GivenTags& tags) {
  return !tags.loss.empty() || !tags.lr.empty() || !tags.grad_norm.empty() || !tags.evaluation.empty() ||
         tags.batch > 0;
}

fs::path runs_folder(const ImportOptions& options) {
  return options.into.empty() ? default_runs_dir() : fs::path(options.into);
}

int import_runs(const ImportOptions& options) {
  if (!options.dir.empty())
    return refuse(options.dir, "names one folder, and a bundle's runs keep their names",
                  "Give --into RUNS, the folder that they go into, in place of --out");
  if (names_columns(options.tags) || !options.step.empty())
    return refuse(options.from, "holds whole records: no column of it is chosen",
                  "Leave out --step, --loss, --lr, --grad-norm, --evaluation and --batch");
  std::error_code error;
  if (!options.spec.empty() && fs::exists(options.spec, error))
    return refuse(options.spec, "is there already", "Give --spec a file that is not there yet");
  const auto bundle = import_bundle(options.from, runs_folder(options));
  if (!bundle) return report(bundle.error());
  for (const BundledRun& run : bundle->runs) {
    if (run.was_there) say("accrue-run: %s is there already, with the same record\n", run.run_id.c_str());
    put_data(run.dir.string() + "\n");
  }
  if (bundle->ignores_layout)
    say("accrue-run: the window layout in the bundle is ignored: bundles have none any more\n");
  if (bundle->spec.empty()) {
    if (!options.spec.empty())
      say("accrue-run: the bundle carries no spec: %s was not written\n", options.spec.c_str());
    return status_done;
  }
  if (options.spec.empty()) {
    say("accrue-run: the bundle carries a spec; --spec FILE writes it\n");
    return status_done;
  }
  const auto written = write_export(options.spec, bundle->spec);
  return written ? status_done : report(written.error());
}

void tell(const ImportChoice& choice, const std::vector<std::string>& problems, const std::string& word) {
  constexpr std::size_t most_listed = 12;
  warn_of(problems);
  warn_of(choice.notes);
  if (!choice.ignored.empty())
    say("accrue-run: %ss that are not imported: %s\n", word.c_str(), joined_up_to(most_listed, choice.ignored).c_str());
  say("accrue-run: the loss is \"%s\"\n", choice.tags.loss.c_str());
}

int import_curves(const ImportOptions& options) {
  auto logs = read_logs(options.from, {.step = options.step});
  if (!logs) return report(logs.error());
  if (logs->size() > 1 && !options.dir.empty())
    return refuse(options.from, "holds several runs, and --out names one folder",
                  "Give --into RUNS, the folder that they go into, in place of --out");
  const auto place = options.dir.empty() ? Result<ImportPlace>(ImportPlace{.runs_dir = runs_folder(options)})
                                         : import_place_of(options.dir);
  if (!place) return report(place.error());
  const std::string word = logs->front().word;
  const auto imported = import_logs(std::move(*logs), options.from, *place, options.tags);
  if (!imported) return report(imported.error());
  for (const ImportedRun& each : *imported) {
    tell(each.choice, each.problems, word);
    put_data(each.dir.string() + "\n");
  }
  return status_done;
}

}  // namespace

int import_records(const ImportOptions& options) {
  if (options.from.ends_with(".accrue-bundle")) return import_runs(options);
  if (!options.spec.empty()) return refuse(options.from, "carries no spec: only a bundle does", "Leave out --spec");
  return import_curves(options);
}

}  // namespace accrue::cli

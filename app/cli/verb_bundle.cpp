// SPDX-License-Identifier: Apache-2.0
// bundle: runs as one file for another machine.
#include <cstdio>
#include <string>

#include "accrue/run/base/number_text.h"
#include "accrue/run/export/bundle.h"
#include "accrue/run/fields/spec_io.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {

int bundle_runs(const BundleOptions& options) {
  BundleRequest request{.runs = {options.dirs.begin(), options.dirs.end()}, .with_weights = options.with_weights};
  if (!options.spec.empty()) {
    const SpecReading reading = read_spec(options.spec);
    if (!reading.ok()) {
      for (const Finding& finding : reading.findings) say("%s\n", finding.text().c_str());
      return status_refused;
    }
    request.spec = write_spec(reading.spec);
  }
  const auto written = write_bundle(request, options.out);
  if (!written) return report(written.error());
  const std::string weights =
      options.with_weights ? " (" + format_bytes(written->weight_bytes) + " of them final weights)" : std::string();
  say("accrue-run: %lld %s, %s%s, in a file of %s\n", static_cast<long long>(written->runs),
      written->runs == 1 ? "run" : "runs", format_bytes(written->content_bytes).c_str(), weights.c_str(),
      format_bytes(written->file_bytes).c_str());
  put_data(options.out + "\n");
  return status_done;
}

}  // namespace accrue::cli

// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "accrue/run/spec_io.h"
#include "verbs.h"

namespace accrue::cli {

int print_spec(const SpecOptions& options) {
  std::fputs((options.schema ? json_schema() : annotated_defaults()).c_str(), stdout);
  return status_done;
}

}  // namespace accrue::cli

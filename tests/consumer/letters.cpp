// SPDX-License-Identifier: Apache-2.0
// A program without LibTorch that asks Accrue's planner how each system would treat ten micro-batches.
#include <cstdio>

#include "accrue/run/base/version.h"
#include "accrue/run/window/accumulation_window.h"

int main() {
  using accrue::Dialect;
  std::printf("Accrue %s\n", accrue::version());
  for (const Dialect dialect : {Dialect::llm, Dialect::colossalai, Dialect::accelerate, Dialect::mmengine}) {
    accrue::WindowShape shape;
    shape.knobs = accrue::preset(dialect);
    shape.steps = 4;
    shape.batches_per_epoch = 10;
    shape.max_epochs = 1;
    std::printf("%s\n", accrue::window_letters(dialect, shape, 100).c_str());
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A program that does not look whether its state was saved.
#include <accrue/accumulation/accelerate/accelerator.h>

void save(accrue::accelerate::Accelerator& accelerator) {
  accelerator.save_state("x");
}

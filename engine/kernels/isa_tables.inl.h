// SPDX-License-Identifier: Apache-2.0
// The tables of one instruction set. ACCRUE_ISA names it; the flags come from this folder's CMakeLists.txt. Everything
// that is compiled here has internal linkage: code for a newer CPU must not be the copy that the linker keeps.
#pragma once

#include "kernels/flat_update.inl.h"

namespace accrue::ACCRUE_ISA {

extern const FlatKernels<float> flat_float;
extern const FlatKernels<double> flat_double;

const FlatKernels<float> flat_float{adamw_update<float>, sgd_update<float>, square_sum<float>};
const FlatKernels<double> flat_double{adamw_update<double>, sgd_update<double>, square_sum<double>};

}  // namespace accrue::ACCRUE_ISA

// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_ISA avx512
#include "kernels/isa_tables.inl.h"

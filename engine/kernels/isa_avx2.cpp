// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_ISA avx2
#include "kernels/isa_tables.inl.h"

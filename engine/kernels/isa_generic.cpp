// SPDX-License-Identifier: Apache-2.0
#define ACCRUE_ISA generic
#include "kernels/isa_tables.inl.h"

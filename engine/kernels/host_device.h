// SPDX-License-Identifier: Apache-2.0
// Marks functions that g++ compiles for the CPU and nvcc for a device, from the same source.
#pragma once

#ifdef __CUDACC__
#define ACCRUE_HOST_DEVICE __device__ __forceinline__
#else
#define ACCRUE_HOST_DEVICE inline __attribute__((always_inline))
#endif

// SPDX-License-Identifier: Apache-2.0
// Names of number types in safetensors files.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace accrue {

/// Returns the format's name of a type, null if it has none; the second function converts back, Undefined for an
/// unknown name.
const char* archive_dtype(at::ScalarType type);
at::ScalarType archive_scalar_type(const std::string& dtype);

}  // namespace accrue

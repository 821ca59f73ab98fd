// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/archive_types.h"

#include <array>
#include <utility>

namespace accrue {
namespace {

constexpr std::array<std::pair<const char*, at::ScalarType>, 8> dtype_names{{{"BOOL", at::kBool},
                                                                             {"U8", at::kByte},
                                                                             {"I32", at::kInt},
                                                                             {"I64", at::kLong},
                                                                             {"F16", at::kHalf},
                                                                             {"BF16", at::kBFloat16},
                                                                             {"F32", at::kFloat},
                                                                             {"F64", at::kDouble}}};

}  // namespace

const char* archive_dtype(at::ScalarType type) {
  for (const auto& [name, known] : dtype_names)
    if (known == type) return name;
  return nullptr;
}

at::ScalarType archive_scalar_type(const std::string& dtype) {
  for (const auto& [known, type] : dtype_names)
    if (dtype == known) return type;
  return at::ScalarType::Undefined;
}

}  // namespace accrue

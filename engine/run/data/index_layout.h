// SPDX-License-Identifier: Apache-2.0
// Byte layout of PREFIX.idx: a header, then one column after the other, without padding. Numbers are little-endian, as
// on every supported machine.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "accrue/run/data/indexed_dataset.h"

namespace accrue {

static_assert(std::endian::native == std::endian::little, "indexed datasets are read and written as they lie");

inline constexpr std::string_view index_magic{"MMIDIDX\0\0", 9};
inline constexpr std::uint64_t index_version = 1;
/// Offsets of the dtype, of the two counts and of the first column.
inline constexpr std::int64_t index_dtype_at = 17, index_counts_at = 18, index_header_bytes = 34;

/// Reads a number at any alignment.
template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Calls visit with a value of the type that `dtype` names.
template <typename Visit>
auto visit_dtype(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::uint8:
      return visit(std::uint8_t{});
    case DType::int8:
      return visit(std::int8_t{});
    case DType::int16:
      return visit(std::int16_t{});
    case DType::int32:
      return visit(std::int32_t{});
    case DType::int64:
      return visit(std::int64_t{});
    case DType::float64:
      return visit(double{});
    case DType::float32:
      return visit(float{});
    case DType::uint16:
      break;
  }
  return visit(std::uint16_t{});
}

}  // namespace accrue

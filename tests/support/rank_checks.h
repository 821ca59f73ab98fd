// SPDX-License-Identifier: Apache-2.0
// Checks inside a rank body: a failed one ends the rank with a text that the test prints.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#define DEMAND(condition)                                                                                           \
  do {                                                                                                              \
    if (!(condition)) {                                                                                             \
      throw std::runtime_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": not true: " #condition); \
    }                                                                                                               \
  } while (false)

namespace accrue::test {

/// FNV-1a over the bytes, by which ranks and runs are compared bit for bit.
inline std::string fingerprint(const at::Tensor& tensor, std::uint64_t value = 14695981039346656037ULL) {
  const at::Tensor packed = tensor.detach().contiguous();
  const auto* bytes = static_cast<const unsigned char*>(packed.const_data_ptr());
  for (std::size_t i = 0; i < packed.nbytes(); ++i) value = (value ^ bytes[i]) * 1099511628211ULL;
  return std::to_string(value);
}

}  // namespace accrue::test

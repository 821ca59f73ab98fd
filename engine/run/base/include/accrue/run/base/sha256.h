// SPDX-License-Identifier: Apache-2.0
// SHA-256 for names that outlive a process: specs, weights. Checkpoint files use XXH3 instead.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace accrue {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* data, std::size_t bytes);
  /// Ends the computation and returns lower-case hex.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Environment of ranks, made from an allow-list instead of inherited.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace accrue {

/// NAME=VALUE entries for a new process.
class Environment {
 public:
  /// Returns the variables of this process that the allow-list contains.
  static Environment allowed();
  /// Adds the variables of this process whose names begin with `prefix`.
  void hand_on(std::string_view prefix);
  void set(std::string_view name, std::string_view value);
  void unset(std::string_view name);
  /// Sets a rank's identity in torchrun's names, and its use of threads, memory and interfaces.
  void set_rank(std::int64_t rank, std::int64_t world, std::int64_t threads);
  std::vector<std::string> entries() && { return std::move(entries_); }

 private:
  std::vector<std::string> entries_;
};

}  // namespace accrue

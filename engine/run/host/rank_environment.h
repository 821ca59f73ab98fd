// SPDX-License-Identifier: Apache-2.0
// The environment of ranks, made from an allow-list instead of inherited.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace accrue {

/// NAME=VALUE entries of a process to be.
class Environment {
 public:
  /// What the allow-list lets through of ours.
  static Environment allowed();
  /// Hands on those of our variables whose names begin so.
  void hand_on(std::string_view prefix);
  void set(std::string_view name, std::string_view value);
  void unset(std::string_view name);
  /// Who a rank is, in torchrun's names, and how it uses threads, memory and interfaces.
  void set_rank(std::int64_t rank, std::int64_t world, std::int64_t threads);
  std::vector<std::string> entries() && { return std::move(entries_); }

 private:
  std::vector<std::string> entries_;
};

}  // namespace accrue

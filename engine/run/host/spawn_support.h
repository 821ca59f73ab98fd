// SPDX-License-Identifier: Apache-2.0
// What every start of a process has in common: descriptors out of the child's way, signals as a fresh process expects
// them, and an environment made from an allow-list instead of inherited.
#pragma once

#include <spawn.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"
#include "process_launcher.h"

namespace accrue {

/// A device error where too many files are open, else an internal one; with the system's words.
tl::unexpected<Error> system_error(std::string_view what, int error);

/// The same description on a number that no child number collides with.
OwnedFd lifted(int fd);

struct Pair {
  OwnedFd ours;  ///< does not block
  OwnedFd theirs;
};
/// A pipe from a child's output to us.
Result<Pair> output_pair();

/// Signals as by default and unblocked, a process group of its own; give() and the actions say which descriptors.
struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnSettings();
  ~SpawnSettings();
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  /// Signals that the child starts with blocked.
  void block(std::initializer_list<int> signals);
  void give(int source, int target) { ::posix_spawn_file_actions_adddup2(&actions, source, target); }
};

/// The strings as argv and envp want them; valid as long as they are.
std::vector<char*> pointers(std::vector<std::string>& strings);

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

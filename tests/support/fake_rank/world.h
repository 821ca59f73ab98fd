// SPDX-License-Identifier: Apache-2.0
// The fake ranks' collective: a star. Rank 0 listens on a Unix socket, whose name it writes into the inherited store;
// the others connect. A round carries a few flags up and their union down. A peer that is gone shows at once, as it
// does in Gloo.
#pragma once

#include <cstdint>
#include <vector>

namespace fake_rank {

inline constexpr std::uint32_t flag_checkpoint = 1;
inline constexpr std::uint32_t flag_stop = 2;
inline constexpr int steps_shift = 8;  ///< N for the windows to come lies above the flags

enum class Round { done, peer_lost };

class World {
 public:
  World(std::int64_t rank, std::int64_t size, int store_fd);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// False if a peer did not come.
  bool join();
  /// Unites the ranks' flags.
  Round unite(std::uint32_t& flags);

 private:
  bool accept_peers();
  bool connect_to_first();

  std::int64_t rank_;
  std::int64_t size_;
  int store_fd_;
  std::vector<int> peers_;
};

}  // namespace fake_rank

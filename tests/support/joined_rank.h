// SPDX-License-Identifier: Apache-2.0
// The engine's side of rank_harness.h: a rank body joins the others and gets its data axis.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "accrue/comm/rendezvous.h"
#include "support/rank_harness.h"

namespace accrue::test {

inline std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

inline BackendKind backend_named(const std::string& name) {
  if (name == "shm") return BackendKind::shm;
  if (name == "gloo") return BackendKind::gloo;
  if (name == "nccl") return BackendKind::nccl;
  return BackendKind::automatic;
}

template <typename T>
T taken(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(*result);
}

struct JoinedRank {
  std::unique_ptr<Rendezvous> rendezvous;
  std::unique_ptr<Communicator> data;  ///< declared last: it goes first
};

/// Joins all ranks of the harness and makes the data axis over all of them. Throws with the Error's text.
inline JoinedRank join_ranks(const RankContext& rank, CommOptions options) {
  JoinedRank joined;
  const RankIdentity identity = taken(rank_identity(environment, rank.store_fd));
  joined.rendezvous = taken(Rendezvous::join(identity, options));
  joined.data = taken(joined.rendezvous->communicator(RankGrid{.data = rank.world}, Axis::data));
  return joined;
}

inline JoinedRank join_ranks(const RankContext& rank, BackendKind backend = BackendKind::automatic) {
  return join_ranks(rank, CommOptions{.backend = backend,
                                      .timeout = std::chrono::seconds(20),
                                      .join_timeout = std::chrono::seconds(20),
                                      .run_id = "test"});
}

}  // namespace accrue::test

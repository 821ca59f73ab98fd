// SPDX-License-Identifier: Apache-2.0
// How a rank learns who it is and meets the others: from Accrue's supervisor, torchrun, Slurm, Open MPI or MPICH. First
// match wins, and says which one matched. The store is a TCPStore; under the supervisor rank 0 gets its listening
// socket (127.0.0.1) by inheritance.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "accrue/comm/communicator.h"
#include "accrue/run/result.h"
#include "accrue/run/run_spec.h"

namespace accrue {

struct RankIdentity {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t local_rank = 0;
  std::int64_t local_world = 1;  ///< 0: the launcher does not say
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  bool agent_store = false;  ///< torchrun's agent hosts the store: every rank is a client
  int store_fd = -1;         ///< rank 0 under the supervisor: a bound, listening socket
  std::string source;        ///< "accrue", "torchrun", "slurm", "open-mpi", "mpich", "single"
  std::string attempt;       ///< torchrun's restart count: one agent store serves all attempts
};

/// Reads the environment through `get` (std::getenv in programs, a table in tests).
Result<RankIdentity> rank_identity(const std::function<std::optional<std::string>(const char*)>& get,
                                   int store_fd = -1);

struct CommOptions {
  BackendKind backend = BackendKind::automatic;  ///< automatic: shm where all ranks share this host, else gloo
  std::chrono::milliseconds timeout{60000};      ///< of one collective
  std::chrono::milliseconds join_timeout{60000};
  std::string run_id;  ///< names shared memory
};

/// Joins the others and builds the communicator of one axis. World 1 answers a communicator of size 1 that opens
/// nothing. Errors: rendezvous (names how many joined), device (backend not there).
class Rendezvous {
 public:
  static Result<std::unique_ptr<Rendezvous>> join(const RankIdentity& identity, const CommOptions& options);
  virtual ~Rendezvous() = default;
  /// Collective: every rank of the world calls it, in the same order of axes.
  virtual Result<std::unique_ptr<Communicator>> communicator(const RankGrid& grid, Axis axis) = 0;
  virtual const RankIdentity& identity() const = 0;
  /// Backend that automatic became.
  virtual BackendKind backend() const = 0;
};

/// Size 1, no traffic: for programs that run alone.
std::unique_ptr<Communicator> single_communicator(Axis axis = Axis::data);

}  // namespace accrue

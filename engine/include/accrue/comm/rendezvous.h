// SPDX-License-Identifier: Apache-2.0
// How a rank learns who it is and meets the others: from Accrue's supervisor, torchrun, Slurm, Open MPI or MPICH. The
// first of them whose variables are there is taken, and RankIdentity::source names it.
//
// The ranks meet in a store. Where a launcher hands every rank a piece of memory, that memory is the store, and nothing
// listens on the network. Otherwise the store is a TCPStore at MASTER_ADDR:MASTER_PORT, which answers whoever connects.
// With ACCRUE_RUN_SECRET, equal on all ranks, a stranger cannot tell what a key means, and its values are refused.
//
// Thread: the training thread joins, makes communicators and leaves; one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  int store_fd = -1;         ///< inherited memory (a memfd) in which the ranks meet; -1: they meet over TCP
  std::string secret;        ///< of the run, for a store over TCP; empty: none
  std::string source;        ///< "accrue", "torchrun", "slurm", "open-mpi", "mpich", "single"
  std::string attempt;       ///< torchrun's restart count: one agent store serves all attempts
};

/// Reads the environment through `get` (std::getenv in programs, a table in tests). Errors: config (a value that is
/// not a number, a rank outside its world, RANK without WORLD_SIZE or the reverse, no meeting point).
Result<RankIdentity> rank_identity(const std::function<std::optional<std::string>(const char*)>& get,
                                   int store_fd = -1);

struct CommOptions {
  BackendKind backend = BackendKind::automatic;  ///< automatic: shm where all ranks share this host, else gloo
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};  ///< of one call
  std::chrono::milliseconds join_timeout{60000};
  std::string run_id;  ///< keeps runs apart that meet in one store
  // Names of the options that set these two time-outs; error messages quote them.
  std::string timeout_option = "CommOptions::timeout";
  std::string join_timeout_option = "CommOptions::join_timeout";
};

/// Joins the others and builds communicators. World 1 answers communicators of size 1 that open nothing. Ranks whose
/// processors differ compute with the instructions that all of them have, from join() on. Errors: rendezvous (names how
/// many joined), device (backend not there).
class Rendezvous {
 public:
  static Result<std::unique_ptr<Rendezvous>> join(const RankIdentity& identity, const CommOptions& options);
  virtual ~Rendezvous() = default;

  /// A communicator for each of the groups, which name no rank twice; this rank gets its own, or null where no group
  /// names it. Collective: every rank of the world calls it with equal arguments, in the same order of calls. An error
  /// on one rank is an error on all, which names that rank.
  virtual Result<std::unique_ptr<Communicator>> communicator(const std::string& axis,
                                                             const std::vector<RankList>& groups) = 0;
  /// The same for the groups of an axis. Errors: config where the grid is of another size than the world.
  Result<std::unique_ptr<Communicator>> communicator(const RankGrid& grid, Axis axis);

  virtual const RankIdentity& identity() const = 0;
  /// Backend that automatic became.
  virtual BackendKind backend() const = 0;
  /// All ranks share this host, and no container stands between them.
  virtual bool one_host() const = 0;
  /// Where the ranks met and what guards it, in words; empty for a world of one.
  virtual std::string meeting_place() const = 0;
};

/// Size 1, no traffic: for programs that run alone.
std::unique_ptr<Communicator> single_communicator(std::string axis = "data");

}  // namespace accrue

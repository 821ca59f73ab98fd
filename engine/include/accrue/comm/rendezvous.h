// SPDX-License-Identifier: Apache-2.0
// A rank's identity and its meeting with the others, under Accrue's supervisor, torchrun, Slurm, Open MPI or MPICH. The
// first of them whose variables are set is used, and RankIdentity::source names it.
//
// The ranks meet in a store. If a launcher passes memory to every rank, that memory is the store, and nothing listens
// on the network. Otherwise the store is a TCPStore at MASTER_ADDR:MASTER_PORT, which answers any client. With
// ACCRUE_RUN_SECRET, equal on all ranks, a stranger cannot interpret keys, and its values are refused.
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
#include "accrue/run/base/result.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

struct RankIdentity {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t local_rank = 0;
  std::int64_t local_world = 1;  ///< 0: unknown
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  bool agent_store = false;  ///< torchrun's agent hosts the store, so every rank is a client
  int store_fd = -1;         ///< inherited memory (a memfd) in which the ranks meet; -1: they meet over TCP
  std::string secret;        ///< of the run, for a store over TCP; empty: none
  std::string source;        ///< "accrue", "torchrun", "slurm", "open-mpi", "mpich", "single"
  std::string attempt;       ///< torchrun's restart count: one agent store serves all attempts
};

/// Reads the environment through `get` (std::getenv in programs, a table in tests). Errors: config (a value that is not
/// a number, a rank outside its world, RANK without WORLD_SIZE or the reverse, no meeting point).
Result<RankIdentity> rank_identity(const std::function<std::optional<std::string>(const char*)>& get,
                                   int store_fd = -1);

struct CommOptions {
  BackendKind backend = BackendKind::automatic;  ///< automatic: shm if all ranks share this host, else gloo
  std::chrono::milliseconds timeout{std::chrono::minutes(30)};  ///< of one call
  std::chrono::milliseconds join_timeout{60000};
  std::string run_id;  ///< separates runs that meet in one store
  // Names of the options for these two time-outs, for error messages.
  std::string timeout_option = "CommOptions::timeout";
  std::string join_timeout_option = "CommOptions::join_timeout";
};

/// Meeting of the ranks: joins the others and builds communicators. A world of 1 returns communicators of size 1 that
/// open nothing. If the ranks' processors differ, all use their common instructions from join() on. Errors: rendezvous
/// (with the number that joined), device (the backend does not exist).
class Rendezvous {
 public:
  static Result<std::unique_ptr<Rendezvous>> join(const RankIdentity& identity, const CommOptions& options);
  virtual ~Rendezvous() = default;

  /// Makes a communicator for each of the groups, which are disjoint. Returns this rank's own, or null if no group
  /// contains it. Collective: every rank of the world calls it with equal arguments, in the same order. An error on one
  /// rank is an error on all, with that rank's name.
  virtual Result<std::unique_ptr<Communicator>> communicator(const std::string& axis,
                                                             const std::vector<RankList>& groups) = 0;
  /// Does the same for the groups of an axis. Errors: config if the grid's size is not the world's.
  Result<std::unique_ptr<Communicator>> communicator(const RankGrid& grid, Axis axis);

  virtual const RankIdentity& identity() const = 0;
  /// Backend chosen for automatic.
  virtual BackendKind backend() const = 0;
  /// Whether all ranks share this host without containers between them.
  virtual bool one_host() const = 0;
  /// Describes where the ranks met and how it is protected; empty for a world of one.
  virtual std::string meeting_place() const = 0;
};

/// Makes a communicator of size 1 without traffic, for programs with one rank.
std::unique_ptr<Communicator> single_communicator(std::string axis = "data");

}  // namespace accrue

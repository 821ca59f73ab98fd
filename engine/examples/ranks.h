// SPDX-License-Identifier: Apache-2.0
// Shared by the examples that run on several ranks: this rank, its data axis, and a launcher for a machine without one.
// torchrun, accrue-run, Slurm, Open MPI and MPICH are recognised by their environments; alone, a program is one rank.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "accrue/comm/rendezvous.h"
#include "accrue/run/base/program.h"
#include "accrue/run/process/child_process.h"

extern char** environ;

namespace examples {

/// The value after `--name`, if it is there.
inline std::optional<std::string> option(int argc, char** argv, const char* name) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
  return std::nullopt;
}

struct Ranks {
  std::unique_ptr<accrue::Rendezvous> rendezvous;
  std::unique_ptr<accrue::Communicator> data;
};

/// Meets the other ranks that the launcher has started; returns null if this is the only one.
inline std::unique_ptr<accrue::Rendezvous> meet(int argc, char** argv) {
  const int store = std::atoi(option(argc, argv, "--store").value_or("-1").c_str());
  const auto identity = accrue::must(accrue::rank_identity(accrue::environment, store));
  if (identity.world == 1) return nullptr;
  return accrue::must(accrue::Rendezvous::join(identity, {.run_id = "example"}));
}

/// Meets the other ranks and makes their data axis.
inline Ranks join(int argc, char** argv) {
  Ranks ranks{.rendezvous = meet(argc, argv)};
  if (!ranks.rendezvous) {
    ranks.data = accrue::single_communicator();
    return ranks;
  }
  const accrue::RankGrid all{.data = ranks.rendezvous->identity().world};
  ranks.data = accrue::must(ranks.rendezvous->communicator(all, accrue::Axis::data));
  return ranks;
}

/// store: memory in which the ranks meet; every rank inherits it.
inline accrue::ChildProcess start_rank(int rank, int world, int store, std::vector<std::string> arguments) {
  std::vector<std::string> variables;
  const auto set = [&](const char* name, const std::string& value) { variables.push_back(name + ("=" + value)); };
  for (const char* name : {"RANK", "LOCAL_RANK"}) set(name, std::to_string(rank));
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set(name, std::to_string(world));
  set("OMP_NUM_THREADS", "1");
  for (char** entry = environ; *entry != nullptr; ++entry)
    variables.emplace_back(*entry);  // the first of a name counts
  arguments.insert(arguments.begin(), "/proc/self/exe");
  arguments.insert(arguments.end(), {"--store", std::to_string(store)});
  return accrue::must(accrue::start_process({.what = "a rank",
                                             .command = std::move(arguments),
                                             .variables = std::move(variables),
                                             .group = accrue::ProcessStart::Group::ours,
                                             .inherits = true}));
}

/// Starts this program `world` times on this machine and waits. Returns 0 if all ranks succeeded.
inline int launch(int world, const std::vector<std::string>& arguments) {
  const accrue::OwnedFd store(::memfd_create("store", 0));
  if (!store) throw std::runtime_error(std::string("no memory for the ranks' store: ") + std::strerror(errno));
  std::vector<accrue::ChildProcess> ranks;
  for (int rank = 0; rank < world; ++rank) ranks.push_back(start_rank(rank, world, store.get(), arguments));
  int worst = 0;
  for (accrue::ChildProcess& rank : ranks) {
    const accrue::ExitReport end = rank.wait();
    worst = std::max(worst, end.signal == 0 ? end.status : 1);
  }
  return worst;
}

}  // namespace examples

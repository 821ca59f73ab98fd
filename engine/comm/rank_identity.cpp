// SPDX-License-Identifier: Apache-2.0
// Identifies this rank. Five launchers use five vocabularies; the first that gives both a rank and a world is used. A
// value that is not a number, or a rank outside its world, is an error instead of a reason to continue: guessing would
// start two rank 0s.
#include <charconv>
#include <initializer_list>
#include <utility>

#include "accrue/comm/rendezvous.h"
#include "slurm_hosts.h"

namespace accrue {
namespace {

using Environment = std::function<std::optional<std::string>(const char*)>;

struct Names {
  const char* source;
  const char* rank;
  const char* world;
  std::initializer_list<const char*> local_rank;
  std::initializer_list<const char*> local_world;
};

const Names kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", {"SLURM_LOCALID"}, {"SLURM_NTASKS_PER_NODE"}},
    {"open-mpi",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     {"OMPI_COMM_WORLD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_LOCAL_SIZE"}},
    {"mpich",
     "MV2_COMM_WORLD_RANK",
     "MV2_COMM_WORLD_SIZE",
     {"MV2_COMM_WORLD_LOCAL_RANK"},
     {"MV2_COMM_WORLD_LOCAL_SIZE"}},
    {"mpich", "PMI_RANK", "PMI_SIZE", {"MPI_LOCALRANKID", "LOCAL_RANK"}, {"MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"}},
};

constexpr int kSlurmFirstPort = 20000;  // a job's port follows from its id, so two jobs on a node rarely collide
constexpr int kSlurmPorts = 10000;

Result<std::int64_t> number(const char* name, const std::string& text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return fail(
        ErrorCode::config,
        std::string(name) + "=" + text + " is not a number from " + std::to_string(low) + " to " + std::to_string(high),
        "environment", "It is set by the launcher; unset it to run alone");
  }
  return value;
}

/// Returns the first of the names that is set; `otherwise` if none is.
Result<std::int64_t> first_number(const Environment& get, std::initializer_list<const char*> names, std::int64_t low,
                                  std::int64_t high, std::int64_t otherwise) {
  for (const char* name : names) {
    if (const auto text = get(name)) return number(name, *text, low, high);
  }
  return otherwise;
}

Result<void> fill_slurm(const Environment& get, RankIdentity& identity) {
  if (get("SLURM_JOB_NUM_NODES").value_or("") == "1") identity.local_world = identity.world;
  if (!get("MASTER_ADDR")) {
    const auto nodes = get("SLURM_JOB_NODELIST");
    const auto first = nodes ? first_slurm_host(*nodes) : std::nullopt;
    if (!first) {
      return fail(ErrorCode::config, "Slurm's SLURM_JOB_NODELIST=" + nodes.value_or("") + " names no first host",
                  "environment", "Set MASTER_ADDR to the host of rank 0");
    }
    identity.master_addr = *first;
  }
  if (!get("MASTER_PORT")) {
    const auto job = first_number(get, {"SLURM_JOB_ID"}, 0, INT64_MAX, 0);
    if (!job) return tl::unexpected(job.error());
    identity.master_port = kSlurmFirstPort + static_cast<int>(*job % kSlurmPorts);
  }
  return {};
}

Result<void> fill_meeting_point(const Environment& get, const std::string& source, RankIdentity& identity) {
  if (source == "slurm") {
    if (auto slurm = fill_slurm(get, identity); !slurm) return slurm;
  }
  if (const auto address = get("MASTER_ADDR")) identity.master_addr = *address;
  if (const auto port = get("MASTER_PORT")) {
    const auto value = number("MASTER_PORT", *port, 0, 65535);
    if (!value) return tl::unexpected(value.error());
    identity.master_port = static_cast<int>(*value);
  }
  if (identity.master_port == 0 && identity.store_fd < 0) {
    return fail(ErrorCode::config,
                identity.source + " started " + std::to_string(identity.world) + " ranks, but MASTER_PORT is not set",
                "environment", "Set MASTER_ADDR and MASTER_PORT to a free port of rank 0's host");
  }
  return {};
}

Result<RankIdentity> from_launcher(const Environment& get, const Names& names, int store_fd) {
  const auto world = number(names.world, *get(names.world), 1, INT32_MAX);
  if (!world) return tl::unexpected(world.error());
  const auto rank = number(names.rank, *get(names.rank), 0, *world - 1);
  if (!rank) return tl::unexpected(rank.error());
  const auto local_rank = first_number(get, names.local_rank, 0, *world - 1, *rank);
  if (!local_rank) return tl::unexpected(local_rank.error());

  RankIdentity identity;
  identity.rank = *rank;
  identity.world = *world;
  identity.local_rank = *local_rank;
  // Unknown stays 0, which means "not all on one host" until the ranks have compared.
  const auto local_world = first_number(get, names.local_world, 1, INT32_MAX, 0);
  if (!local_world) return tl::unexpected(local_world.error());
  identity.local_world = *local_world;
  identity.store_fd = store_fd;
  identity.secret = get("ACCRUE_RUN_SECRET").value_or("");
  identity.source = names.source;
  if (identity.source == "torchrun") {
    // Accrue's supervisor uses torchrun's names, without its run id.
    if (!get("TORCHELASTIC_RUN_ID") && (store_fd >= 0 || get("ACCRUE_RUN_ID"))) identity.source = "accrue";
    identity.agent_store = get("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
    identity.attempt = get("TORCHELASTIC_RESTART_COUNT").value_or("");
  }
  if (identity.world > 1) {
    if (auto met = fill_meeting_point(get, identity.source, identity); !met) return tl::unexpected(met.error());
  }
  return identity;
}

}  // namespace

Result<RankIdentity> rank_identity(const Environment& get, int store_fd) {
  for (const Names& names : kLaunchers) {
    if (get(names.rank) && get(names.world)) return from_launcher(get, names, store_fd);
  }
  for (const auto& [set, missing] : {std::pair("WORLD_SIZE", "RANK"), std::pair("RANK", "WORLD_SIZE")}) {
    if (!get(set)) continue;
    return fail(ErrorCode::config, std::string(set) + " is set, but " + missing + " is not", "environment",
                std::string("Set both, as a launcher does for each rank, or unset ") + set + " to run alone");
  }
  RankIdentity alone;
  alone.source = "single";
  return alone;
}

}  // namespace accrue

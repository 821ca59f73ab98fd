// SPDX-License-Identifier: Apache-2.0
// Meeting the others: a TCPStore that rank 0 (or torchrun's agent) hosts, on which each rank says who and where it is
// and waits until all have. Then everyone knows whether all share this host, which decides the backend, and each axis'
// group is built under its own prefix.
//
// The store's own wait for workers is not used: it says neither how many came nor who is missing.
#include "accrue/comm/rendezvous.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "device_loader.h"
#include "error_text.h"
#include "exchange.h"
#include "gloo_backend.h"
#include "host_identity.h"
#include "shm_backend.h"
#include "store_socket.h"

namespace accrue {
namespace {

using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr const char* kLoopback = "127.0.0.1";

std::string seconds(std::chrono::milliseconds time) {
  const auto tenths = (time.count() + 50) / 100;
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " s";
}

class StoreExchange final : public Exchange {
 public:
  explicit StoreExchange(StorePtr store) : store_(std::move(store)) {}

  void publish(const std::string& key, const std::string& value) override {
    store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
  }

  std::optional<std::string> fetch(const std::string& key, std::chrono::milliseconds timeout) override {
    try {
      store_->wait({key}, timeout);
      const auto value = store_->get(key);
      return std::string(value.begin(), value.end());
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

 private:
  StorePtr store_;
};

/// True where the launcher itself says that nothing outside this host takes part.
bool launched_on_one_host(const RankIdentity& identity) {
  return identity.local_world == identity.world || identity.master_addr == "localhost" ||
         identity.master_addr.starts_with("127.");
}

Result<StorePtr> open_store(const RankIdentity& identity, const CommOptions& options) {
  c10d::TCPStoreOptions how;
  how.timeout = options.join_timeout;
  how.waitWorkers = false;
  how.numWorkers = static_cast<std::size_t>(identity.world);
  how.isServer = identity.rank == 0 && !identity.agent_store;
  how.port = static_cast<std::uint16_t>(identity.master_port);
  const std::string host = launched_on_one_host(identity) && !identity.agent_store ? kLoopback : identity.master_addr;
  if (how.isServer) {
    int fd = identity.store_fd;
    if (fd < 0) {
      const auto listening = listen_for_store(host, identity.master_port);
      if (!listening) return tl::unexpected(listening.error());
      fd = *listening;
    }
    if (fd >= 0) how.masterListenFd = fd;
  }
  try {
    return c10::make_intrusive<c10d::TCPStore>(host, how);
  } catch (const std::exception& error) {
    return fail(ErrorCode::rendezvous,
                "rank " + std::to_string(identity.rank) + " could not reach the ranks' meeting point " + host + ":" +
                    std::to_string(identity.master_port) + " within " + seconds(options.join_timeout),
                identity.source, "Rank 0 hosts it: see its log (" + first_line(error.what()) + ")");
  }
}

std::string rank_key(std::int64_t rank) {
  return "rank/" + std::to_string(rank);
}

Error not_all_joined(const std::vector<std::int64_t>& missing, const RankIdentity& identity,
                     const CommOptions& options) {
  const auto joined = identity.world - static_cast<std::int64_t>(missing.size());
  std::string names;
  constexpr std::size_t kNamed = 8;
  for (std::size_t i = 0; i < std::min(missing.size(), kNamed); ++i) {
    names += (i == 0 ? "" : ", ") + std::string("rank ") + std::to_string(missing[i]);
  }
  if (missing.size() > kNamed) names += " and " + std::to_string(missing.size() - kNamed) + " more";
  return Error{ErrorCode::rendezvous,
               std::to_string(joined) + " of " + std::to_string(identity.world) + " ranks joined within " +
                   seconds(options.join_timeout) + "; missing: " + names,
               identity.source, "See the log of the missing rank, or raise launch.join_timeout_s"};
}

/// The meeting itself. Presence is polled rather than waited for: the store's wait can neither look for two things at
/// once (a rank, or the verdict of one that gave up) nor time out quietly.
class Meeting {
 public:
  Meeting(StorePtr store, const RankIdentity& identity, const CommOptions& options)
      : store_(std::move(store)), exchange_(store_), identity_(identity), options_(options) {}

  Result<std::vector<HostIdentity>> hold() {
    try {
      const auto deadline = Clock::now() + options_.join_timeout;
      exchange_.publish(rank_key(identity_.rank), this_host().encode());
      for (auto pause = kShortestPoll; !all_present(); pause = std::min(pause * 2, kLongestPoll)) {
        if (store_->check({kVerdict})) return given_up();
        if (Clock::now() >= deadline) {
          store_->set(kVerdict, std::vector<std::uint8_t>{1});
          return given_up();
        }
        std::this_thread::sleep_for(pause);
      }
      return everyone();
    } catch (const std::exception& error) {
      return fail(ErrorCode::rendezvous, "the meeting point was lost before all ranks had joined", identity_.source,
                  "Rank 0 hosts it and has probably ended: see its log (" + first_line(error.what()) + ")");
    }
  }

 private:
  static constexpr const char* kVerdict = "given up";
  static constexpr const char* kHeard = "heard";
  static constexpr std::chrono::milliseconds kShortestPoll{1};
  static constexpr std::chrono::milliseconds kLongestPoll{20};
  static constexpr std::chrono::milliseconds kFarewell{1000};

  bool all_present() {
    while (present_ < identity_.world && store_->check({rank_key(present_)})) ++present_;
    return present_ == identity_.world;
  }

  Result<std::vector<HostIdentity>> everyone() {
    std::vector<HostIdentity> hosts;
    for (std::int64_t rank = 0; rank < identity_.world; ++rank) {
      const auto said = exchange_.fetch(rank_key(rank), options_.join_timeout);
      const auto host = said ? HostIdentity::decode(*said) : std::nullopt;
      if (!host) {
        return fail(ErrorCode::protocol, "rank " + std::to_string(rank) + " speaks another version of Accrue",
                    identity_.source, "Start the same accrue-rank everywhere");
      }
      hosts.push_back(*host);
    }
    return hosts;
  }

  tl::unexpected<Error> given_up() {
    std::vector<std::int64_t> missing;
    for (std::int64_t rank = 0; rank < identity_.world; ++rank) {
      if (!store_->check({rank_key(rank)})) missing.push_back(rank);
    }
    // The host of the store stays until the ranks that did come have read the same, or they would only see it vanish.
    auto heard = store_->add(kHeard, 1);
    const auto joined = identity_.world - static_cast<std::int64_t>(missing.size());
    const auto farewell = Clock::now() + kFarewell;
    while (identity_.rank == 0 && heard < joined && Clock::now() < farewell) {
      std::this_thread::sleep_for(kLongestPoll);
      heard = store_->add(kHeard, 0);
    }
    return tl::unexpected(not_all_joined(missing, identity_, options_));
  }

  StorePtr store_;
  StoreExchange exchange_;
  const RankIdentity& identity_;
  const CommOptions& options_;
  std::int64_t present_ = 0;
};

class StoreRendezvous final : public Rendezvous {
 public:
  StoreRendezvous(RankIdentity identity, CommOptions options, StorePtr store, std::vector<HostIdentity> hosts)
      : identity_(std::move(identity)),
        options_(std::move(options)),
        store_(std::move(store)),
        hosts_(std::move(hosts)) {
    backend_ = options_.backend;
    if (backend_ == BackendKind::automatic) backend_ = stranger(all_ranks()) < 0 ? BackendKind::shm : BackendKind::gloo;
  }

  const RankIdentity& identity() const override { return identity_; }
  BackendKind backend() const override { return backend_; }

  Result<std::unique_ptr<Communicator>> communicator(const RankGrid& grid, Axis axis) override {
    if (grid.world() != identity_.world) {
      return fail(ErrorCode::config,
                  "the spec asks for " + std::to_string(grid.world()) + " ranks, but " +
                      std::to_string(identity_.world) + " were started",
                  "parallel", "Start as many ranks as parallel.data x tensor x pipeline");
    }
    const auto members = grid.group(axis, identity_.rank);
    const std::string prefix = "group/" + std::to_string(groups_++) + "/" + std::string(to_string(axis)) + "/" +
                               std::to_string(members.front());
    if (members.size() == 1) return single_communicator(axis);
    const CommGroup group = group_of(axis, members);
    const auto store = c10::make_intrusive<c10d::PrefixStore>(prefix, store_);
    switch (backend_) {
      case BackendKind::gloo:
        return make_gloo_communicator(group, store);
      case BackendKind::nccl:
        return make_nccl_communicator(group, store, identity_.local_rank);
      default:
        return make_shm(group, members, store);
    }
  }

 private:
  std::vector<std::int64_t> all_ranks() const {
    std::vector<std::int64_t> ranks(hosts_.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<std::int64_t>(i);
    return ranks;
  }

  const HostIdentity& host_of(std::int64_t rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  /// The first of the ranks that does not share this rank's memory; -1 where all do.
  std::int64_t stranger(const std::vector<std::int64_t>& ranks) const {
    for (const std::int64_t rank : ranks) {
      if (host_of(rank).place != host_of(identity_.rank).place) return rank;
    }
    return -1;
  }

  CommGroup group_of(Axis axis, const std::vector<std::int64_t>& members) const {
    CommGroup group;
    group.axis = axis;
    group.timeout = options_.timeout;
    group.join_timeout = options_.join_timeout;
    group.one_host = stranger(members) < 0;
    for (const std::int64_t rank : members) {
      if (rank == identity_.rank) group.rank = static_cast<std::int64_t>(group.members.size());
      const bool here = host_of(rank).place == host_of(identity_.rank).place;
      group.members.push_back({rank, here ? host_of(rank).pid : 0});
    }
    return group;
  }

  Result<std::unique_ptr<Communicator>> make_shm(const CommGroup& group, const std::vector<std::int64_t>& members,
                                                 const StorePtr& store) const {
    if (const std::int64_t other = stranger(members); other >= 0) {
      return fail(ErrorCode::device,
                  "backend \"shm\" needs all ranks on one host, but rank " + std::to_string(identity_.rank) +
                      " runs on " + host_of(identity_.rank).host + " and rank " + std::to_string(other) + " on " +
                      host_of(other).host + " (or in another container)",
                  "parallel.backend", "Set parallel.backend = \"gloo\" or \"auto\"");
    }
    StoreExchange exchange(store);
    return make_shm_communicator(group, exchange);
  }

  RankIdentity identity_;
  CommOptions options_;
  StorePtr store_;
  std::vector<HostIdentity> hosts_;
  BackendKind backend_ = BackendKind::shm;
  int groups_ = 0;
};

}  // namespace

Result<std::unique_ptr<Rendezvous>> Rendezvous::join(const RankIdentity& identity, const CommOptions& options) {
  if (identity.world == 1)
    return std::make_unique<StoreRendezvous>(identity, options, StorePtr(), std::vector{this_host()});
  auto opened = open_store(identity, options);
  if (!opened) return tl::unexpected(opened.error());
  StorePtr store = c10::make_intrusive<c10d::PrefixStore>("accrue/" + options.run_id + "/" + identity.attempt, *opened);
  auto hosts = Meeting(store, identity, options).hold();
  if (!hosts) return tl::unexpected(hosts.error());
  return std::make_unique<StoreRendezvous>(identity, options, std::move(store), std::move(*hosts));
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// From a store to communicators. At the meeting each rank learns where the others are, which decides the backend; each
// call of communicator() has its own prefix in the store.
//
// A communicator is built in two rounds over the whole world. In the first each rank states what it is about to build
// and whether it can; no rank connects to one that cannot. In the second each states whether it succeeded. Rank 0
// collects a round and publishes its outcome.
#include "accrue/comm/rendezvous.h"

#include <chrono>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "accrue/run/base/number_text.h"
#include "device_loader.h"
#include "gloo_backend.h"
#include "kernels/kernels.h"
#include "meeting.h"
#include "rank_store.h"
#include "shm_backend.h"

namespace accrue {
namespace {

constexpr char separator = '\x1f';

/// Converts an error to one text; the second function converts back.
std::string encode(const Error& error) {
  return std::to_string(static_cast<int>(error.code)) + separator + error.message + separator + error.where +
         separator + error.hint;
}

Error decode(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char each : text) {
    if (each == separator)
      parts.emplace_back();
    else
      parts.back() += each;
  }
  parts.resize(4);
  return {static_cast<ErrorCode>(std::atoi(parts[0].c_str())), parts[1], parts[2], parts[3]};
}

std::string text_of(const std::string& axis, const std::vector<RankList>& groups) {
  return axis + (groups.empty() ? "" : " of ") +
         joined(groups, ", ", [](const RankList& group) { return "{" + joined(group, ",") + "}"; });
}

class StoreRendezvous final : public Rendezvous {
 public:
  StoreRendezvous(RankIdentity identity, CommOptions options, RankStore store, std::vector<HostIdentity> hosts)
      : identity_(std::move(identity)),
        options_(std::move(options)),
        store_(std::move(store)),
        hosts_(std::move(hosts)) {
    backend_ = options_.backend;
    if (backend_ != BackendKind::automatic) return;
    backend_ = one_host() ? BackendKind::shm : BackendKind::gloo;
  }

  const RankIdentity& identity() const override { return identity_; }
  BackendKind backend() const override { return backend_; }
  bool one_host() const override {
    return std::ranges::all_of(hosts_, [this](const HostIdentity& host) { return is_here(host); });
  }
  std::string meeting_place() const override { return store_.place; }

  using Rendezvous::communicator;
  Result<std::unique_ptr<Communicator>> communicator(const std::string& axis,
                                                     const std::vector<RankList>& groups) override {
    const auto valid = check_groups(axis, groups);
    const bool trivial = std::ranges::all_of(groups, [](const RankList& group) { return group.size() <= 1; });
    if (identity_.world == 1 || trivial) {
      if (!valid) return tl::unexpected(valid.error());
      return own_group(groups).empty() ? nullptr : single_communicator(axis);
    }
    const auto store = c10::make_intrusive<c10d::PrefixStore>("group/" + std::to_string(groups_++), store_.store);
    auto built = build(store, axis, groups, valid);
    leave(*store, built.has_value());
    return built;
  }

 private:
  Result<std::unique_ptr<Communicator>> build(const StorePtr& store, const std::string& axis,
                                              const std::vector<RankList>& groups, const Result<void>& valid) const {
    const RankList members = own_group(groups);
    Result<void> able = valid;
    if (able && members.size() > 1) able = check_backend(members);
    if (auto agreed = agree(store, "asked", axis, text_of(axis, groups), able); !agreed)
      return tl::unexpected(agreed.error());

    Result<std::unique_ptr<Communicator>> made = nullptr;
    if (!members.empty()) made = make(axis, members, store);
    const Result<void> outcome = made ? Result<void>() : tl::unexpected(made.error());
    if (auto agreed = agree(store, "made", axis, axis, outcome); !agreed) return tl::unexpected(agreed.error());
    return made;
  }

  /// Rank 0's program may end as soon as it has the communicator, and its store with it. After a failure some ranks may
  /// be missing.
  void leave(c10d::Store& store, bool built) const {
    std::vector<std::int64_t> others;
    for (std::int64_t rank = 1; rank < identity_.world; ++rank) others.push_back(rank);
    constexpr std::chrono::milliseconds farewell{1000};
    take_leave(store, identity_.rank, store_.is_here, others, built ? options_.join_timeout : farewell);
  }

  RankList own_group(const std::vector<RankList>& groups) const {
    for (const RankList& group : groups) {
      if (std::ranges::count(group, identity_.rank) > 0) return group;
    }
    return {};
  }

  Result<void> check_groups(const std::string& axis, const std::vector<RankList>& groups) const {
    std::vector<bool> named(hosts_.size());
    for (const RankList& group : groups) {
      for (const std::int64_t rank : group) {
        if (rank >= 0 && rank < identity_.world && !named[static_cast<std::size_t>(rank)]) {
          named[static_cast<std::size_t>(rank)] = true;
          continue;
        }
        return fail(ErrorCode::config, "the groups of axis \"" + axis + "\" name rank " + std::to_string(rank) +
                                           (rank >= 0 && rank < identity_.world
                                                ? " twice"
                                                : ", and there are " + std::to_string(identity_.world) + " ranks"));
      }
    }
    return {};
  }

  bool is_here(const HostIdentity& host) const { return host.place == host_of(identity_.rank).place; }
  const HostIdentity& host_of(std::int64_t rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  /// Returns this rank's own reason why it cannot build the group.
  Result<void> check_backend(const RankList& members) const {
    if (backend_ == BackendKind::nccl)
      if (const auto device = own_cuda_device(identity_.local_rank); !device) return tl::unexpected(device.error());
    if (backend_ != BackendKind::shm) return {};
    for (const std::int64_t other : members) {
      if (is_here(host_of(other))) continue;
      return fail(ErrorCode::device,
                  "backend \"shm\" needs all ranks on one host, but rank " + std::to_string(identity_.rank) +
                      " runs on " + host_of(identity_.rank).host + " and rank " + std::to_string(other) + " on " +
                      host_of(other).host + " (or in another container)",
                  "parallel.backend", "Set parallel.backend = \"gloo\" or \"auto\"");
    }
    return {};
  }

  CommGroup group_of(const std::string& axis, const RankList& members) const {
    CommGroup group;
    group.axis = axis;
    group.timeout = options_.timeout;
    group.join_timeout = options_.join_timeout;
    group.timeout_option = options_.timeout_option;
    group.meeting_host = identity_.master_addr;
    for (const std::int64_t rank : members) {
      if (rank == identity_.rank) group.rank = static_cast<std::int64_t>(group.members.size());
      const bool here = is_here(host_of(rank));
      group.one_host &= here;
      group.one_machine &= host_of(identity_.rank).same_machine(host_of(rank));
      group.members.push_back({rank, here ? host_of(rank).pid : 0});
    }
    return group;
  }

  Result<std::unique_ptr<Communicator>> make(const std::string& axis, const RankList& members,
                                             const StorePtr& store) const {
    if (members.size() == 1) return single_communicator(axis);
    const CommGroup group = group_of(axis, members);
    const auto own = c10::make_intrusive<c10d::PrefixStore>(std::to_string(members.front()), store);
    switch (backend_) {
      case BackendKind::gloo:
        return make_gloo_communicator(group, own);
      case BackendKind::nccl:
        return make_nccl_communicator(group, own, identity_.local_rank);
      default: {
        StoreExchange exchange(own);
        return make_shm_communicator(group, exchange);
      }
    }
  }

  /// Returns the first error of any rank on every rank, with this rank's own text for its own. `same` must be equal on
  /// all.
  Result<void> agree(const StorePtr& store, const std::string& round, const std::string& axis, const std::string& same,
                     const Result<void>& mine) const {
    using Clock = std::chrono::steady_clock;
    StoreExchange exchange(store);
    const auto key_of = [&](std::int64_t rank) { return round + "/" + std::to_string(rank); };
    const auto late = [&](std::int64_t rank) {
      return Error{ErrorCode::rendezvous,
                   "rank " + std::to_string(rank) + " did not come to build the " + axis + " axis within " +
                       seconds_text(options_.join_timeout),
                   identity_.source, "See the log of that rank, or raise " + options_.join_timeout_option};
    };
    exchange.publish(key_of(identity_.rank), mine ? "+" + same : "!" + encode(mine.error()));
    if (identity_.rank == 0) {
      std::string outcome = "+";
      const auto deadline = Clock::now() + options_.join_timeout;  // of all ranks together
      for (std::int64_t rank = 0; rank < identity_.world && outcome == "+"; ++rank) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        const auto said = exchange.fetch(key_of(rank), std::max(left, std::chrono::milliseconds(1)));
        if (!said) {
          outcome = "!" + encode(late(rank));
        } else if (said->starts_with('!')) {
          Error error = decode(said->substr(1));
          error.message = "rank " + std::to_string(rank) + ": " + error.message;
          outcome = "!" + encode(error);
        } else if (*said != "+" + same) {
          outcome = "!" + encode({ErrorCode::config,
                                  "the ranks build different groups: rank 0 " + same + ", rank " +
                                      std::to_string(rank) + " " + said->substr(1),
                                  "", "All ranks call communicator() with the same arguments in the same order"});
        }
      }
      exchange.publish(round, outcome);
    }
    // Rank 0 itself may be waiting for a missing rank.
    const auto deadline = Clock::now() + 2 * options_.join_timeout;
    const auto outcome = exchange.fetch(round, 2 * options_.join_timeout);
    if (!mine) return tl::unexpected(mine.error());
    if (!outcome && Clock::now() < deadline)
      return fail(ErrorCode::rendezvous, "the meeting point was lost as the ranks built the " + axis + " axis",
                  identity_.source, "Rank 0 hosts it and has probably ended: see its log");
    if (!outcome) return tl::unexpected(late(0));
    if (outcome->starts_with('!')) return tl::unexpected(decode(outcome->substr(1)));
    return {};
  }

  RankIdentity identity_;
  CommOptions options_;
  RankStore store_;
  std::vector<HostIdentity> hosts_;
  BackendKind backend_ = BackendKind::shm;
  int groups_ = 0;
};

}  // namespace

Result<std::unique_ptr<Communicator>> Rendezvous::communicator(const RankGrid& grid, Axis axis) {
  if (grid.world() != identity().world) {
    return fail(ErrorCode::config,
                "the spec asks for " + std::to_string(grid.world()) + " ranks, but " +
                    std::to_string(identity().world) + " were started",
                "parallel", "Start as many ranks as parallel.data x tensor x pipeline");
  }
  return communicator(std::string(to_string(axis)), grid.groups(axis));
}

Result<std::unique_ptr<Rendezvous>> Rendezvous::join(const RankIdentity& identity, const CommOptions& options) {
  if (identity.world == 1)
    return std::make_unique<StoreRendezvous>(identity, options, RankStore(), std::vector{this_host()});
  auto opened = open_rank_store(identity, options);
  if (!opened) return tl::unexpected(opened.error());
  opened->store =
      c10::make_intrusive<c10d::PrefixStore>("accrue/" + options.run_id + "/" + identity.attempt, opened->store);
  auto hosts = hold_meeting(opened->store, identity, options);
  if (!hosts) return tl::unexpected(hosts.error());
  for (const HostIdentity& host : *hosts) {
    limit_instruction_set(host.instructions);
    if (!host.tiles_pay) leave_products_to_library();
  }
  return std::make_unique<StoreRendezvous>(identity, options, std::move(*opened), std::move(*hosts));
}

}  // namespace accrue

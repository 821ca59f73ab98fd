// SPDX-License-Identifier: Apache-2.0
// Inherited memory is a memfd that each rank opens again under /proc/self/fd, because c10d's FileStore wants a path and
// locks by open file. It has no name that another user could open, and it disappears with the last rank.
#include "rank_store.h"

#include <fcntl.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

#include "error_text.h"
#include "guarded_store.h"
#include "local_address.h"
#include "shared_segment.h"
#include "store_socket.h"

namespace accrue {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kNeverRemove = -1;  // number of workers after whose end FileStore removes its file

/// Whether the launcher says that all ranks are on this host.
bool launched_on_one_host(const RankIdentity& identity) {
  return identity.local_world == identity.world || is_loopback_name(identity.master_addr);
}

Result<RankStore> open_inherited(const RankIdentity& identity) {
  if (const std::string wrong = why_not_our_memory(identity.store_fd); !wrong.empty()) {
    return fail(ErrorCode::config, "the ranks' store, descriptor " + std::to_string(identity.store_fd) + ", " + wrong,
                identity.source, "The launcher makes it with memfd_create and hands it to every rank");
  }
  try {
    return RankStore{
        c10::make_intrusive<c10d::FileStore>("/proc/self/fd/" + std::to_string(identity.store_fd), kNeverRemove),
        "in memory that the launcher handed over", false};
  } catch (const std::exception& error) {
    return fail(ErrorCode::rendezvous,
                "the ranks' store in inherited memory cannot be opened: " + first_line(error.what()), identity.source,
                "A file system must be mounted at /proc");
  }
}

Result<RankStore> open_tcp(const RankIdentity& identity, const CommOptions& options) {
  c10d::TCPStoreOptions how;
  how.timeout = options.join_timeout;
  how.waitWorkers = false;
  how.numWorkers = static_cast<std::size_t>(identity.world);
  how.isServer = identity.rank == 0 && !identity.agent_store;
  how.port = static_cast<std::uint16_t>(identity.master_port);
  const std::string host = launched_on_one_host(identity) && !identity.agent_store ? kLoopback : identity.master_addr;
  std::string place = "at " + host + ":" + std::to_string(identity.master_port);
  if (how.isServer) {
    auto listening = listen_for_store(host, identity.master_port);
    if (!listening) return tl::unexpected(listening.error());
    if (*listening)
      how.masterListenFd = listening->release();
    else
      place += ", listening on every interface";
  }
  place += identity.secret.empty() ? ", open to whoever reaches it" : ", guarded by the run's secret";
  try {
    StorePtr store = c10::make_intrusive<c10d::TCPStore>(host, how);
    if (!identity.secret.empty()) store = c10::make_intrusive<GuardedStore>(std::move(store), identity.secret);
    return RankStore{std::move(store), std::move(place), how.isServer};
  } catch (const std::exception& error) {
    return fail(ErrorCode::rendezvous,
                "rank " + std::to_string(identity.rank) + " could not reach the ranks' meeting point " + host + ":" +
                    std::to_string(identity.master_port) + " within " + seconds_text(options.join_timeout),
                identity.source, "Rank 0 hosts it: see its log (" + first_line(error.what()) + ")");
  }
}

}  // namespace

std::string seconds_text(std::chrono::milliseconds time) {
  const auto tenths = (time.count() + 50) / 100;
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " s";
}

Result<RankStore> open_rank_store(const RankIdentity& identity, const CommOptions& options) {
  return identity.store_fd >= 0 ? open_inherited(identity) : open_tcp(identity, options);
}

void take_leave(c10d::Store& store, std::int64_t rank, bool hosts, const std::vector<std::int64_t>& others,
                std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds shortest_poll{1}, longest_poll{20};
  using Clock = std::chrono::steady_clock;
  const auto key_of = [](std::int64_t each) { return "left/" + std::to_string(each); };
  try {
    store.set(key_of(rank), std::vector<std::uint8_t>{1});
    if (!hosts) return;
    const auto until = Clock::now() + patience;
    auto pause = shortest_poll;
    for (const std::int64_t other : others) {
      for (; !store.check({key_of(other)}); pause = std::min(pause * 2, longest_poll)) {
        if (Clock::now() >= until) return;
        std::this_thread::sleep_for(pause);
      }
    }
  } catch (const std::exception&) {
    // The store has gone with its host: no farewell is possible.
  }
}

void StoreExchange::publish(const std::string& key, const std::string& value) {
  try {
    store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
  } catch (const std::exception&) {
    // The store is gone, which the next fetch() reports.
  }
}

std::optional<std::string> StoreExchange::fetch(const std::string& key, std::chrono::milliseconds timeout) {
  try {
    store_->wait({key}, timeout);
    const auto value = store_->get(key);
    return std::string(value.begin(), value.end());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace accrue

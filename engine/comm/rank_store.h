// SPDX-License-Identifier: Apache-2.0
// The key-value store in which ranks meet: memory that a launcher hands to all of them, or a TCPStore.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>
#include <vector>

#include "accrue/comm/rendezvous.h"
#include "exchange.h"

namespace accrue {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

struct RankStore {
  StorePtr store;
  std::string place;     ///< where it is and what guards it, in words
  bool is_here = false;  ///< this process hosts it: it is gone with this process
};

/// Errors: rendezvous (nobody answers there, the port is taken), config (store_fd is no memory of this user's).
Result<RankStore> open_rank_store(const RankIdentity& identity, const CommOptions& options);

/// "2.5 s"
std::string seconds_text(std::chrono::milliseconds time);

/// Takes part in the end of a meeting: the host of a store stays until the `others` have said that they need nothing
/// more of it, for at most `patience`, and everyone else leaves at once.
void take_leave(c10d::Store& store, std::int64_t rank, bool hosts, const std::vector<std::int64_t>& others,
                std::chrono::milliseconds patience);

class StoreExchange final : public Exchange {
 public:
  explicit StoreExchange(StorePtr store) : store_(std::move(store)) {}
  void publish(const std::string& key, const std::string& value) override;
  std::optional<std::string> fetch(const std::string& key, std::chrono::milliseconds timeout) override;

 private:
  StorePtr store_;
};

}  // namespace accrue

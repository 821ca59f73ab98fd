// SPDX-License-Identifier: Apache-2.0
// The key-value store in which ranks meet: memory that a launcher passes to all of them, or a TCPStore.
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
  std::string place;     ///< location and protection, in words
  bool is_here = false;  ///< this process hosts it, so it ends with this process
};

/// Errors: rendezvous (no answer, or the port is taken), config (store_fd is not this user's memory).
Result<RankStore> open_rank_store(const RankIdentity& identity, const CommOptions& options);

/// "2.5 s"
std::string seconds_text(std::chrono::milliseconds time);

/// Ends a meeting: the host of a store waits until the `others` need it no more, for at most `patience`; the other
/// ranks leave at once.
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

// SPDX-License-Identifier: Apache-2.0
// The key-value store in which ranks meet: memory that a launcher hands to all of them, or a TCPStore.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>

#include "accrue/comm/rendezvous.h"
#include "exchange.h"

namespace accrue {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

struct RankStore {
  StorePtr store;
  std::string place;  ///< where it is and what guards it, in words
};

/// Errors: rendezvous (nobody answers there, the port is taken), config (store_fd is no memory of this user's).
Result<RankStore> open_rank_store(const RankIdentity& identity, const CommOptions& options);

/// "2.5 s"
std::string seconds_text(std::chrono::milliseconds time);

class StoreExchange final : public Exchange {
 public:
  explicit StoreExchange(StorePtr store) : store_(std::move(store)) {}
  void publish(const std::string& key, const std::string& value) override;
  std::optional<std::string> fetch(const std::string& key, std::chrono::milliseconds timeout) override;

 private:
  StorePtr store_;
};

}  // namespace accrue

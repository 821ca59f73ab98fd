// SPDX-License-Identifier: Apache-2.0
// Minimal key-value store for building a group, which keeps the c10d headers out of the backends.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace accrue {

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Does nothing if the store is gone, which fetch() reports.
  virtual void publish(const std::string& key, const std::string& value) = 0;
  /// Waits for the key. Empty at the deadline or if the store is gone.
  virtual std::optional<std::string> fetch(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

}  // namespace accrue

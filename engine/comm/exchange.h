// SPDX-License-Identifier: Apache-2.0
// The little that building a group needs of a key-value store; the c10d headers stay out of the backends that way.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace accrue {

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Does nothing where the store is gone: fetch() answers that.
  virtual void publish(const std::string& key, const std::string& value) = 0;
  /// Waits for the key. Empty at the deadline or when the store is gone.
  virtual std::optional<std::string> fetch(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

}  // namespace accrue

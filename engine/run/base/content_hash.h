// SPDX-License-Identifier: Apache-2.0
// XXH3-128 over a stream of bytes, as hex.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace accrue {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;
  void update(const void* data, std::size_t bytes);
  /// Returns the hash of the bytes added so far, as 32 lower-case hex digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace accrue

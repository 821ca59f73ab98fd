// SPDX-License-Identifier: Apache-2.0
// xxHash is compiled into this unit alone, so that its symbols cannot clash with another copy in the process.
#include "content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace accrue {

struct ContentHash::State {
  XXH3_state_t hash;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->hash);
}

ContentHash::~ContentHash() = default;

void ContentHash::update(const void* data, std::size_t bytes) {
  if (bytes > 0) XXH3_128bits_update(&state_->hash, data, bytes);
}

std::string ContentHash::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->hash));
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Keys and choices that earlier versions had: a spec that still holds one is told what to write instead.
#pragma once

#include <string_view>

namespace accrue::spec_detail {

struct RemovedKey {
  std::string_view key;
  std::string_view choice;  ///< of that key; empty where the key itself was removed
  std::string_view advice;  ///< of a key: why none is needed; of a choice: what does the same
  std::string_view fix;     ///< the choice that does the same
};

/// The entry of a key, or of one of its choices; nullptr where nothing was removed.
const RemovedKey* removed_key(std::string_view key, std::string_view choice = {});

}  // namespace accrue::spec_detail

// SPDX-License-Identifier: Apache-2.0
// Keys and choices that a spec does not have, with a word for whoever writes one: those that earlier versions had, and
// kinds of parallelism that other tools have.
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

/// What is missing for a kind of parallelism that Accrue does not have, by its key here or its name elsewhere; empty
/// for any other name.
std::string_view missing_parallelism(std::string_view name);

}  // namespace accrue::spec_detail

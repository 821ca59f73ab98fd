// SPDX-License-Identifier: Apache-2.0
// Keys and choices that a spec lacks, with advice for their users: those of earlier versions, and kinds of parallelism
// of other tools.
#pragma once

#include <string_view>

namespace accrue::spec_detail {

struct RemovedKey {
  std::string_view key;
  std::string_view choice;  ///< choice of the key; empty if the key itself was removed
  std::string_view advice;  ///< for a key: why it is not needed; for a choice: the replacement
  std::string_view fix;     ///< replacement choice
};

/// Returns the entry of a removed key or choice; nullptr if it was not removed.
const RemovedKey* removed_key(std::string_view key, std::string_view choice = {});

/// Returns what is missing for a kind of parallelism that Accrue lacks, by its key here or its name elsewhere; empty
/// for any other name.
std::string_view missing_parallelism(std::string_view name);

}  // namespace accrue::spec_detail

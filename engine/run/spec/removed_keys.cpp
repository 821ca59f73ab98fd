// SPDX-License-Identifier: Apache-2.0
#include "removed_keys.h"

namespace accrue::spec_detail {

namespace {

constexpr RemovedKey removed_keys[] = {
    {"accumulation.clear_gradients", "", "gradients are cleared after every update", ""},
    {"accumulation.validation", "", "every combination of settings is checked", ""},
    {"accumulation.clip_stage", "separate_stage", "\"in_update\" clips at the boundary, too", "in_update"},
    {"accumulation.clip_stage", "backend", "\"in_update\" does the same", "in_update"},
    {"accumulation.uneven_ranks", "join", "\"empty_micro_steps\" does the same", "empty_micro_steps"},
    {"data.shard", "", "batches always go to the ranks in turn", ""},
    {"data.stream", "", "the length of the data is known before every run", ""},
};

}  // namespace

const RemovedKey* removed_key(std::string_view key, std::string_view choice) {
  for (const RemovedKey& removed : removed_keys)
    if (removed.key == key && removed.choice == choice) return &removed;
  return nullptr;
}

}  // namespace accrue::spec_detail

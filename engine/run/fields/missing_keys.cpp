// SPDX-License-Identifier: Apache-2.0
#include "missing_keys.h"

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

constexpr std::string_view no_context_parallelism =
    "ranks cannot share one sequence in the attention: no rank passes keys and values on to the next. "
    "parallel.sequence shares the positions everywhere else";
constexpr std::string_view no_experts =
    "there is no model with experts: no layer routes tokens to them and no axis exchanges tokens between ranks";

struct MissingParallelism {
  std::string_view name;
  std::string_view why;
};

constexpr MissingParallelism missing_parallelisms[] = {
    {"context", no_context_parallelism},
    {"context_parallel", no_context_parallelism},
    {"context_parallel_size", no_context_parallelism},
    {"cp_size", no_context_parallelism},
    {"ring_attention", no_context_parallelism},
    {"expert", no_experts},
    {"experts", no_experts},
    {"expert_parallel", no_experts},
    {"expert_model_parallel_size", no_experts},
    {"num_experts", no_experts},
};

}  // namespace

std::string_view missing_parallelism(std::string_view name) {
  for (const MissingParallelism& missing : missing_parallelisms)
    if (missing.name == name) return missing.why;
  return {};
}

const RemovedKey* removed_key(std::string_view key, std::string_view choice) {
  for (const RemovedKey& removed : removed_keys)
    if (removed.key == key && removed.choice == choice) return &removed;
  return nullptr;
}

}  // namespace accrue::spec_detail

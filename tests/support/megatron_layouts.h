// SPDX-License-Identifier: Apache-2.0
// Layouts of the Megatron-LM plug-in over ranks of a test, with the options that give each of them the same updates.
#pragma once

#include <ATen/Parallel.h>

#include <memory>
#include <string>
#include <vector>

#include "accrue/comm/mesh.h"
#include "support/joined_rank.h"
#include "support/megatron_cases.h"
#include "support/rank_checks.h"

namespace accrue::test {

struct MegatronLayout {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t layers_per_chunk = 0;  ///< 0: one chunk a stage
  std::int64_t split = 0;             ///< of a T5; 0: left out
  bool sequence = false;
  bool sharded = false;
  Dtype dtype = Dtype::float64;
  std::int64_t samples = 24;  ///< if they are no multiple of eight, the last update is filled up
};

/// "t2 p2 c1 r1 s z f n19" as arguments.
inline MegatronLayout layout_of(const std::vector<std::string>& words) {
  MegatronLayout layout;
  for (const std::string& word : words) {
    const std::int64_t number = word.size() > 1 ? std::stoll(word.substr(1)) : 0;
    if (word[0] == 't') layout.tensor = number;
    if (word[0] == 'p') layout.pipeline = number;
    if (word[0] == 'c') layout.layers_per_chunk = number;
    if (word[0] == 'r') layout.split = number;
    if (word[0] == 's') layout.sequence = true;
    if (word[0] == 'z') layout.sharded = true;
    if (word[0] == 'f') layout.dtype = Dtype::float32;
    if (word[0] == 'n') layout.samples = number;
  }
  return layout;
}

/// Eight rows an update, whatever the ranks.
inline megatron::AcceleratorOptions options_of(const MegatronLayout& layout, std::int64_t replicas) {
  megatron::AcceleratorOptions options;
  megatron::MegatronLMPlugin& plugin = options.megatron_lm_plugin;
  plugin.tp_degree = layout.tensor;
  plugin.pp_degree = layout.pipeline;
  plugin.num_micro_batches = 4 / replicas;
  plugin.sequence_parallelism = layout.sequence;
  plugin.use_distributed_optimizer = layout.sharded;
  plugin.gradient_clipping = 0.05;
  plugin.lr_decay_style = "cosine";
  plugin.weight_decay_incr_style = "linear";
  plugin.start_weight_decay = 0.0;
  plugin.end_weight_decay = 0.1;
  plugin.scale_lr_cond = [](const std::string& name, const at::Tensor&) {
    return name.find("mlp") != std::string::npos;
  };
  plugin.lr_mult = 0.5;
  if (layout.layers_per_chunk > 0) plugin.num_layers_per_virtual_pipeline_stage = layout.layers_per_chunk;
  if (layout.split > 0) plugin.pipeline_model_parallel_split_rank = layout.split;
  options.last_batch = megatron::LastBatch::pad;
  options.environment = empty_environment();
  return options;
}

inline Mesh mesh_of(const RankContext& rank, std::unique_ptr<Rendezvous>& rendezvous, const MegatronLayout& layout) {
  at::set_num_threads(1);  // ranks share the cores
  rendezvous = taken(Rendezvous::join(taken(rank_identity(accrue::test::environment, rank.store_fd)),
                                      {.timeout = std::chrono::seconds(30), .run_id = "test"}));
  return taken(Mesh::build(
      *rendezvous,
      {.data = rank.world / (layout.tensor * layout.pipeline), .pipeline = layout.pipeline, .tensor = layout.tensor}));
}

}  // namespace accrue::test

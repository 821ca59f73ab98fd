// SPDX-License-Identifier: Apache-2.0
// Booster: the seam between ColossalAIOptimWrapper and the backend that shards and reduces. A plugin is a description
// of what its backend can do; SyncBooster gives it life over Accrue's own data parallelism, so that a program behaves
// as it would on that backend as far as accumulation goes: when gradients travel, and what is refused. Thread: the
// training thread. Source: colossalai.booster, whose plugins these are named after.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/comm/grad_sync.h"

namespace torch::nn {
class Module;
}

namespace accrue::mmengine {

struct Plugin {
  std::string name;
  bool supports_no_sync = false;       ///< false: every backward reduces
  bool supports_accumulation = false;  ///< false: gradients of several backwards do not add up
  bool asks_in_backward = false;       ///< its no_sync matters to the backward; else the forward alone decides
};

/// Replicas whose gradients are averaged.
Plugin torch_ddp_plugin();
/// Optimizer state sharded (stage 1), gradients too (stage 2, which has no place for what was not reduced).
/// Errors: throws std::invalid_argument for another stage.
Plugin low_level_zero_plugin(std::int64_t stage);
/// Parameters in chunks. Without enable_gradient_accumulation a chunk's memory holds either weights or gradients, so
/// that gradients cannot accumulate; it is on by default here.
Plugin gemini_plugin(bool enable_gradient_accumulation = true);
/// Parameters, gradients and optimizer state sharded.
Plugin torch_fsdp_plugin();

class Booster {
 public:
  virtual ~Booster() = default;
  virtual const Plugin& plugin() const = 0;

  /// A scope in which backwards accumulate without reducing. `model` is the user's own module, null where the loop
  /// named none. Errors: throws std::logic_error where the plugin does not support it.
  virtual std::shared_ptr<void> no_sync(torch::nn::Module* model, BaseOptimizer& optimizer) = 0;
  /// Whether such a scope is open.
  virtual bool in_no_sync() const = 0;
  /// The backward of `loss`, and outside no_sync the reduction. Collective there.
  virtual void backward(const at::Tensor& loss, BaseOptimizer& optimizer, BackwardOptions options = {}) = 0;
  /// Reduces what no_sync let accumulate: for a step that comes before its time. Collective.
  virtual void reduce(BaseOptimizer& optimizer) = 0;
  /// As GradSync::agree().
  virtual void agree(const std::vector<NamedNumber>& /*numbers*/) {}
};

/// A plugin over a GradSync, such as DistributedDataParallel; one that cannot do without reducing does so after every
/// backward. `sync` must outlive the answer.
std::shared_ptr<Booster> make_booster(Plugin plugin, GradSync& sync);

}  // namespace accrue::mmengine

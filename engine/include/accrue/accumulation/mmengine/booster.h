// SPDX-License-Identifier: Apache-2.0
// Booster: interface between ColossalAIOptimWrapper and the backend that shards and reduces. A plugin describes the
// capabilities of its backend. SyncBooster implements it over Accrue's own data parallelism, so that a program's
// accumulation behaves as on that backend: when gradients are reduced, and what is refused. Thread: the training
// thread. Source: colossalai.booster, after whose plugins these are named.
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
  bool supports_accumulation = false;  ///< false: gradients of several backwards cannot be summed
  bool asks_in_backward = false;       ///< its no_sync affects the backward; else the forward alone decides
};

/// Replicas with averaged gradients.
Plugin torch_ddp_plugin();
/// Sharded optimizer state (stage 1), and sharded gradients (stage 2, which cannot store unreduced gradients). Errors:
/// throws std::invalid_argument for another stage.
Plugin low_level_zero_plugin(std::int64_t stage);
/// Parameters in chunks. Without enable_gradient_accumulation a chunk's memory holds either weights or gradients, so
/// gradients cannot accumulate; it is on by default here.
Plugin gemini_plugin(bool enable_gradient_accumulation = true);
/// Parameters, gradients and optimizer state sharded.
Plugin torch_fsdp_plugin();

class Booster {
 public:
  virtual ~Booster() = default;
  virtual const Plugin& plugin() const = 0;

  /// Opens a scope in which backwards accumulate without reducing. `model` is the user's own module, null if the loop
  /// named none. Errors: throws std::logic_error if the plugin does not support it.
  virtual std::shared_ptr<void> no_sync(torch::nn::Module* model, BaseOptimizer& optimizer) = 0;
  /// Whether such a scope is open.
  virtual bool in_no_sync() const = 0;
  /// Runs the backward of `loss`, and outside no_sync the reduction. Collective there.
  virtual void backward(const at::Tensor& loss, BaseOptimizer& optimizer, BackwardOptions options = {}) = 0;
  /// Reduces what accumulated under no_sync, for an early step. Collective.
  virtual void reduce(BaseOptimizer& optimizer) = 0;
  /// As GradSync::agree().
  virtual void agree(const std::vector<NamedNumber>& /*numbers*/) {}
};

/// Makes a plugin over a GradSync, such as DistributedDataParallel. One without no_sync reduces after every backward.
/// `sync` must outlive the result.
std::shared_ptr<Booster> make_booster(Plugin plugin, GradSync& sync);

}  // namespace accrue::mmengine

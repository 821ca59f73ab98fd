// SPDX-License-Identifier: Apache-2.0
// Plugins as descriptions over one reducer. Accrue shards nothing here: only the choice of backwards that reduce
// matters to accumulation. mean_r(S + g_r) = S + mean_r(g_r) for a reduced part S, so reducing every time costs traffic
// and changes no result. Source: which plugins of ColossalAI have no_sync (TorchDDP and LowLevelZero stage 1).
#include "accrue/accumulation/mmengine/booster.h"

#include <stdexcept>
#include <utility>

namespace accrue::mmengine {
namespace {

class SyncBooster final : public Booster {
 public:
  SyncBooster(Plugin plugin, GradSync& sync) : plugin_(std::move(plugin)), sync_(sync) {}

  const Plugin& plugin() const override { return plugin_; }

  std::shared_ptr<void> no_sync(torch::nn::Module*, BaseOptimizer&) override {
    if (!plugin_.supports_no_sync)
      throw std::logic_error("Booster: the plugin " + plugin_.name +
                             " has no no_sync; every backward reduces there, so leave the scope out");
    return std::make_shared<GradSync::NoSyncScope>(sync_);
  }

  bool in_no_sync() const override { return !sync_.sync_enabled(); }

  void backward(const at::Tensor& loss, BaseOptimizer& optimizer, BackwardOptions options) override {
    optimizer.backward(loss, options);
    sync_.finish();
  }

  void reduce(BaseOptimizer&) override { sync_.finish(); }
  void agree(const std::vector<NamedNumber>& numbers) override { sync_.agree(numbers); }

 private:
  Plugin plugin_;
  GradSync& sync_;
};

}  // namespace

Plugin torch_ddp_plugin() {
  return {.name = "TorchDDPPlugin", .supports_no_sync = true, .supports_accumulation = true};
}

Plugin low_level_zero_plugin(std::int64_t stage) {
  if (stage != 1 && stage != 2)
    throw std::invalid_argument("low_level_zero_plugin: stage is " + std::to_string(stage) + "; it is 1 or 2");
  return {.name = "LowLevelZeroPlugin stage " + std::to_string(stage),
          .supports_no_sync = stage == 1,
          .supports_accumulation = true,
          .asks_in_backward = true};
}

Plugin gemini_plugin(bool enable_gradient_accumulation) {
  return {.name = "GeminiPlugin", .supports_no_sync = false, .supports_accumulation = enable_gradient_accumulation};
}

Plugin torch_fsdp_plugin() {
  return {.name = "TorchFSDPPlugin", .supports_no_sync = false, .supports_accumulation = true};
}

std::shared_ptr<Booster> make_booster(Plugin plugin, GradSync& sync) {
  return std::make_shared<SyncBooster>(std::move(plugin), sync);
}

}  // namespace accrue::mmengine

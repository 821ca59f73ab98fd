// SPDX-License-Identifier: Apache-2.0
// MMEngine's ColossalAIOptimWrapper with each of the seven optimizers that its page names: ten batches of one sample,
// x = 1..10 and y = 2x, in groups of four. The strategy knows how long the run is, so the last group, of two batches,
// is divided by two. Only the backward that ends a group reduces. Source: MMEngine, ColossalAIOptimWrapper.
#include <ATen/ops/full.h>
#include <torch/nn/module.h>

#include "accrue/accumulation/mmengine/colossalai_optim_wrapper.h"
#include "accrue/optim/cpu_adam.h"
#include "accrue/optim/fused_adam.h"
#include "accrue/optim/fused_lamb.h"
#include "accrue/optim/fused_sgd.h"
#include "accrue/optim/hybrid_adam.h"
#include "accrue/optim/lamb.h"
#include "accrue/optim/lars.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "ranks.h"

using namespace accrue;
using namespace accrue::mmengine;

namespace {

struct Line : torch::nn::Module {
  Line() { w = register_parameter("w", at::full({1}, 0.5, at::kDouble)); }
  at::Tensor forward(double x, double y) { return (w * x - y).square().mean(); }
  at::Tensor w;
};

template <typename Optimizer, typename Options>
void train(const char* name, const Options& options, Communicator& axis) {
  Line model;
  Optimizer optimizer(model.parameters(), options);
  DistributedDataParallel ddp(model, axis);
  const ColossalAIStrategy strategy({.accumulative_counts = 4, .max_iters = 10});
  const auto optim_wrapper = strategy.build_optim_wrapper(optimizer, make_booster(torch_ddp_plugin(), ddp));
  strategy.prepare(model, *optim_wrapper);

  std::string updates;
  for (int x = 1; x <= 10; ++x) {
    at::Tensor loss;
    {
      auto context = optim_wrapper->optim_context(model);
      loss = model.forward(x, 2.0 * x);
    }
    if (optim_wrapper->update_params(loss) == StepOutcome::updated) updates += " " + std::to_string(x);
  }
  if (axis.rank() == 0)
    std::printf("%s, updates after%s: %ld reductions, w = %.10f\n", name, updates.c_str(),
                static_cast<long>(ddp.reductions()), model.w.item<double>());
}

}  // namespace

int main(int argc, char** argv) try {
  if (const auto ranks = examples::option(argc, argv, "--ranks")) return examples::launch(std::stoi(*ranks), {});
  const examples::Ranks ranks = examples::join(argc, argv);
  train<CPUAdam>("CPUAdam", CPUAdamOptions(0.1), *ranks.data);
  train<FusedAdam>("FusedAdam", FusedAdamOptions(0.1), *ranks.data);
  train<FusedLAMB>("FusedLAMB", FusedLAMBOptions(0.1), *ranks.data);
  train<FusedSGD>("FusedSGD", FusedSGDOptions(0.002).momentum(0.9), *ranks.data);
  train<HybridAdam>("HybridAdam", HybridAdamOptions(0.1), *ranks.data);
  train<Lamb>("Lamb", LambOptions(0.1).weight_decay(0.01), *ranks.data);
  train<Lars>("Lars", LarsOptions(1.0).momentum(0.9).weight_decay(0.01), *ranks.data);
  std::fflush(stdout);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "mmengine_colossalai: %s\n", error.what());
  return 1;
}

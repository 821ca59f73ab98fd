// SPDX-License-Identifier: Apache-2.0
// The cost of accumulating compared with computing: a window of N micro-steps through a facade and
// DistributedDataParallel against N bare forwards and backwards and one step of the same optimizer, with the same model
// and samples, alternating. Prints the ratio of each round and their median; run it by hand:
//   accumulation_overhead [N] [rounds] [layers] [width] [context]
#include <ATen/Parallel.h>
#include <ATen/ops/randint.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "accrue/accumulation/llm.h"
#include "accrue/comm/rendezvous.h"
#include "accrue/models/model_part.h"
#include "accrue/parallel/distributed_data_parallel.h"

using namespace accrue;

namespace {

Batch tokens(const ModelSpec& spec, std::int64_t samples) {
  Batch batch;
  batch.inputs = at::randint(0, spec.vocabulary, {samples, spec.context}, at::kLong);
  batch.targets = at::randint(0, spec.vocabulary, {samples, spec.context}, at::kLong);
  batch.samples = samples;
  batch.items = samples * spec.context;
  return batch;
}

at::Tensor mean_loss(ModelPart& model, const Batch& batch) {
  const LossSum loss = model.whole_loss(batch);
  return loss.sum / static_cast<double>(loss.count);
}

template <typename Work>
double seconds(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, std::int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const std::int64_t steps = argument(1, 4);
  const std::int64_t rounds = argument(2, 11);
  ModelSpec spec;
  spec.layers = argument(3, 6);
  spec.width = argument(4, 384);
  spec.heads = 6;
  spec.context = argument(5, 256);
  at::set_num_threads(1);
  const Batch batch = tokens(spec, 1);

  const auto bare_model = make_model(spec, 1);
  torch::optim::AdamW bare(bare_model->parameters(), 1e-4);
  const auto window = [&] {
    for (std::int64_t i = 0; i < steps; ++i) mean_loss(*bare_model, batch).backward();
    bare.step();
    bare.zero_grad(/*set_to_none=*/false);
  };

  const auto axis = single_communicator();
  const auto model = make_model(spec, 1);
  DistributedDataParallel ddp(*model, *axis);
  torch::optim::AdamW adamw(model->parameters(), 1e-4);
  LambdaLR constant(adamw, [](std::int64_t) { return 1.0; });
  const auto [optimizer, scheduler] = llm::initialize(&ddp, adamw, constant, steps);
  const auto accumulated = [&, &optimizer = optimizer, &scheduler = scheduler] {
    for (std::int64_t i = 0; i < steps; ++i) {
      optimizer->zero_grad();
      optimizer->backward(mean_loss(*model, batch));
      optimizer->step();
      scheduler->step();
    }
  };

  window();
  accumulated();
  std::vector<double> ratios, bare_times, times;
  for (std::int64_t round = 0; round < rounds; ++round) {
    // Alternating, with the order swapped each round, so that a drifting clock rate favours neither.
    double one = 0.0;
    double other = 0.0;
    if (round % 2 == 0) {
      one = seconds(window);
      other = seconds(accumulated);
    } else {
      other = seconds(accumulated);
      one = seconds(window);
    }
    bare_times.push_back(one);
    times.push_back(other);
    ratios.push_back(other / one);
    std::printf("round %2lld: bare %8.2f ms, accumulated %8.2f ms, ratio %.4f\n", static_cast<long long>(round + 1),
                1e3 * one, 1e3 * other, ratios.back());
  }
  std::printf("N = %lld, %lld layers, width %lld: median bare %.2f ms, accumulated %.2f ms, ratio %.4f\n",
              static_cast<long long>(steps), static_cast<long long>(spec.layers), static_cast<long long>(spec.width),
              1e3 * median(bare_times), 1e3 * median(times), median(ratios));
  return 0;
}

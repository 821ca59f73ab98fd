// SPDX-License-Identifier: Apache-2.0
// A LibTorch program with a model of its own, trained data-parallel with gradient accumulation: y = 3x - 1 from 24
// samples, 8 of them an update whatever the number of ranks. Prints the result and how often gradients were
// reduced.
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <exception>

#include "accrue/accumulation/llm.h"
#include "accrue/comm/rendezvous.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/run/base/program.h"

namespace {

constexpr std::int64_t samples = 24;
constexpr std::int64_t samples_per_update = 8;
constexpr std::int64_t micro_batch = 2;
constexpr int epochs = 5;

struct Line : torch::nn::Module {
  Line() {
    slope = register_parameter("slope", at::zeros({}, at::kDouble));
    offset = register_parameter("offset", at::zeros({}, at::kDouble));
  }
  at::Tensor forward(const at::Tensor& x) { return slope * x + offset; }

  at::Tensor slope;
  at::Tensor offset;
};

/// Samples [first, first + micro_batch) and the loss on them.
at::Tensor loss_of(Line& model, std::int64_t first) {
  const at::Tensor x = at::arange(first, first + micro_batch, at::kDouble) / static_cast<double>(samples);
  return (model.forward(x) - (3.0 * x - 1.0)).square().mean();
}

void train() {
  using accrue::must;
  const auto identity = must(accrue::rank_identity(accrue::environment));
  const auto meeting = must(accrue::Rendezvous::join(identity, accrue::CommOptions{}));
  const auto axis = must(meeting->communicator(accrue::RankGrid{.data = identity.world}, accrue::Axis::data));

  Line model;
  accrue::DistributedDataParallel parallel(model, *axis);
  torch::optim::SGD sgd(model.parameters(), 0.1);
  accrue::LambdaLR decay(sgd, [](std::int64_t position) { return 1.0 / static_cast<double>(1 + position); });
  const auto steps = accrue::llm::gradient_accumulation_steps(samples_per_update, micro_batch, identity.world);
  auto [optimizer, schedule] = accrue::llm::initialize(&parallel, sgd, decay, steps);

  std::int64_t updates = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t first = identity.rank * micro_batch; first < samples; first += identity.world * micro_batch) {
      optimizer->zero_grad();
      optimizer->backward(loss_of(model, first));
      if (optimizer->step() == accrue::StepOutcome::updated) ++updates;
      schedule->step();
    }
  }
  std::printf("rank %lld of %lld (%s): slope %.17g offset %.17g N %lld updates %lld reductions %lld all-reduces %lld\n",
              static_cast<long long>(identity.rank), static_cast<long long>(identity.world), identity.source.c_str(),
              model.slope.item<double>(), model.offset.item<double>(), static_cast<long long>(steps),
              static_cast<long long>(updates), static_cast<long long>(parallel.reductions()),
              static_cast<long long>(axis->traffic().gradient_calls));
}

}  // namespace

int main() {
  try {
    train();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return 1;
  }
}

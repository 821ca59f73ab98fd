// SPDX-License-Identifier: Apache-2.0
// A user's training loop that the studio shows during the run:
//
//   accrue-run launch -n 2 --out /tmp/mine -- own_loop --updates 2000
//   accrue /tmp/mine
//
// torchrun --no-python, srun and mpirun also start it, with --out; accrue-run show, attach, pause and stop work with
// it.
//
// Each update takes four micro-steps of two samples of y = 3x - 1 on each rank. The loop reports losses, rates, a
// scalar and each rank's computation; the record adds the waits of the ranks for each other.
#include <ATen/ops/linspace.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>

#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/rank/run_record.h"
#include "accrue/run/base/program.h"
#include "ranks.h"

int main(int argc, char** argv) {
  using accrue::must;
  constexpr int steps = 4;
  const int updates = std::atoi(examples::option(argc, argv, "--updates").value_or("40").c_str());
  const auto identity = must(accrue::rank_identity(accrue::environment));
  const auto meeting = must(accrue::Rendezvous::join(identity, {.run_id = "own_loop"}));
  const auto ranks = must(meeting->communicator({.data = identity.world}, accrue::Axis::data));
  const auto record = must(accrue::RunRecord::open(*meeting, *ranks,
                                                   {.dir = examples::option(argc, argv, "--out").value_or(""),
                                                    .name = "A line",
                                                    .steps = steps,
                                                    .micro_batch = 2,
                                                    .updates = updates}));
  record->observe(*ranks);

  torch::nn::Linear model(1, 1);
  accrue::DistributedDataParallel parallel(*model, *ranks);
  torch::optim::SGD sgd(model->parameters(), 0.1);
  for (int update = 0, micro_step = 0; update < updates; ++update) {
    int done = 0;
    for (; done < steps && record->begin_micro_step(); ++done, ++micro_step) {
      const double first = static_cast<double>((micro_step * identity.world + identity.rank) % 5);
      const at::Tensor x = at::linspace(first, first + 0.5, 2).reshape({2, 1});
      at::Tensor loss;
      {
        const auto span = record->computes(accrue::ComputeKind::forward);
        loss = (model(x) - (3.0 * x - 1.0)).square().mean() / double(steps);
      }
      {
        const auto span = record->computes(accrue::ComputeKind::backward);
        loss.backward();
      }
      record->end_micro_step(loss.item<double>() * steps, 2);
    }
    if (done < steps) break;  // stopped: drop the open window
    {
      const auto span = record->computes(accrue::ComputeKind::step);
      parallel.finish();
      sgd.step();
      parallel.zero_grad();
    }
    record->scalar("slope", model->weight.item<double>());
    if (record->end_update({.lr = 0.1}).stop) break;
  }
  record->finish();
  if (identity.rank == 0)
    std::printf("slope %.3f, offset %.3f\n", model->weight.item<double>(), model->bias.item<double>());
  return 0;
}

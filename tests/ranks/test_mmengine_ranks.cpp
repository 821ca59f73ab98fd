// SPDX-License-Identifier: Apache-2.0
// MMEngine's wrappers on two ranks: gradients are equal at the end of a group and only there, exchanges are counted,
// and an overflow of one rank costs both the same group.
#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <cmath>
#include <limits>
#include <optional>

#include "accrue/accumulation/mmengine/amp_optim_wrapper.h"
#include "accrue/accumulation/mmengine/colossalai_optim_wrapper.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "support/joined_rank.h"
#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/ten_batches.h"

namespace test_mmengine_ranks {

using namespace accrue;
using namespace accrue::mmengine;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

void ignore_warnings(const std::string&) {}

/// Batch b of rank r: two ranks share each micro-step, and no two samples are the same.
double sample_of(const RankContext& rank, std::int64_t m) {
  return batch_of(m) + 0.5 * rank.rank;
}

/// Returns the factor of d for a group of batches when two ranks average their gradients.
double factor_of(std::initializer_list<double> batches, double divisor) {
  double squares = 0.0;
  for (const double b : batches) squares += (b * b + (b + 0.5) * (b + 0.5)) / 2.0;
  return 1.0 - ten_batch_lr * 2.0 * squares / divisor;
}
double trained_weight() {
  return weight_after({factor_of({1, 2, 3, 4}, 4), factor_of({5, 6, 7, 8}, 4), factor_of({9, 10}, 2)});
}

/// The weight this rank has, and whether all ranks have the same number under `value`.
bool equal_on_all(Communicator& axis, const at::Tensor& value) {
  at::Tensor all = at::empty({axis.size(), value.numel()}, value.options().requires_grad(false));
  axis.all_gather(all, value.detach().reshape({-1}));
  for (std::int64_t r = 1; r < axis.size(); ++r)
    if (!at::equal(all[r], all[0])) return false;
  return true;
}

/// Gradients after each of three micro-steps, N = 3, in a run that begins at 0 or continues at 2.
int compare_gradients(RankContext& rank) {
  JoinedRank joined = join_ranks(rank);
  Line line;
  DistributedDataParallel ddp(line, *joined.data);
  torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.0));
  OptimWrapper wrapper(sgd, {.accumulative_counts = 3, .sync = &ddp, .warn = ignore_warnings});
  wrapper.initialize_count_status(line, std::stoll(rank.arguments.at(0)), 100);
  std::string equal;
  for (std::int64_t m = 1; m <= 3; ++m) {
    const OptimContext context = wrapper.optim_context(line);
    wrapper.backward(wrapper.scale_loss(line.loss(sample_of(rank, m))));
    equal += equal_on_all(*joined.data, line.w.grad()) ? '=' : '/';
  }
  DEMAND(equal == (rank.arguments.at(0) == "0" ? "//=" : "=//"));
  joined.data->barrier();
  return 0;
}

/// Ten micro-steps in groups of four through the base wrapper.
int train_ten_batches(RankContext& rank) {
  JoinedRank joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  Line line;
  DistributedDataParallel ddp(line, *joined.data);
  torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(ten_batch_lr));
  OptimWrapper wrapper(sgd, {.accumulative_counts = 4, .sync = &ddp});
  wrapper.initialize_count_status(line, 0, 10);
  const TrafficCounters before = joined.data->traffic();
  std::string reductions;
  for (std::int64_t m = 1; m <= 10; ++m) {
    train_step(wrapper, line, [&] { return line.loss(sample_of(rank, m)); });
    reductions += std::to_string(joined.data->traffic().gradient_calls - before.gradient_calls);
  }
  DEMAND(std::abs(line.weight() - trained_weight()) <= 1e-12);
  DEMAND(reductions == "0001111223");
  rank.report(fingerprint(line.w));
  joined.data->barrier();
  return 0;
}

Plugin plugin_named(const std::string& name) {
  if (name == "ddp") return torch_ddp_plugin();
  if (name == "zero1") return low_level_zero_plugin(1);
  if (name == "zero2") return low_level_zero_plugin(2);
  return name == "gemini" ? gemini_plugin() : torch_fsdp_plugin();
}

/// The same through a booster. arguments: the plugin, how often it reduces, and whether as the original does.
int train_through_a_plugin(RankContext& rank) {
  JoinedRank joined = join_ranks(rank);
  Line line;
  DistributedDataParallel ddp(line, *joined.data);
  torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(ten_batch_lr));
  std::vector<Replay> replay;
  if (rank.arguments.size() > 2) replay = {Replay::narrow_no_sync};
  const ColossalAIStrategy strategy({.accumulative_counts = 4, .max_iters = 10, .replay = replay});
  const auto wrapper = strategy.build_optim_wrapper(wrap(sgd), make_booster(plugin_named(rank.arguments.at(0)), ddp));
  strategy.prepare(line, *wrapper);
  const TrafficCounters before = joined.data->traffic();
  for (std::int64_t m = 1; m <= 10; ++m) train_step(*wrapper, line, [&] { return line.loss(sample_of(rank, m)); });
  DEMAND(std::abs(line.weight() - trained_weight()) <= 1e-12);
  DEMAND(equal_on_all(*joined.data, line.w));
  const std::int64_t reductions = joined.data->traffic().gradient_calls - before.gradient_calls;
  DEMAND(reductions == std::stoi(rank.arguments.at(1)));
  DEMAND((joined.data->traffic().gradient_bytes - before.gradient_bytes) % reductions == 0);
  joined.data->barrier();
  return 0;
}

/// Two micro-steps and a step of a small layer in float32, each rank with its own samples. `quiet`: the first lies in
/// no_sync. Without a plugin the reducer itself is used, as plain data parallelism does.
at::Tensor two_backwards(Communicator& axis, const std::optional<Plugin>& plugin, bool quiet) {
  at::manual_seed(5);
  torch::nn::Linear layer(7, 3);
  DistributedDataParallel ddp(*layer, axis);
  torch::optim::SGD sgd(layer->parameters(), torch::optim::SGDOptions(0.3));
  const auto optimizer = wrap(sgd);
  const auto booster = make_booster(plugin.value_or(torch_ddp_plugin()), ddp);
  at::manual_seed(100 + static_cast<std::uint64_t>(axis.rank()));
  for (const bool last : {false, true}) {
    const at::Tensor loss = layer(at::randn({11, 7})).square().sum() / 3.0;
    std::shared_ptr<void> scope;
    if (plugin) {
      if (quiet && !last) scope = booster->no_sync(layer.get(), *optimizer);
      booster->backward(loss, *optimizer);
    } else {
      ddp.set_sync_enabled(last || !quiet);
      loss.backward();
      ddp.finish();
    }
  }
  optimizer->step();
  return at::cat({layer->weight.detach().flatten(), layer->bias.detach()});
}

int zero_stages(RankContext& rank) {
  JoinedRank joined = join_ranks(rank);
  Communicator& axis = *joined.data;
  const at::Tensor plain = two_backwards(axis, std::nullopt, true);
  DEMAND(equal_on_all(axis, plain));
  for (const bool quiet : {false, true}) {
    const at::Tensor stage_1 = two_backwards(axis, low_level_zero_plugin(1), quiet);
    DEMAND(equal_on_all(axis, stage_1));
    DEMAND(at::allclose(stage_1, plain, 1e-5, 1e-6));
    if (!quiet) DEMAND(at::equal(stage_1, two_backwards(axis, low_level_zero_plugin(2), false)));
  }
  axis.barrier();
  return 0;
}

/// Six micro-steps in groups of three, for each position of one rank's infinity. Without DistributedDataParallel every
/// gradient is the rank's own, so only the scaler can carry the news.
int overflow_on_one_rank(RankContext& rank) {
  JoinedRank joined = join_ranks(rank);
  const bool reduces = rank.arguments.at(0) == "reduced";
  for (std::int64_t infinite = 0; infinite < 6; ++infinite) {
    Line line;
    std::unique_ptr<DistributedDataParallel> ddp;
    if (reduces) ddp = std::make_unique<DistributedDataParallel>(line, *joined.data);
    torch::optim::Adam adam(line.parameters(), torch::optim::AdamOptions(0.1));
    AmpOptimWrapper wrapper(adam, {.loss_scale = {.init_scale = 64.0}, .axis = joined.data.get()},
                            {.accumulative_counts = 3, .sync = ddp.get()});
    wrapper.initialize_count_status(line, 0, 6);
    std::string outcomes;
    for (std::int64_t m = 0; m < 6; ++m) {
      const bool ill = m == infinite && rank.rank == 1;
      const double slope = ill ? std::numeric_limits<double>::infinity() : 1.0 + static_cast<double>(m);
      const StepOutcome outcome = train_step(wrapper, line, [&] { return (line.w * slope).sum(); }).outcome;
      if (outcome != StepOutcome::accumulated) outcomes += outcome == StepOutcome::updated ? "u" : "s";
    }
    DEMAND(static_cast<const torch::optim::AdamParamState&>(*adam.state().at(line.w.unsafeGetTensorImpl())).step() ==
           1);
    DEMAND(wrapper.loss_scaler().get_scale() == 32.0);
    DEMAND(equal_on_all(*joined.data, line.w));
    DEMAND(outcomes == (infinite < 3 ? "su" : "us"));
  }
  joined.data->barrier();
  return 0;
}

const RankCases cases = {
    {"gradients are equal where a group ends", compare_gradients, {"0", "2"}},
    {"ten batches reduce three times", train_ten_batches, {"shm", "gloo"}},
    {"a plugin without no_sync reduces every time to the same weights",
     train_through_a_plugin,
     {"ddp 3", "ddp 3 replayed", "zero1 3", "zero1 10 replayed", "zero2 10", "gemini 10", "fsdp 10"}},
    {"sharded stages step as plain data parallelism does", zero_stages, {""}, {2, 4}},
    {"one rank's overflow costs both exactly that group", overflow_on_one_rank, {"reduced", "own"}}};

}  // namespace

class TestMmengineRanks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }
};

ACCRUE_RANK_TEST_MAIN(TestMmengineRanks, (bodies_of(cases)))

}  // namespace test_mmengine_ranks
#include "test_mmengine_ranks.moc"

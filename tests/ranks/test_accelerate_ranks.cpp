// SPDX-License-Identifier: Apache-2.0
// Accelerate's accumulation on two ranks: the token recipe, what is reduced when, the schedule's compensation for the
// ranks, sharding, and ranks with different numbers of batches, which neither hang nor mix groups.
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <sstream>

#include "support/accelerate_cases.h"
#include "support/joined_rank.h"
#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/refusals.h"

namespace test_accelerate_ranks {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

template <typename T>
std::string joined(const std::vector<T>& values) {
  std::ostringstream text;
  for (std::size_t i = 0; i < values.size(); ++i) text << (i == 0 ? "" : " ") << values[i];
  return text.str();
}

int token_recipe(RankContext& rank) {
  auto axis = join_ranks(rank);
  const Tokens got = run_token_recipe(*axis.data, 16, 4, 2);
  DEMAND(got.items == 136.0);
  DEMAND(near(got.first, 0.2117169063, 5e-11));
  DEMAND(near(got.second, 0.3172398646, 5e-11));
  DEMAND(near(got.loss, 1.7583316437, 5e-11));
  const Tokens eight = run_token_recipe(*axis.data, 8, 4, 1);
  DEMAND(near(eight.first, 0.0952785681, 5e-11));
  DEMAND(near(eight.second, 0.4336782027, 5e-11));
  const Tokens means = run_mean_of_means(*axis.data, 16, 4, 2);
  DEMAND(near(means.first, 0.1621893636, 5e-11));
  DEMAND(near(means.second, 0.3667674073, 5e-11));
  return 0;
}

AcceleratorOptions with_plugin(GradientAccumulationPlugin plugin, bool split = false) {
  AcceleratorOptions options;
  options.gradient_accumulation_plugin = plugin;
  options.split_batches = split;
  return options;
}

int ten_batches(RankContext& rank) {
  auto axis = join_ranks(rank);
  const TenBatches flush = run_ten_batches(with_plugin({.num_steps = 4}), *axis.data, 3);
  DEMAND((flush.reductions == std::vector<int>{4, 8, 10, 14, 18, 20, 24, 28, 30}));
  DEMAND(flush.updates == flush.reductions);
  DEMAND((flush.updates_by == std::vector<std::size_t>{3, 6, 9}));
  DEMAND(flush.schedule.substr(0, 10) == "0002222446");
  DEMAND(near(flush.after_epoch[0], 1.427725625));
  const TenBatches carry = run_ten_batches(with_plugin({.num_steps = 4, .sync_with_dataloader = false}), *axis.data, 3);
  DEMAND((carry.reductions == std::vector<int>{4, 8, 12, 16, 20, 24, 28}));
  DEMAND((carry.updates_by == std::vector<std::size_t>{2, 5, 7}));
  DEMAND(carry.schedule.substr(0, 10) == "0002222444");
  DEMAND(near(carry.after_epoch[0], 0.95475));
  DEMAND(near(carry.left, -94.595125));
  const TenBatches split = run_ten_batches(with_plugin({.num_steps = 4}, true), *axis.data, 1);
  DEMAND(split.schedule == "0001111223");
  DEMAND(near(split.after_epoch[0], 1.427725625));
  for (const double divisor : flush.divisors) DEMAND(near(divisor, 4.0, 1e-9));
  return 0;
}

/// Every micro-step reduces, the other gates stay, the parameters are the same.
int sync_each_batch(RankContext& rank) {
  auto axis = join_ranks(rank);
  const auto run = [&](bool each) {
    TrainedLine t(with_plugin({.num_steps = 4, .sync_each_batch = each}), 0.001, 0.0, axis.data.get());
    auto loader = t.accelerator.prepare(value_loader(20, {.batch_size = 1}));
    std::vector<int> reduced;
    int updates = 0;
    for (const at::Tensor& x : loader) {
      const auto before = t.ddp.reductions();
      updates += t.micro_step(1.0, x) == StepOutcome::updated;
      reduced.push_back(static_cast<int>(t.ddp.reductions() - before));
    }
    return std::tuple(t.model.value(), joined(reduced), updates);
  };
  const auto [w, reductions, updates] = run(false);
  const auto [w_each, reductions_each, updates_each] = run(true);
  DEMAND(reductions == "0 0 0 1 0 0 0 1 0 1");
  DEMAND(reductions_each == "1 1 1 1 1 1 1 1 1 1");
  DEMAND(updates == 3 && updates_each == 3);
  DEMAND(near(w, w_each, 1e-14));
  return 0;
}

/// 80 samples, batches of 16, N = 2: L = 3 a rank.
int gradients_in_sync(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const bool each : {false, true}) {
    TrainedLine t(with_plugin({.num_steps = 2, .sync_each_batch = each}), 0.0, 0.0, axis.data.get());
    auto loader = t.accelerator.prepare(value_loader(80, {.batch_size = 16}));
    DEMAND(loader.length() == 3);
    std::vector<bool> agree;
    for (const at::Tensor& x : loader) {
      const auto scope = t.accelerator.accumulate(t.model);
      t.accelerator.backward(t.model.loss(x));
      agree.push_back(ranks_agree(t.accelerator, t.model.w.grad()));
    }
    DEMAND((agree == (each ? std::vector<bool>{true, true, true} : std::vector<bool>{false, true, true})));
  }
  return 0;
}

int trigger_sync(RankContext& rank) {
  auto axis = join_ranks(rank);
  OriginLine model;
  Accelerator accelerator({}, *axis.data);
  auto& ddp = accelerator.prepare(model);
  std::vector<at::Tensor> losses;
  {
    const auto quiet = accelerator.no_sync(model);
    for (int i = 1; i <= 3; ++i) losses.push_back(model.loss(points({double(i + 3 * rank.rank)})));
  }
  accelerator.backward(losses[0]);
  DEMAND(!ranks_agree(accelerator, model.w.grad()));
  accelerator.backward(losses[1]);
  DEMAND(!ranks_agree(accelerator, model.w.grad()));
  DEMAND(ddp.reductions() == 0);
  {
    const auto scope = accelerator.trigger_sync_in_backward(ddp);
    accelerator.backward(losses[2]);
  }
  DEMAND(ranks_agree(accelerator, model.w.grad()));
  DEMAND(ddp.reductions() == 1);
  // -4 x^2 of x = 1..6, over two ranks
  DEMAND(near(model.gradient(), -4.0 * (1 + 4 + 9 + 16 + 25 + 36) / 2));
  accelerator.backward(model.loss(points({1.0})));  // computed outside: reduces again
  DEMAND(ddp.reductions() == 2);
  return 0;
}

/// lr 1, LambdaLR 1 - n / 10: the rate after one call, and after one more whose update overflowed.
int schedule_compensation(RankContext& rank) {
  auto axis = join_ranks(rank);
  const auto rates = [&](bool split, bool with_optimizer) {
    TrainedLine t({.step_scheduler_with_optimizer = with_optimizer,
                   .split_batches = split,
                   .mixed_precision = MixedPrecision::fp16},
                  1.0, 0.0, axis.data.get());
    auto& scheduler = t.schedule([](auto n) { return 1.0 - double(n) / 10.0; });
    std::vector<double> seen;
    for (const bool overflow : {false, true}) {
      // One rank alone overflows; all of them hold.
      const StepOutcome outcome = t.micro_step(overflow && rank.rank == 1 ? std::nan("") : 1.0);
      DEMAND(outcome == (overflow ? StepOutcome::skipped_overflow : StepOutcome::updated));
      DEMAND(t.accelerator.optimizer_step_was_skipped() == overflow);
      scheduler.step();
      seen.push_back(scheduler.get_last_lr().at(0));
    }
    return joined(seen);
  };
  DEMAND(rates(false, true) == "0.8 0.8");
  DEMAND(rates(true, true) == "0.9 0.9");
  DEMAND(rates(false, false) == "0.9 0.8");
  return 0;
}

/// A linear schedule of 20 ends after 10 N micro-steps on two ranks, and OneCycle's guard stops at its total.
int schedule_lengths(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const int n : {1, 2, 4}) {
    TrainedLine t({.gradient_accumulation_steps = n}, 0.001, 0.0, axis.data.get());
    auto& scheduler = t.schedule([](auto at) { return std::max(0.0, 1.0 - double(at) / 20.0); });
    for (int m = 1; m <= 10 * n; ++m) {
      t.micro_step();
      DEMAND(scheduler.get_last_lr()[0] > 0.0);
      scheduler.step();
    }
    DEMAND(scheduler.get_last_lr()[0] == 0.0);
  }
  for (const bool bump : {false, true}) {
    TrainedLine t({.gradient_accumulation_steps = 2, .replay = {.adjust_scheduler = bump}}, 0.001, 0.0,
                  axis.data.get());
    auto& scheduler = t.schedule([](auto) { return 1.0; }, 2);
    for (int m = 1; m <= 4; ++m) {
      t.micro_step();
      scheduler.step();
      if (m == 2) DEMAND(scheduler.position() == (bump ? 1 : 2));
    }
    DEMAND(scheduler.position() == (bump ? 1 : 2));  // the bump uses the total up: frozen one inner step early
  }
  return 0;
}

struct Shards {
  std::string mine;
  std::int64_t remainder = 0;
  std::vector<std::int64_t> at_end;  ///< batches at which end_of_dataloader was seen, from 0
};

Shards shards(Accelerator& accelerator, std::int64_t samples, LoaderOptions options) {
  auto loader = accelerator.prepare(map_loader(
      samples, [](const std::vector<std::int64_t>& indices) { return indices; }, options));
  Shards seen;
  std::int64_t at = 0;
  for (const auto& batch : loader) {
    seen.mine += "[" + joined(batch) + "]";
    seen.remainder = accelerator.state().remainder();
    if (accelerator.state().end_of_dataloader()) seen.at_end.push_back(at);
    ++at;
  }
  return seen;
}

int sharding(RankContext& rank) {
  auto axis = join_ranks(rank);
  const auto mine = [&](const char* zero, const char* one) { return std::string(rank.rank == 0 ? zero : one); };
  Accelerator even({}, *axis.data);
  DEMAND(shards(even, 21, {.batch_size = 3}).mine ==
         mine("[0 1 2][6 7 8][12 13 14][18 19 20]", "[3 4 5][9 10 11][15 16 17][0 1 2]"));
  const Shards longer = shards(even, 22, {.batch_size = 3});
  DEMAND(longer.mine == mine("[0 1 2][6 7 8][12 13 14][18 19 20]", "[3 4 5][9 10 11][15 16 17][21 0 1]"));
  DEMAND(longer.remainder == 4);
  DEMAND((longer.at_end == std::vector<std::int64_t>{3}));
  DEMAND(shards(even, 22, {.batch_size = 3, .drop_last = true}).mine ==
         mine("[0 1 2][6 7 8][12 13 14]", "[3 4 5][9 10 11][15 16 17]"));
  Accelerator uneven({.even_batches = false}, *axis.data);
  DEMAND(shards(uneven, 21, {.batch_size = 3}).mine ==
         mine("[0 1 2][6 7 8][12 13 14][18 19 20]", "[3 4 5][9 10 11][15 16 17][]"));
  Accelerator split({.split_batches = true}, *axis.data);
  DEMAND(shards(split, 10, {.batch_size = 4}).mine == mine("[0 1][4 5][8 9]", "[2 3][6 7][0 1]"));
  Accelerator split_uneven({.split_batches = true, .even_batches = false}, *axis.data);
  DEMAND(shards(split_uneven, 11, {.batch_size = 4}).mine == mine("[0 1][4 5][8 9]", "[2 3][6 7][10]"));
  DEMAND(contains(refused([&] { (void)shards(split, 10, {.batch_size = 3}); }), "multiple of 2"));
  axis.data->barrier();  // the store goes with rank 0
  return 0;
}

/// One rank's observations in a run over uneven data.
struct UnevenRun {
  int updates = 0;
  int batches = 0;
  double w = 0.0;
  double samples = 0.0;  ///< that all ranks reported in this rank's micro-steps
  std::int64_t calls = 0;
};

enum class Loop { plain, constant_rate, fp16_and_clip };

/// `samples` in batches of 3, N = 2, two epochs, y = 2x with x one sample in ten so that nothing overflows.
UnevenRun run_uneven(Communicator& axis, std::int64_t samples, UnevenRanks uneven, Loop loop = Loop::plain,
                     bool scoped = false) {
  AcceleratorOptions options{.gradient_accumulation_steps = 2, .even_batches = scoped || uneven == UnevenRanks::repeat};
  if (loop == Loop::fp16_and_clip) options.mixed_precision = MixedPrecision::fp16;
  options.grad_scaler.init_scale = 256.0;
  TrainedLine t(options, 0.05, 0.5, &axis);
  const double decay = loop == Loop::constant_rate ? 1.0 : 0.9;
  auto& scheduler = t.schedule([=](auto n) { return std::pow(decay, n); });
  const auto fetch = [](const std::vector<std::int64_t>& indices) {
    std::vector<double> values;
    for (const std::int64_t each : indices) values.push_back(static_cast<double>(each + 1) / 10.0);
    return points(values);
  };
  LoaderOptions shared{.batch_size = 3};
  if (!scoped) shared.uneven_ranks = uneven;
  auto loader = t.accelerator.prepare(map_loader(samples, fetch, shared));
  std::optional<JoinScope> join;
  if (scoped) join.emplace(t.accelerator.join_uneven_inputs(false));
  UnevenRun run;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const at::Tensor& x : loader) {
      ++run.batches;
      const auto scope = t.accelerator.accumulate(t.model);
      t.accelerator.backward(x.numel() > 0 ? t.model.loss(x) : at::Tensor());
      if (loop == Loop::fp16_and_clip && t.accelerator.sync_gradients())
        t.accelerator.clip_grad_norm_({t.model.w}, 0.5);
      t.optimizer.step();
      scheduler.step();
      t.optimizer.zero_grad();
      if (samples > 3) run.samples += t.accelerator.reduce(points({double(x.numel())})).item<double>();
    }
  run.updates = static_cast<int>(scheduler.position() / axis.size());
  run.w = t.model.value();
  run.calls = t.ddp.reductions();
  return run;
}

/// The same run on one rank by hand: batches dealt to two, groups of two rounds, empty ones counting zero.
double by_hand(std::int64_t samples, std::int64_t rounds) {
  double w = 0.0, momentum = 0.0;
  int ticks = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    double gradient = 0.0;
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (std::int64_t part = 0; part < 2; ++part) {
        double sum = 0.0, count = 0.0;
        for (std::int64_t i = (2 * round + part) * 3; i < std::min(samples, (2 * round + part + 1) * 3); ++i) {
          const double x = static_cast<double>(i + 1) / 10.0;
          sum += 2 * x * x * (w - 2);
          count += 1;
        }
        if (count > 0) gradient += sum / count / 2 / 2;
      }
      if (round % 2 == 0 && round + 1 < rounds) continue;
      momentum = 0.5 * momentum + gradient;
      w -= 0.05 * std::pow(0.9, ticks) * momentum;
      ticks += 2;
      gradient = 0.0;
    }
  }
  return w;
}

int uneven_ranks(RankContext& rank) {
  auto axis = join_ranks(rank);
  struct Expected {
    UnevenRanks mode;
    std::int64_t samples;
    int updates;
    int first, second;  ///< batches of each rank, over two epochs
  };
  const std::vector<Expected> all = {
      {UnevenRanks::repeat, 21, 4, 8, 8},
      {UnevenRanks::repeat, 15, 4, 6, 6},
      {UnevenRanks::join, 21, 4, 8, 8},
      {UnevenRanks::join, 15, 4, 6, 6},
      {UnevenRanks::empty_micro_steps, 21, 4, 8, 8},
      {UnevenRanks::empty_micro_steps, 15, 4, 6, 6},
      {UnevenRanks::drop, 21, 4, 6, 6},
      {UnevenRanks::drop, 15, 2, 4, 4},
  };
  for (const Expected& each : all) {
    const UnevenRun run = run_uneven(*axis.data, each.samples, each.mode);
    const at::Tensor mine = points({double(run.updates), run.w, double(run.calls)});
    at::Tensor ranks = at::zeros({2, 3}, at::kDouble);
    axis.data->all_gather(ranks, mine);
    DEMAND(ranks[0].equal(ranks[1]));
    DEMAND(run.updates == each.updates);
    DEMAND(run.calls == each.updates);
    DEMAND(run.batches == (rank.rank == 0 ? each.first : each.second));
    if (rank.rank == 0 && each.mode != UnevenRanks::drop && each.mode != UnevenRanks::repeat)
      DEMAND(run.samples == 2.0 * double(each.samples));
    if (each.mode == UnevenRanks::join || each.mode == UnevenRanks::empty_micro_steps)
      DEMAND(near(run.w, by_hand(each.samples, each.samples == 21 ? 4 : 3)));
  }
  return 0;
}

/// Expected values: accelerate 1.15.0 over torch 2.11.0 (gloo) with the same loop.
int uneven_ranks_of_the_original(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const UnevenRanks mode : {UnevenRanks::join, UnevenRanks::empty_micro_steps})
    DEMAND(near(run_uneven(*axis.data, 21, mode, Loop::constant_rate).w, 1.2973230656228298));
  DEMAND(near(run_uneven(*axis.data, 21, UnevenRanks::repeat, Loop::constant_rate).w, 1.3015830619152684));
  DEMAND(near(run_uneven(*axis.data, 24, UnevenRanks::join, Loop::constant_rate).w, 1.7332985960407024));
  return 0;
}

int joins_with_scaler_and_clip(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const std::int64_t samples : {21, 15}) {
    const UnevenRun joined = run_uneven(*axis.data, samples, UnevenRanks::join, Loop::fp16_and_clip);
    at::Tensor ranks = at::zeros({2, 2}, at::kDouble);
    axis.data->all_gather(ranks, points({double(joined.updates), joined.w}));
    DEMAND(ranks[0].equal(ranks[1]));
    const UnevenRun empty = run_uneven(*axis.data, samples, UnevenRanks::empty_micro_steps, Loop::fp16_and_clip);
    DEMAND(empty.w == joined.w);
    DEMAND(empty.w != run_uneven(*axis.data, samples, UnevenRanks::join).w);
  }
  return 0;
}

/// Three samples: rank 1 has no batch at all.
int rank_without_a_batch(RankContext& rank) {
  auto axis = join_ranks(rank);
  const UnevenRun joined = run_uneven(*axis.data, 3, UnevenRanks::join);
  at::Tensor ranks = at::zeros({2, 2}, at::kDouble);
  axis.data->all_gather(ranks, points({double(joined.updates), joined.w}));
  DEMAND(ranks[0].equal(ranks[1]));
  DEMAND(joined.updates == 2);
  const UnevenRun empty = run_uneven(*axis.data, 3, UnevenRanks::empty_micro_steps, Loop::fp16_and_clip);
  DEMAND(empty.updates == 2);
  DEMAND(run_uneven(*axis.data, 3, UnevenRanks::join, Loop::fp16_and_clip).w == empty.w);
  return 0;
}

int join_scope(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const std::int64_t samples : {21, 15}) {
    const UnevenRun option = run_uneven(*axis.data, samples, UnevenRanks::join);
    const UnevenRun scope = run_uneven(*axis.data, samples, UnevenRanks::repeat, Loop::plain, true);
    DEMAND(scope.w == option.w);
    DEMAND(scope.batches == option.batches);
    DEMAND(scope.updates == option.updates);
  }
  return 0;
}

/// Streams of unknown length: rank 0 has five batches, rank 1 three.
int streams(RankContext& rank) {
  auto axis = join_ranks(rank);
  std::vector<at::Tensor> batches(rank.rank == 0 ? 5 : 3, points({0.5}));
  for (const bool drop : {false, true}) {
    TrainedLine t({.gradient_accumulation_steps = 2}, 0.05, 0.0, axis.data.get());
    auto& scheduler = t.schedule([](auto) { return 1.0; });
    auto source = source_of(batches);
    LoaderOptions options{.already_sharded = true};
    if (drop) options.uneven_ranks = UnevenRanks::drop;
    auto loader = t.accelerator.prepare(source, options);
    int seen = 0;
    for (const at::Tensor& x : loader) {
      ++seen;
      t.micro_step(1.0, x);
      scheduler.step();
    }
    DEMAND(seen == (drop ? 3 : 5));  // rank 1 joins with two empty ones
    DEMAND(scheduler.position() == (drop ? 4 : 6));
    DEMAND(ranks_agree(t.accelerator, t.model.w));
  }
  return 0;
}

bool same_state(const StateDict& a, const StateDict& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.equal(other.second);
  });
}

/// An infinity on one rank at any position: both ranks skip that group alone, and no moment moves.
int overflow_on_one_rank(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (int bad = 1; bad <= 6; ++bad) {
    TrainedLine t({.gradient_accumulation_steps = 3, .mixed_precision = MixedPrecision::fp16}, 0.01, 0.9,
                  axis.data.get());
    auto& scheduler = t.schedule([](auto n) { return std::pow(0.9, n); });
    std::string outcomes;
    for (int m = 1; m <= 9; ++m) {
      const auto before = t.optimizer.state_dict();
      const double w = t.model.value();
      const double factor = m == bad && rank.rank == 1 ? std::numeric_limits<double>::infinity() : 1.0;
      const StepOutcome outcome = t.micro_step(factor, points({1.0 + rank.rank}));
      const bool updated = outcome == StepOutcome::updated;
      DEMAND(same_state(t.optimizer.state_dict(), before) == !updated);
      DEMAND((t.model.value() != w) == updated);
      scheduler.step();
      outcomes += outcome == StepOutcome::accumulated ? '.' : updated ? 'S' : 'x';
    }
    DEMAND(outcomes == (bad <= 3 ? "..x..S..S" : "..S..x..S"));
    DEMAND(scheduler.position() == 4);
    DEMAND(ranks_agree(t.accelerator, t.model.w));
  }
  return 0;
}

int gathers_and_reduces(RankContext& rank) {
  auto axis = join_ranks(rank);
  Accelerator accelerator({}, *axis.data);
  const double mine = rank.rank + 1;
  DEMAND(accelerator.gather(at::full({}, mine, at::kDouble)).equal(points({1.0, 2.0})));
  DEMAND(accelerator.gather(points({mine, 10 * mine})).equal(points({1.0, 10.0, 2.0, 20.0})));
  DEMAND(accelerator.reduce(points({mine}), Reduction::sum).equal(points({3.0})));
  DEMAND(accelerator.reduce(points({mine}), Reduction::mean).equal(points({1.5})));
  DEMAND(accelerator.reduce(points({mine}), Reduction::none).equal(points({mine})));
  auto loader = accelerator.prepare(value_loader(22, {.batch_size = 3}));
  double sum = 0.0;
  for (const at::Tensor& x : loader) sum += accelerator.gather_for_metrics(x).sum().item<double>();
  DEMAND(sum == 22.0 * 23.0 / 2.0);  // each sample once
  return 0;
}

/// Saved inside a group with its gradients and loader: the rest of the run is the uninterrupted one's, bit for bit.
int resumes_inside_a_group(RankContext& rank) {
  auto axis = join_ranks(rank);
  const std::string folder = rank.arguments.at(0);
  const auto run = [&](int stop_after, bool resume) {
    TrainedLine t({.gradient_accumulation_steps = 3}, 0.01, 0.9, axis.data.get());
    auto& scheduler = t.schedule([](auto n) { return std::pow(0.9, n); });
    auto loader = t.accelerator.prepare(value_loader(20, {.batch_size = 2, .shuffle = true}));
    if (resume) DEMAND(t.accelerator.load_state(folder));
    int m = 0;
    for (std::int64_t epoch = loader.epoch(); epoch < 2; ++epoch)
      for (const at::Tensor& x : loader) {
        t.micro_step(1.0, x / 10.0);
        scheduler.step();
        if (++m != stop_after) continue;
        DEMAND(t.accelerator.save_state(folder, {.gradients = true, .loaders = true}));
        return fingerprint(t.model.w);
      }
    return fingerprint(t.model.w);
  };
  const std::string uninterrupted = run(0, false);
  for (int stop = 1; stop <= 9; ++stop) {
    run(stop, false);
    DEMAND(run(0, true) == uninterrupted);
  }
  return 0;
}

/// N is changed at run time: on both ranks, or on rank 1 alone.
int steps_set_later(RankContext& rank) {
  auto axis = join_ranks(rank);
  const bool both = rank.arguments.at(0) == "both";
  TrainedLine t(with_plugin({.num_steps = 2}), 0.001, 0.0, axis.data.get());
  int updates = 0;
  const std::string error = error_of([&] {
    for (int m = 0; m < 10; ++m) {
      if (m == 4 && (both || rank.rank == 1)) t.accelerator.set_gradient_accumulation_steps(3);
      updates += t.micro_step(1.0, points({1.0})) == StepOutcome::updated;
    }
  });
  if (both)
    DEMAND(error.empty() && updates == 4);
  else
    DEMAND(contains(error, "the ranks call different collectives"));
  return 0;
}

const RankCases cases = {{"the token recipe divides by the tokens of all ranks", token_recipe},
                         {"ten batches reduce at 4, 8, 10 and move the schedule once per rank", ten_batches},
                         {"syncing each batch changes communication only", sync_each_batch},
                         {"gradients agree on boundaries or always", gradients_in_sync},
                         {"a triggered backward reduces what forwards under no_sync left", trigger_sync},
                         {"the schedule compensates for ranks and holds on overflow", schedule_compensation},
                         {"schedules end with the run and stop at their total", schedule_lengths},
                         {"batches are dealt to ranks as the original deals them", sharding},
                         {"uneven ranks end with the same updates", uneven_ranks},
                         {"uneven ranks end at the original's weights", uneven_ranks_of_the_original},
                         {"a joined rank clips and scales as the others do", joins_with_scaler_and_clip},
                         {"a rank that never has a batch trains with the others", rank_without_a_batch},
                         {"join_uneven_inputs works on a CPU", join_scope},
                         {"streams of unknown length end together", streams},
                         {"an overflow on one rank discards the group on both", overflow_on_one_rank},
                         {"gather and reduce over ranks", gathers_and_reduces},
                         {"another N of all ranks takes effect, of one is said", steps_set_later, {"both", "one"}}};

}  // namespace

class TestAccelerateRanks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }
  void a_run_saved_inside_a_window_goes_on_bit_for_bit() {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    ACCRUE_ALL_RANKS_OK(RankGroup("resumes", 2, {.arguments = {path}}).finish(60s));
  }
};

ACCRUE_RANK_TEST_MAIN(TestAccelerateRanks, (bodies_of(cases, {{"resumes", resumes_inside_a_group}})))

}  // namespace test_accelerate_ranks
#include "test_accelerate_ranks.moc"

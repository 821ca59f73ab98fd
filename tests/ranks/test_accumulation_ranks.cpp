// SPDX-License-Identifier: Apache-2.0
// llm's and Colossal-AI's accumulation on 2 and 4 ranks: one reduction a group, by reducer or by handlers, the weights
// that one process gets on all samples, and the same decision on every rank.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <limits>

#include "accrue/accumulation/colossalai.h"
#include "accrue/accumulation/llm.h"
#include "accrue/accumulation/llm_amp.h"
#include "accrue/accumulation/mmengine/colossalai_optim_wrapper.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/rank_net.h"
#include "support/refusals.h"
#include "support/ten_batches.h"

namespace test_accumulation_ranks {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

constexpr int steps_per_update = 4;

/// Returns x of rank `rank` in batch b.
double sample(double b, std::int64_t rank) {
  return b * (1.0 + 0.5 * static_cast<double>(rank));
}

/// The gradient of a group at weight w: mean over ranks, sum over batches, divided by N.
double group_gradient(double w, int first, std::int64_t world) {
  double sum = 0.0;
  for (std::int64_t rank = 0; rank < world; ++rank)
    for (int b = first; b < first + steps_per_update; ++b) sum += 2.0 * std::pow(sample(b, rank), 2) * (w - 2.0);
  return sum / steps_per_update / static_cast<double>(world);
}

double rate_of(std::int64_t position) {
  return 1e-3 * std::pow(0.9, static_cast<double>(position));
}

/// The weight that one process has after the two groups of an epoch.
double weight_of_one_process(std::int64_t world) {
  double w = 0.0;
  w -= rate_of(0) * group_gradient(w, 1, world);
  w -= rate_of(1) * group_gradient(w, 5, world);
  return w;
}

void demand_near(double value, double expected) {
  if (!near(value, expected))
    throw std::runtime_error(std::to_string(value) + " instead of " + std::to_string(expected));
}

struct Rank {
  explicit Rank(const RankContext& context)
      : joined(join_ranks(context)),
        axis(*joined.data),
        sgd({line.w}, torch::optim::SGDOptions(1e-3)),
        decay(std::make_shared<LambdaLR>(sgd, [](std::int64_t n) { return std::pow(0.9, static_cast<double>(n)); })),
        way(context.arguments.empty() ? "" : context.arguments[0]) {}

  at::Tensor loss(double b) const { return line.loss(sample(b, axis.rank())); }

  JoinedRank joined;
  Communicator& axis;
  Line line;
  torch::optim::SGD sgd;
  std::shared_ptr<LambdaLR> decay;
  std::string way;  ///< the first argument
};

/// arguments: "intended" or "actual", "plain" or "mixed", launch.
int llm_over_the_reducer(RankContext& context) {
  Rank rank(context);
  const bool actual = rank.way == "actual", mixed = context.arguments.at(1) == "mixed";
  DistributedDataParallel ddp(rank.line, rank.axis, {.launch = launch_named(context.arguments.at(2))});
  llm::AMPOptimizer amp(rank.line, rank.sgd, GradScaler({.init_scale = 64.0, .enabled = mixed}, &rank.axis));
  const Replays replay = actual ? Replays{Replay::narrow_no_sync} : Replays{};
  auto [optimizer, scheduler] = llm::initialize(&ddp, amp, rank.decay, steps_per_update, replay);
  const TrafficCounters before = rank.axis.traffic();
  std::string updates, positions;
  for (const int b : ten_batches()) {
    optimizer->zero_grad();
    optimizer->backward(rank.loss(b));
    if (optimizer->step() == StepOutcome::updated) updates += std::to_string(b);
    scheduler->step();
    positions += std::to_string(rank.decay->position());
  }
  const std::int64_t reductions = actual ? 10 : 2;
  DEMAND(updates == "48");
  DEMAND(positions == "0001111222");
  DEMAND(ddp.reductions() == reductions);
  const TrafficCounters& after = rank.axis.traffic();
  DEMAND(after.gradient_calls - before.gradient_calls == reductions);
  // One more than that: before the first reduction the ranks agree on N.
  DEMAND(after.calls - before.calls == reductions + (mixed ? 2 : 0) + 1);
  demand_near(rank.line.weight(), weight_of_one_process(rank.axis.size()));
  context.report(fingerprint(rank.line.w));
  return 0;
}

/// A rank after accumulate_gradient() over ten batches. `way`: "reducer", "actual" (the reducer with the
/// original's no_sync) or "handlers".
struct ColossalaiRank : Rank {
  explicit ColossalaiRank(const RankContext& context) : Rank(context) {
    if (way != "handlers")
      ddp.emplace(line, axis);
    else
      handlers.push_back(
          std::make_shared<colossalai::DataParallelGradientHandler>(std::vector<at::Tensor>{line.w}, axis));
    made = colossalai::accumulate_gradient(ddp ? &*ddp : nullptr, sgd, source, steps_per_update, handlers, decay,
                                           way == "actual" ? Replays{Replay::narrow_no_sync} : Replays{});
  }
  std::optional<DistributedDataParallel> ddp;
  colossalai::GradientHandlers handlers;
  std::vector<int> batches = ten_batches();
  RangeSource<std::vector<int>> source{batches, 10};
  colossalai::Accumulated<int> made;
};

int colossalai_epoch(RankContext& context) {
  ColossalaiRank rank(context);
  auto& made = rank.made;
  colossalai::Engine engine(made.optimizer, made.gradient_handlers);
  const TrafficCounters before = rank.axis.traffic();
  std::string reduced_at, positions;
  for (const int b : *made.dataloader) {
    const std::int64_t calls = rank.axis.traffic().gradient_calls;
    engine.zero_grad();
    engine.backward(rank.loss(b));
    DEMAND((engine.step() == StepOutcome::updated) == (b % steps_per_update == 0));
    made.lr_scheduler->step();
    positions += std::to_string(rank.decay->position());
    if (rank.axis.traffic().gradient_calls > calls) reduced_at += std::to_string(b);
  }
  DEMAND(positions == "00011112");
  DEMAND(reduced_at == (rank.way == "actual" ? "12345678" : "48"));
  const TrafficCounters& after = rank.axis.traffic();
  if (rank.way == "handlers") DEMAND(after.calls - before.calls == 2 * (after.gradient_calls - before.gradient_calls));
  demand_near(rank.line.weight(), weight_of_one_process(rank.axis.size()));
  context.report(fingerprint(rank.line.w));
  return 0;
}

/// N = 4, clip 1.0.
int clipped_update(RankContext& context) {
  ColossalaiRank rank(context);
  auto& made = rank.made;
  colossalai::Engine engine(made.optimizer, made.gradient_handlers, 1.0);
  double first_gradient = 0.0;
  int m = 0;
  for (const int b : *made.dataloader) {
    engine.zero_grad();
    engine.backward(rank.loss(b));
    engine.step();
    if (++m == 1) first_gradient = rank.line.gradient();
    if (m < 4) DEMAND(rank.line.weight() == 0.0);
    if (m == 4) break;
  }
  DEMAND(rank.line.weight() != 0.0);
  DEMAND(rank.line.gradient() != first_gradient);
  const double gradient = group_gradient(0.0, 1, rank.axis.size());
  demand_near(rank.line.gradient(), gradient / (std::abs(gradient) + 1e-6));
  demand_near(rank.line.weight(), -rate_of(0) * gradient / (std::abs(gradient) + 1e-6));
  context.report(fingerprint(rank.line.w));
  return 0;
}

/// A parameter of `numel` elements whose gradient is `value`, or none.
at::Tensor parameter(std::int64_t numel, std::optional<double> value, at::ScalarType dtype) {
  at::Tensor made = at::ones({numel}, dtype).requires_grad_();
  if (value) made.mutable_grad() = at::full({numel}, *value, dtype);
  return made;
}

bool gradient_is(const at::Tensor& of, double value) {
  return of.grad().defined() && (of.grad() == value).all().item<bool>();
}

int handlers_average_by_hand(RankContext& context) {
  const auto joined = join_ranks(context);
  Communicator& axis = *joined.data;
  const double mine = static_cast<double>(axis.rank()) + 1.0;  // 1 and 2: mean 1.5
  for (const bool sequence : {false, true}) {
    const at::Tensor single = parameter(3, mine, at::kFloat), wide = parameter(2, 10.0 * mine, at::kDouble);
    const at::Tensor second = parameter(4, -mine, at::kFloat), nobody = parameter(5, std::nullopt, at::kFloat);
    const at::Tensor one_rank =
        parameter(2, axis.rank() == 0 ? std::optional(4.0) : std::nullopt, at::kFloat);  // counts as zero elsewhere
    const std::vector<at::Tensor> all{single, wide, second, nobody, one_rank};
    const TrafficCounters before = axis.traffic();
    if (sequence)
      colossalai::SequenceParallelGradientHandler(all, axis).handle_gradient();
    else
      colossalai::DataParallelGradientHandler(all, axis).handle_gradient();
    DEMAND(gradient_is(single, 1.5));
    DEMAND(gradient_is(wide, 15.0));
    DEMAND(gradient_is(second, -1.5));
    DEMAND(gradient_is(one_rank, 2.0));
    DEMAND(!nobody.grad().defined());
    const TrafficCounters& after = axis.traffic();
    DEMAND(after.gradient_calls - before.gradient_calls == 2);  // one buffer per dtype
    DEMAND(after.gradient_bytes - before.gradient_bytes == (3 + 4 + 2) * 4 + 2 * 8);
  }
  const at::Tensor shared = parameter(3, mine, at::kDouble);
  colossalai::PipelineSharedModuleGradientHandler({shared}, axis).handle_gradient();
  DEMAND(gradient_is(shared, 3.0));  // the plain sum
  return 0;
}

int experts_average_over_their_own_ranks(RankContext& context) {
  const auto joined = join_ranks(context);
  const RankGrid grid{.data = 2, .pipeline = 2};  // ranks 0, 1 hold one expert, ranks 2, 3 the other
  const auto pair = taken(joined.rendezvous->communicator(grid, Axis::data));
  DEMAND(pair->size() == 2);
  const double mine = static_cast<double>(context.rank);
  const at::Tensor replicated = parameter(3, mine, at::kDouble), expert = parameter(2, mine, at::kDouble);
  colossalai::MoeGradientHandler handler({replicated}, *joined.data, {{{expert}, pair.get()}});
  handler.handle_gradient();
  DEMAND(gradient_is(replicated, 1.5));
  DEMAND(gradient_is(expert, context.rank < 2 ? 0.5 : 2.5));
  return 0;
}

/// arguments: the micro-step of the second group whose loss overflows on the last rank.
int overflow_on_one_rank(RankContext& context) {
  Rank rank(context);
  const int bad = 5 + std::stoi(rank.way);
  DistributedDataParallel ddp(rank.line, rank.axis);
  const auto amp =
      std::make_shared<llm::AMPOptimizer>(rank.line, rank.sgd, GradScaler({.init_scale = 64.0}, &rank.axis));
  auto [optimizer, scheduler] = llm::initialize(&ddp, amp, rank.decay, steps_per_update);
  std::vector<StepOutcome> outcomes;
  for (int b = 1; b <= 12; ++b) {
    optimizer->zero_grad();
    const bool overflows = b == bad && rank.axis.rank() + 1 == rank.axis.size();
    const at::Tensor loss = rank.loss(b);
    optimizer->backward(overflows ? loss * std::numeric_limits<double>::infinity() : loss);
    const StepOutcome outcome = optimizer->step();
    scheduler->step();
    if (b % steps_per_update == 0) outcomes.push_back(outcome);
  }
  DEMAND((outcomes ==
          std::vector<StepOutcome>{StepOutcome::updated, StepOutcome::skipped_overflow, StepOutcome::updated}));
  DEMAND(amp->scaler().get_scale() == 32.0);
  DEMAND(rank.decay->position() == 3);  // advances over the skipped group
  double w = -rate_of(0) * group_gradient(0.0, 1, rank.axis.size());
  w -= rate_of(2) * group_gradient(w, 9, rank.axis.size());
  demand_near(rank.line.weight(), w);
  context.report(fingerprint(rank.line.w));
  return 0;
}

/// Twelve micro-steps of a loop that its optimizer alone drives.
void train(const Line& line, BaseOptimizer& optimizer) {
  for (int m = 0; m < 12; ++m) {
    optimizer.zero_grad();
    optimizer.backward(line.loss(1.0));
    optimizer.step();
  }
}

/// One system's loop, by its name, in which rank 1 has another N or another length than rank 0 where `apart` says so.
/// The ranks' first reductions meet, whatever micro-step they are in.
void train_apart(const std::string& system, const std::string& apart, const RankContext& rank) {
  const auto joined = join_ranks(rank);
  Line line;
  DistributedDataParallel ddp(line, *joined.data);
  torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1));
  const bool other = rank.rank == 1;
  const std::int64_t steps = other && apart == "steps" ? 3 : 2;
  if (system == "llm") {
    llm::GradientAccumulationOptimizer optimizer(sgd, &ddp, steps);
    train(line, optimizer);
  } else if (system == "colossalai") {
    const std::size_t batches = !other ? 8 : apart == "length" ? 10 : apart == "tail" ? 9 : 8;
    std::vector<int> values(batches, 1);
    RangeSource<std::vector<int>> source(values, static_cast<std::int64_t>(batches));
    auto made = colossalai::accumulate_gradient(&ddp, sgd, source, steps);
    train(line, *made.optimizer);
  } else {
    const auto wrapper = system == "mmengine"
                             ? std::make_shared<mmengine::OptimWrapper>(
                                   sgd, mmengine::OptimWrapperOptions{.accumulative_counts = steps, .sync = &ddp})
                             : std::make_shared<mmengine::ColossalAIOptimWrapper>(
                                   sgd, mmengine::make_booster(mmengine::torch_ddp_plugin(), ddp), steps);
    wrapper->initialize_count_status(line, 0, other && apart == "length" ? 7 : 12);
    for (std::int64_t m = 0; m < wrapper->max_counts(); ++m) {
      // A resume of rank 1 alone, between two windows.
      if (m == 4 && other && apart == "later") wrapper->initialize_count_status(line, 4, 7);
      mmengine::train_step(*wrapper, line, [&] { return line.loss(1.0); });
    }
  }
}

/// arguments: the system, and what differs.
int ranks_apart(RankContext& rank) {
  const std::string system = rank.arguments.at(0), apart = rank.arguments.at(1);
  const std::string error = error_of([&] { train_apart(system, apart, rank); });
  const std::string expected = apart == "steps"         ? "is 2 on rank 0 of the axis and 3 on rank 1"
                               : apart == "later"       ? "the ranks call different collectives"
                               : system == "colossalai" ? "is 8 on rank 0 of the axis and 10 on rank 1"
                                                        : "is 12 on rank 0 of the axis and 7 on rank 1";
  if (apart == "tail")
    DEMAND(error.empty());
  else if (!contains(error, expected))
    throw std::runtime_error("instead of " + expected + ": " + error);
  return 0;
}

const RankCases cases = {
    {"another N or length on one rank is said at the next reduction",
     ranks_apart,
     {"llm steps", "colossalai steps", "colossalai length", "mmengine steps", "mmengine length", "mmengine later",
      "booster steps", "booster length", "booster later"}},
    {"tails of other lengths, which are dropped, change nothing", ranks_apart, {"colossalai tail"}},
    {"llm reduces where it means to, or as the original does",
     llm_over_the_reducer,
     {"intended plain at_finish", "intended plain when_ready", "intended mixed at_finish", "actual plain at_finish"}},
    {"Colossal-AI reduces where it means to, or as the original does",
     colossalai_epoch,
     {"reducer", "handlers", "actual"}},
    {"ranks move at the fourth micro-step by a clipped gradient", clipped_update, {"reducer", "handlers"}, {4}},
    {"handlers give the mean, and shared modules the sum", handlers_average_by_hand},
    {"experts are averaged over the ranks that hold them", experts_average_over_their_own_ranks, {""}, {4}},
    {"an overflow on one rank skips the group on all", overflow_on_one_rank, {"0", "1", "2", "3"}}};

}  // namespace

class TestAccumulationRanks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }
};

ACCRUE_RANK_TEST_MAIN(TestAccumulationRanks, (bodies_of(cases)))

}  // namespace test_accumulation_ranks
#include "test_accumulation_ranks.moc"

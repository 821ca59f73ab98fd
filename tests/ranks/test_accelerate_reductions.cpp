// SPDX-License-Identifier: Apache-2.0
// Reductions of Accelerate's facade on two ranks, in loops with more than one backward per group: plain ones, ones that
// do not reach every model, several optimizers, and ranks without a batch.
#include <c10/util/Exception.h>
#include <torch/nn/utils/clip_grad.h>
#include <QTest>

#include "support/accelerate_cases.h"
#include "support/joined_rank.h"
#include "support/rank_cases.h"
#include "support/rank_checks.h"

namespace test_accelerate_reductions {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// Clipping in a loop.
enum class Clip { none, accelerators, own };

/// Rank r trains x = 1 + r, 2 + r, ... in groups of two; a plain backward gives what the Accelerator's does.
int plain_backward(RankContext& rank) {
  auto axis = join_ranks(rank);
  const auto run = [&](bool plain, Clip clip) {
    TrainedLine t({.gradient_accumulation_steps = 2}, 0.01, 0.9, axis.data.get());
    for (int m = 1; m <= 6; ++m) {
      const auto scope = t.accelerator.accumulate(t.model);
      const at::Tensor loss = t.model.loss(points({double(m + rank.rank)}));
      plain ? (loss / 2).backward() : t.accelerator.backward(loss);
      if (t.accelerator.sync_gradients() && clip == Clip::accelerators) t.accelerator.clip_grad_norm_({t.model.w}, 5.0);
      if (t.accelerator.sync_gradients() && clip == Clip::own) torch::nn::utils::clip_grad_norm_({t.model.w}, 5.0);
      t.optimizer.step();
      t.optimizer.zero_grad();
    }
    DEMAND(ranks_agree(t.accelerator, t.model.w));
    DEMAND(t.ddp.reductions() == 3);
    DEMAND(t.model.value() != 0.0);
    return t.model.value();
  };
  for (const Clip clip : {Clip::none, Clip::accelerators}) DEMAND(near(run(false, clip), run(true, clip)));
  run(false, Clip::own);
  return 0;
}

/// A backward under the caller's own no_sync() stays local until one outside of it takes its sum along.
int plain_backward_under_no_sync(RankContext& rank) {
  auto axis = join_ranks(rank);
  TrainedLine t({}, 0.01, 0.0, axis.data.get());
  {
    const auto quiet = t.accelerator.no_sync(t.model);
    t.model.loss(points({1.0 + rank.rank})).backward();
  }
  t.accelerator.clip_grad_value_({t.model.w}, 1e9);
  DEMAND(t.ddp.reductions() == 0);
  DEMAND(!ranks_agree(t.accelerator, t.model.w.grad()));
  t.model.loss(points({1.0 + rank.rank})).backward();
  t.optimizer.step();
  DEMAND(t.ddp.reductions() == 1);
  DEMAND(near(t.model.value(), 0.01 * 2 * (4 + 16) / 2.0));
  return 0;
}

/// The boundary's backward reaches a alone; b's gradients are of the micro-step before.
int model_that_the_boundary_does_not_reach(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const bool one_optimizer : {false, true}) {
    OriginLine a, b;
    std::vector<at::Tensor> both = {a.w, b.w};
    torch::optim::SGD sgd_a(one_optimizer ? both : a.parameters(), torch::optim::SGDOptions(0.01));
    torch::optim::SGD sgd_b(b.parameters(), torch::optim::SGDOptions(0.01));
    Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis.data);
    auto& ddp_a = accelerator.prepare(a);
    auto& ddp_b = accelerator.prepare(b);
    std::vector<AcceleratedOptimizer*> optimizers = {&accelerator.prepare(sgd_a)};
    if (!one_optimizer) optimizers.push_back(&accelerator.prepare(sgd_b));
    for (int m = 1; m <= 4; ++m) {
      const auto scope = accelerator.accumulate(a, b);
      const at::Tensor x = points({1.0 + rank.rank});
      accelerator.backward(m % 2 == 1 ? a.loss(x) + b.loss(x) : a.loss(x));
      for (auto* each : optimizers) each->step();
      for (auto* each : optimizers) each->zero_grad();
    }
    DEMAND(ranks_agree(accelerator, a.w) && ranks_agree(accelerator, b.w));
    DEMAND(ddp_a.reductions() == 2 && ddp_b.reductions() == 2);
    double w = 0.0;
    for (int update = 0; update < 2; ++update) w -= 0.01 * 2 * (w - 2) * (1 + 4) / 2.0 / 2.0;
    DEMAND(near(b.value(), w));
  }
  return 0;
}

/// a steps, then b, both every boundary: each backward of a boundary reduces what it reaches, and no more.
/// Also where rank 1 has no sample in the last boundary of an epoch, and so no backward that could reach anything.
int several_backwards_in_a_boundary(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const std::int64_t samples : {16, 15}) {
    TwoLines t({.gradient_accumulation_steps = 2}, 0.001, 0.0, axis.data.get());
    auto loader = t.accelerator.prepare(value_loader(samples, {.uneven_ranks = UnevenRanks::join}));
    for (const at::Tensor& values : loader) {
      const auto scope = t.accelerator.accumulate(t.a, t.b);
      const at::Tensor x = values / 10.0;
      t.accelerator.backward(t.a.loss(x));
      t.step_a.step();
      t.step_a.zero_grad();
      t.accelerator.backward(t.b.loss(x));
      t.step_b.step();
      t.step_b.zero_grad();
    }
    DEMAND(t.ddp_a.reductions() == 4 && t.ddp_b.reductions() == 4);
    DEMAND(ranks_agree(t.accelerator, t.a.w) && ranks_agree(t.accelerator, t.b.w));
    DEMAND(t.a.value() == t.b.value());
  }
  return 0;
}

/// Uneven data, plain backward: a rank without samples makes the reductions that the others make.
int uneven_ranks_with_a_plain_backward(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const UnevenRanks uneven : {UnevenRanks::join, UnevenRanks::empty_micro_steps}) {
    for (const std::int64_t samples : {21, 15, 27}) {
      const auto run = [&](bool plain) {
        OriginLine model, other;
        torch::optim::SGD sgd({model.w, other.w}, torch::optim::SGDOptions(0.001));
        Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis.data);
        auto& ddp = accelerator.prepare(model);
        accelerator.prepare(other);
        auto& optimizer = accelerator.prepare(sgd);
        auto loader = accelerator.prepare(value_loader(samples, {.batch_size = 3, .uneven_ranks = uneven}));
        for (int epoch = 0; epoch < 2; ++epoch) {
          for (const at::Tensor& x : loader) {
            const auto scope = accelerator.accumulate(model, other);
            if (x.numel() > 0) {
              const at::Tensor loss = accelerator.sync_gradients() ? model.loss(x) : model.loss(x) + other.loss(x);
              plain ? (loss / 2).backward() : accelerator.backward(loss);
            } else if (!plain) {
              accelerator.backward({});
            }
            optimizer.step();
            optimizer.zero_grad();
          }
        }
        DEMAND(ranks_agree(accelerator, model.w) && ranks_agree(accelerator, other.w));
        DEMAND(ddp.reductions() > 0);
        return model.value();
      };
      DEMAND(near(run(false), run(true)));
    }
  }
  return 0;
}

/// b was never prepared: its gradients stay each rank's own, which is said once and on several ranks alone.
int model_that_was_not_prepared(RankContext& rank) {
  auto axis = join_ranks(rank);
  const auto alone = single_communicator();
  struct : c10::WarningHandler {
    void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
    std::vector<std::string> texts;
  } noted;
  const c10::WarningUtils::WarningHandlerGuard guard(&noted);
  for (const bool several : {false, true}) {
    OriginLine a, b, unused, added;
    torch::optim::SGD sgd({a.w, b.w, unused.w}, torch::optim::SGDOptions(0.01));
    Accelerator accelerator({.gradient_accumulation_steps = 2}, several ? *axis.data : *alone);
    accelerator.prepare(a);
    auto& optimizer = accelerator.prepare(sgd);
    for (int m = 1; m <= 4; ++m) {
      const auto scope = accelerator.accumulate(a);
      const at::Tensor x = points({1.0 + rank.rank});
      ((a.loss(x) + b.loss(x)) / 2).backward();
      optimizer.step();
      optimizer.zero_grad();
      DEMAND(noted.texts.size() == (several && m > 1 ? 1 : 0));
    }
    if (!several) continue;
    DEMAND(noted.texts[0].find("no prepared model holds 1 of the parameters") != std::string::npos);
    DEMAND(ranks_agree(accelerator, a.w) && !ranks_agree(accelerator, b.w));
    accelerator.prepare(b);  // later than its optimizer, which finds it
    sgd.add_param_group(torch::optim::OptimizerParamGroup({added.w}));
    accelerator.prepare(added);
    for (int m = 1; m <= 2; ++m) {
      const auto scope = accelerator.accumulate(a, b, added);
      const at::Tensor x = points({1.0 + rank.rank});
      ((a.loss(x) + b.loss(x) + added.loss(x)) / 2).backward();
      optimizer.step();
    }
    DEMAND(ranks_agree(accelerator, b.w.grad()) && ranks_agree(accelerator, added.w));
    DEMAND(noted.texts.size() == 1);
  }
  return 0;
}

const RankCases cases = {
    {"a plain backward reduces once an update", plain_backward},
    {"a plain backward under no_sync stays local", plain_backward_under_no_sync},
    {"a model that the boundary does not reach is reduced before its update", model_that_the_boundary_does_not_reach},
    {"several backwards in a boundary reduce no more than they reach", several_backwards_in_a_boundary},
    {"gradients that no prepared model reduces are warned of once", model_that_was_not_prepared},
    {"uneven ranks reduce alike with a plain backward", uneven_ranks_with_a_plain_backward}};

}  // namespace

class TestAccelerateReductions : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }
};

ACCRUE_RANK_TEST_MAIN(TestAccelerateReductions, (bodies_of(cases)))

}  // namespace test_accelerate_reductions
#include "test_accelerate_reductions.moc"

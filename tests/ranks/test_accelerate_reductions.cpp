// SPDX-License-Identifier: Apache-2.0
// What Accelerate's facade reduces and how often, on two ranks, where a loop does more than one backward a group: plain
// ones, ones that do not reach every model, several optimizers, and ranks without a batch.
#include <torch/nn/utils/clip_grad.h>
#include <QtTest/QTest>

#include "support/accelerate_cases.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"

namespace test_accelerate_reductions {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// How a loop clips.
enum class Clip { none, accelerators, own };

/// Rank r trains x = 1 + r, 2 + r, ... in groups of two.
int plain_backward(RankContext& rank) {
  auto axis = join_ranks(rank);
  const auto run = [&](bool plain, Clip clip) {
    Line model;
    torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis.data);
    auto& ddp = accelerator.prepare(model);
    auto& optimizer = accelerator.prepare(sgd);
    for (int m = 1; m <= 6; ++m) {
      const auto scope = accelerator.accumulate(model);
      const at::Tensor loss = model.loss(points({double(m + rank.rank)}));
      plain ? (loss / 2).backward() : accelerator.backward(loss);
      if (accelerator.sync_gradients() && clip == Clip::accelerators) accelerator.clip_grad_norm_({model.w}, 5.0);
      if (accelerator.sync_gradients() && clip == Clip::own) torch::nn::utils::clip_grad_norm_({model.w}, 5.0);
      optimizer.step();
      optimizer.zero_grad();
    }
    DEMAND(ranks_agree(accelerator, model.w));
    DEMAND(ddp.reductions() == 3);
    rank.report(std::to_string(model.value()));
    return model.value() == 0.0 ? 1 : 0;
  };
  for (const Clip clip : {Clip::none, Clip::accelerators, Clip::own}) {
    DEMAND(run(false, clip) == 0);
    if (clip != Clip::own) DEMAND(run(true, clip) == 0);
  }
  return 0;
}

/// A backward under the caller's own no_sync() stays local until one outside of it takes its sum along.
int plain_backward_under_no_sync(RankContext& rank) {
  auto axis = join_ranks(rank);
  Line model;
  torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.01));
  Accelerator accelerator({}, *axis.data);
  auto& ddp = accelerator.prepare(model);
  auto& optimizer = accelerator.prepare(sgd);
  {
    const auto quiet = accelerator.no_sync(model);
    model.loss(points({1.0 + rank.rank})).backward();
  }
  accelerator.clip_grad_value_({model.w}, 1e9);
  DEMAND(ddp.reductions() == 0);
  DEMAND(!ranks_agree(accelerator, model.w.grad()));
  model.loss(points({1.0 + rank.rank})).backward();
  optimizer.step();
  DEMAND(ddp.reductions() == 1);
  DEMAND(near(model.value(), 0.01 * 2 * (4 + 16) / 2.0));
  return 0;
}

/// The boundary's backward reaches a alone; b's gradients are of the micro-step before.
int model_that_the_boundary_does_not_reach(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const bool one_optimizer : {false, true}) {
    Line a, b;
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

/// D steps, then G through D, both every boundary: each backward of a boundary reduces what it reaches, and no more.
/// Also where rank 1 has no sample in the last boundary of an epoch, and so no backward that could reach anything.
int several_backwards_in_a_boundary(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const std::int64_t samples : {16, 15}) {
    Line g, d;
    torch::optim::SGD sgd_g(g.parameters(), torch::optim::SGDOptions(0.001));
    torch::optim::SGD sgd_d(d.parameters(), torch::optim::SGDOptions(0.001));
    Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis.data);
    auto& ddp_g = accelerator.prepare(g);
    auto& ddp_d = accelerator.prepare(d);
    auto& step_g = accelerator.prepare(sgd_g);
    auto& step_d = accelerator.prepare(sgd_d);
    auto loader = accelerator.prepare(value_loader(samples, {.uneven_ranks = UnevenRanks::join}));
    for (const at::Tensor& values : loader) {
      const auto scope = accelerator.accumulate(g, d);
      const at::Tensor x = values / 10.0;
      accelerator.backward(d.loss(x));
      step_d.step();
      step_d.zero_grad();
      accelerator.backward(g.loss(x));
      step_g.step();
      step_g.zero_grad();
    }
    DEMAND(ddp_d.reductions() == 4 && ddp_g.reductions() == 4);
    DEMAND(ranks_agree(accelerator, g.w) && ranks_agree(accelerator, d.w));
    DEMAND(g.value() == d.value());
  }
  return 0;
}

/// Uneven data, plain backward: a rank without samples makes the reductions that the others make.
int uneven_ranks_with_a_plain_backward(RankContext& rank) {
  auto axis = join_ranks(rank);
  for (const UnevenRanks uneven : {UnevenRanks::join, UnevenRanks::empty_micro_steps}) {
    for (const std::int64_t samples : {21, 15, 27}) {
      const auto run = [&](bool plain) {
        Line model, other;
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
        rank.report(std::to_string(samples) + " " + std::to_string(model.value()));
        return 0;
      };
      DEMAND(run(false) == 0);
      DEMAND(run(true) == 0);
    }
  }
  return 0;
}

/// Each line of a report twice: the run with the Accelerator's backward, and the one with a plain one.
void pairs_are_equal(const std::vector<std::string>& lines) {
  QVERIFY(lines.size() >= 2);
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) QCOMPARE(lines[i], lines[i + 1]);
}

}  // namespace

class TestAccelerateReductions : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_plain_backward_reduces_once_an_update() {
    const auto outcomes = RankGroup("plain_backward", 2).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    auto lines = outcomes[0].lines;
    QCOMPARE(lines.size(), std::size_t{5});
    lines.pop_back();
    pairs_are_equal(lines);
  }
  void a_plain_backward_under_no_sync_stays_local() { all_ok("plain_backward_under_no_sync"); }
  void a_model_that_the_boundary_does_not_reach_is_reduced_before_its_update() {
    all_ok("model_that_the_boundary_does_not_reach");
  }
  void several_backwards_in_a_boundary_reduce_no_more_than_they_reach() { all_ok("several_backwards_in_a_boundary"); }
  void uneven_ranks_reduce_alike_with_a_plain_backward() {
    const auto outcomes = RankGroup("uneven_ranks_with_a_plain_backward", 2).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    pairs_are_equal(outcomes[0].lines);
  }

 private:
  static void all_ok(const char* body) { ACCRUE_ALL_RANKS_OK(RankGroup(body, 2).finish(60s)); }
};

ACCRUE_RANK_TEST_MAIN(TestAccelerateReductions,
                      {{"plain_backward", plain_backward},
                       {"plain_backward_under_no_sync", plain_backward_under_no_sync},
                       {"model_that_the_boundary_does_not_reach", model_that_the_boundary_does_not_reach},
                       {"several_backwards_in_a_boundary", several_backwards_in_a_boundary},
                       {"uneven_ranks_with_a_plain_backward", uneven_ranks_with_a_plain_backward}})

}  // namespace test_accelerate_reductions
#include "test_accelerate_reductions.moc"

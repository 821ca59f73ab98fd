// SPDX-License-Identifier: Apache-2.0
// ColossalAIOptimWrapper and what it asks of a booster, plugin by plugin, and the checks of its strategy.
#include <ATen/ATen.h>
#include <torch/optim/sgd.h>

#include <QTest>

#include "accrue/accumulation/mmengine/colossalai_optim_wrapper.h"
#include "support/counted_sync.h"
#include "support/refusals.h"
#include "support/ten_batches.h"
#include "support/test_program.h"

namespace test_mmengine_boosters {

using namespace accrue;
using namespace accrue::mmengine;
using namespace accrue::test;

namespace {

/// Writes down what it is asked: "(" and ")" around no_sync, "f" for a forward, "b" for a backward, "r" where it
/// reduces.
struct ScribeBooster final : Booster {
  explicit ScribeBooster(Plugin described) : described_(std::move(described)) {}
  const Plugin& plugin() const override { return described_; }
  std::shared_ptr<void> no_sync(torch::nn::Module* module, BaseOptimizer&) override {
    model = module;
    letters += '(';
    ++open_;
    return std::shared_ptr<void>(nullptr, [this](void*) {
      letters += ')';
      --open_;
    });
  }
  bool in_no_sync() const override { return open_ > 0; }
  void backward(const at::Tensor& loss, BaseOptimizer& optimizer, BackwardOptions options) override {
    letters += open_ > 0 ? "b" : "br";
    optimizer.backward(loss, options);
  }
  void reduce(BaseOptimizer&) override { letters += 'r'; }
  QString letters;
  torch::nn::Module* model = nullptr;

 private:
  Plugin described_;
  int open_ = 0;
};

QString letters_of(Plugin plugin, std::int64_t counts, std::int64_t micro_steps, std::vector<Replay> replay = {}) {
  auto [line, sgd] = SgdLine();
  const auto scribe = std::make_shared<ScribeBooster>(std::move(plugin));
  ColossalAIOptimWrapper wrapper(sgd, scribe, counts, {}, std::move(replay));
  wrapper.initialize_count_status(line, 0, micro_steps);
  for (std::int64_t m = 1; m <= micro_steps; ++m)
    train_step(wrapper, line, [&] {
      scribe->letters += 'f';
      return line.loss(batch_of(m));
    });
  if (scribe->model != nullptr && scribe->model != &line) return "another model";
  return scribe->letters;
}

class TestMmengineBoosters : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void no_sync_covers_forward_and_backward() {
    const QString quiet = "(f)(b)", loud = "fbr";
    for (const Plugin& plugin : {torch_ddp_plugin(), low_level_zero_plugin(1)})
      QCOMPARE(letters_of(plugin, 3, 7), quiet + quiet + loud + quiet + quiet + loud + loud);
  }

  void the_replayed_narrow_no_sync_leaves_out_the_backward() {
    const std::vector<Replay> narrow{Replay::narrow_no_sync};
    QCOMPARE(letters_of(low_level_zero_plugin(1), 2, 3, narrow), QString("(f)brfbrfbr"));
    QCOMPARE(letters_of(torch_ddp_plugin(), 2, 2, narrow), QString("(f)(b)fbr"));
    auto [line, sgd] = SgdLine();
    QVERIFY(thrown_by<std::invalid_argument>([&] {
              OptimWrapper(sgd, {.replay = {Replay::drain_early}});
            }).contains("restart_count"));
  }

  void without_accumulation_no_sync_is_never_asked_for() {
    QCOMPARE(letters_of(torch_ddp_plugin(), 1, 2), QString("fbrfbr"));
  }

  void a_plugin_without_no_sync_reduces_every_time() {
    for (const Plugin& plugin : {low_level_zero_plugin(2), gemini_plugin(), torch_fsdp_plugin()})
      QCOMPARE(letters_of(plugin, 2, 3), QString("fbrfbrfbr"));
  }

  void a_plugin_that_keeps_no_sum_cannot_accumulate() {
    auto [line, sgd] = SgdLine();
    const auto scribe = std::make_shared<ScribeBooster>(gemini_plugin(false));
    QVERIFY(thrown_by<std::invalid_argument>([&] {
              ColossalAIOptimWrapper(sgd, scribe, 2);
            }).contains("enable_gradient_accumulation"));
    ColossalAIOptimWrapper(sgd, scribe, 1);
    QVERIFY(!thrown_by<std::invalid_argument>([] { low_level_zero_plugin(3); }).isEmpty());
  }

  void a_booster_without_no_sync_says_so() {
    auto [line, sgd] = SgdLine();
    CountedSync sync;
    const auto optimizer = wrap(sgd);
    const auto booster = make_booster(low_level_zero_plugin(2), sync);
    QVERIFY(thrown_by<std::logic_error>([&] { booster->no_sync(&line, *optimizer); }).contains("stage 2"));
    booster->backward(line.loss(1.0), *optimizer);
    booster->backward(line.loss(1.0), *optimizer);
    QCOMPARE(sync.reductions, 2);
  }

  void a_boosters_context_left_open_is_an_error_where_it_would_part_the_ranks() {
    auto [line, sgd] = SgdLine();
    CountedSync sync;
    ColossalAIOptimWrapper wrapper(sgd, make_booster(torch_ddp_plugin(), sync), 2);
    {
      const OptimContext context = wrapper.optim_context(line);
      wrapper.update_params(line.loss(1.0));
      QVERIFY(thrown_by<std::logic_error>([&] { wrapper.update_params(line.loss(2.0)); }).contains("still open"));
      QVERIFY(thrown_by<std::logic_error>([&] { wrapper.step(); }).contains("still open"));
    }
    QCOMPARE(sync.reductions, 0);
    wrapper.step();
    QCOMPARE(sync.reductions, 1);
  }

  void the_context_needs_a_booster() {
    auto [line, sgd] = SgdLine();
    ColossalAIOptimWrapper wrapper(sgd, nullptr, 2);
    QVERIFY(thrown_by<std::logic_error>([&] { auto context = wrapper.optim_context(line); }).contains("set_booster"));
    wrapper.backward(line.loss(1.0));
    QCOMPARE(line.w.grad().item<double>(), -4.0);
    wrapper.set_booster(std::make_shared<ScribeBooster>(torch_ddp_plugin()));
    QVERIFY(wrapper.optim_context(line).empty());
  }

  void a_failing_backward_has_been_counted_there() {
    auto [line, sgd] = SgdLine();
    ColossalAIOptimWrapper wrapper(sgd, std::make_shared<ScribeBooster>(torch_ddp_plugin()), 3);
    QVERIFY(!thrown_by<c10::Error>([&] { wrapper.backward(at::ones({}, at::kDouble)); }).isEmpty());
    QCOMPARE(wrapper.inner_count(), 1);
  }

  void the_strategy_checks_what_its_system_checks() {
    QVERIFY(thrown_by<std::invalid_argument>([] {
              ColossalAIStrategy({.clip_grad = ClipGrad{.max_norm = 1.0}});
            }).contains("clip_grad"));
    QVERIFY(
        thrown_by<std::invalid_argument>([] { ColossalAIStrategy({.accumulative_counts = 2}); }).contains("max_iters"));
    auto [line, sgd] = SgdLine();
    const ColossalAIStrategy strategy({.accumulative_counts = 4, .max_iters = 10});
    const auto wrapper = strategy.build_optim_wrapper(wrap(sgd), std::make_shared<ScribeBooster>(torch_ddp_plugin()));
    strategy.prepare(line, *wrapper);
    for (std::int64_t m = 1; m <= 10; ++m) train_step(*wrapper, line, [&] { return line.loss(batch_of(m)); });
    ACCRUE_NEAR(line.weight(), 1.90070125);
    ColossalAIStrategy({}).prepare(line, *wrapper);
    QCOMPARE(wrapper->max_counts(), unset_counts);
  }
};

}  // namespace

ACCRUE_TEST_MAIN(TestMmengineBoosters)

}  // namespace test_mmengine_boosters
#include "test_mmengine_boosters.moc"

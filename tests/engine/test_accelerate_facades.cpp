// SPDX-License-Identifier: Apache-2.0
// The parts of an Accelerator, each on one rank: the plugin's rules, loaders, optimizers with a scaler, schedulers,
// clipping, saved state and the search for a batch that fits.
#include <torch/optim/schedulers/step_lr.h>

#include <QTemporaryDir>
#include <QTest>
#include <new>
#include <set>

#include "support/accelerate_cases.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_accelerate_facades {

using namespace accrue;
using namespace accrue::test;

namespace {

Environment variable(const char* value) {
  return [value](const char* name) -> std::optional<std::string> {
    if (std::string(name) != "ACCELERATE_GRADIENT_ACCUMULATION_STEPS" || value == nullptr) return std::nullopt;
    return value;
  };
}

/// As data sets of torch::data are: a size that may be unknown, and batches by request.
struct Numbers {
  std::optional<std::size_t> size() const { return 10; }
  std::vector<std::size_t> get_batch(std::vector<std::size_t> request) { return request; }
};

/// Two optimizers under fp16, after the backward of the one loss that both have a part in.
struct TwoOfOneLoss : TwoLines {
  explicit TwoOfOneLoss(const GradScalerOptions& scaler)
      : TwoLines({.mixed_precision = MixedPrecision::fp16, .grad_scaler = scaler}) {
    const auto scope = accelerator.accumulate(a, b);
    accelerator.backward(a.loss(points({1.0})) + b.loss(points({1.0})));
  }
};

}  // namespace

class TestAccelerateFacades : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_plugin_has_the_originals_defaults() {
    const GradientAccumulationPlugin plugin;
    QVERIFY(!plugin.num_steps);
    QVERIFY(plugin.adjust_scheduler);
    QVERIFY(plugin.sync_with_dataloader);
    QVERIFY(!plugin.sync_each_batch);
  }

  void steps_and_a_plugin_clash_and_zero_is_refused() {
    const GradientAccumulationPlugin plugin{.num_steps = 2};
    QVERIFY(error_of([&] { resolve_plugin(4, plugin, variable(nullptr)); }).find("num_steps in the plugin") !=
            std::string::npos);
    QCOMPARE(resolve_plugin(1, plugin, variable(nullptr)).num_steps, std::optional<std::int64_t>(2));
    QVERIFY(error_of([] { resolve_plugin(0, std::nullopt, variable(nullptr)); }).find("num_steps is 0") !=
            std::string::npos);
    QVERIFY(!error_of([] { resolve_plugin(1, GradientAccumulationPlugin{.num_steps = 0}, {}); }).empty());
    QVERIFY(!error_of([] { resolve_plugin(-3, std::nullopt, variable(nullptr)); }).empty());
  }

  void the_environment_overrides_the_argument_but_not_the_plugin() {
    QCOMPARE(resolve_plugin(4, std::nullopt, variable("8")).num_steps, std::optional<std::int64_t>(8));
    QCOMPARE(resolve_plugin(1, GradientAccumulationPlugin{.num_steps = 2}, variable("8")).num_steps,
             std::optional<std::int64_t>(2));
    for (const char* wrong : {"", "four", "4.5", "0"})
      QVERIFY2(!error_of([&] { resolve_plugin(1, std::nullopt, variable(wrong)); }).empty(), wrong);
  }

  void a_plugin_without_num_steps_does_not_accumulate() {
    AcceleratorOptions options;
    options.gradient_accumulation_plugin = GradientAccumulationPlugin{.sync_with_dataloader = false};
    const auto axis = single_communicator();
    Accelerator accelerator(options, *axis);
    QCOMPARE(accelerator.gradient_accumulation_steps(), 1);
    QVERIFY(!accelerator.state().sync_with_dataloader());
    QVERIFY(!accelerator.state().adjust_scheduler());
    options.gradient_accumulation_steps = 4;
    QVERIFY(!error_of([&] { Accelerator both(options, *axis); }).empty());
  }

  void adjust_scheduler_changes_nothing() {
    for (const bool adjust : {true, false}) {
      AcceleratorOptions options;
      options.gradient_accumulation_plugin = GradientAccumulationPlugin{.num_steps = 4, .adjust_scheduler = adjust};
      const auto axis = single_communicator();
      QCOMPARE(run_ten_batches(options, *axis, 1).schedule, std::string("0001111223"));
    }
  }

  void five_batches_sync_at_2_4_5_and_move_the_schedule() {
    TrainedLine t({.gradient_accumulation_steps = 2}, 1e-3);
    auto& scheduler = t.schedule([](auto n) { return std::pow(double(n), 0.65); });
    auto loader = t.accelerator.prepare(value_loader(80, {.batch_size = 16}));
    QCOMPARE(loader.length(), std::optional<std::int64_t>(5));
    std::vector<int> synced;
    std::vector<double> rates;
    int m = 0;
    for (const at::Tensor& x : loader) {
      ++m;
      t.micro_step(1.0, x / 80.0);
      scheduler.step();
      if (!t.accelerator.sync_gradients()) continue;
      synced.push_back(m);
      rates.push_back(scheduler.get_last_lr()[0]);
    }
    QCOMPARE(synced, (std::vector<int>{2, 4, 5}));
    QVERIFY(near(rates[0], 0.001, 1e-15));
    QVERIFY(near(rates[1], 0.00156917, 5e-9));
    QVERIFY(near(rates[2], 0.00204234, 5e-9));
  }

  void one_rank_moves_the_schedule_once_and_holds_it_on_overflow_data() {
    QTest::addColumn<bool>("split");
    QTest::addColumn<bool>("withOptimizer");
    QTest::addColumn<double>("second");
    QTest::newRow("by default") << false << true << 0.9;
    QTest::newRow("split batches") << true << true << 0.9;
    QTest::newRow("without the optimizer") << false << false << 0.8;
  }
  void one_rank_moves_the_schedule_once_and_holds_it_on_overflow() {
    QFETCH(bool, split);
    QFETCH(bool, withOptimizer);
    QFETCH(double, second);
    TrainedLine t({.step_scheduler_with_optimizer = withOptimizer,
                   .split_batches = split,
                   .mixed_precision = MixedPrecision::fp16});
    auto& scheduler = t.schedule([](auto n) { return 1.0 - double(n) / 10.0; });
    QVERIFY(t.micro_step() == StepOutcome::updated);
    scheduler.step();
    QVERIFY(near(scheduler.get_last_lr()[0], 0.09));
    QVERIFY(t.micro_step(std::nan("")) == StepOutcome::skipped_overflow);
    scheduler.step();
    QVERIFY(near(scheduler.get_last_lr()[0], 0.1 * second));
  }

  void the_guard_stops_each_schedule_at_its_total_but_not_with_split_batches_data() {
    QTest::addColumn<bool>("split");
    QTest::addColumn<QString>("positions");
    QTest::newRow("by default") << false << QStringLiteral("00 11 11 21 21 21 21 21");
    QTest::newRow("split batches") << true << QStringLiteral("00 11 11 22 22 33 33 44");
  }
  void the_guard_stops_each_schedule_at_its_total_but_not_with_split_batches() {
    QFETCH(bool, split);
    QFETCH(QString, positions);
    TrainedLine t({.gradient_accumulation_steps = 2, .split_batches = split});
    auto& two = t.schedule([](auto) { return 1.0; }, 2);
    auto& one = t.schedule([](auto) { return 1.0; }, 1);
    QStringList seen;
    for (int m = 1; m <= 8; ++m) {
      t.micro_step();
      two.step();
      one.step();
      seen << QString::number(two.position()) + QString::number(one.position());
    }
    QCOMPARE(seen.join(' '), positions);
  }

  void the_guard_reads_the_inner_schedulers_own_count() {
    for (const bool libtorchs : {false, true}) {
      TrainedLine t({}, 1.0);
      auto own = std::make_shared<LambdaLR>(
          t.sgd, [](auto) { return 1.0; }, 5);
      torch::optim::StepLR step_lr(t.sgd, 1, 0.5);
      for (int i = 0; i < 3; ++i) libtorchs ? step_lr.step() : own->step();
      auto& scheduler =
          libtorchs ? t.accelerator.prepare(step_lr, t.optimizer, 5) : t.accelerator.prepare(own, {&t.optimizer});
      for (int m = 1; m <= 8; ++m) {
        t.micro_step(1e-3);
        scheduler.step();
        QCOMPARE(scheduler.position(), std::min(m, 2));
      }
      QCOMPARE(libtorchs ? integer_of(scheduler.inner().state_dict(), "position") : own->position(), 5);
    }
  }

  void a_scope_that_an_exception_leaves_lets_the_model_reduce_again() {
    TrainedLine t({.gradient_accumulation_steps = 4});
    auto other = std::make_unique<OriginLine>();
    auto& ddp = t.accelerator.prepare(*other);
    QVERIFY_THROWS_EXCEPTION(std::runtime_error, [&] {
      const auto scope = t.accelerator.accumulate(t.model, ddp, *other);
      QVERIFY(!ddp.sync_enabled());
      throw std::runtime_error("the forward failed");
    }());
    QVERIFY(ddp.sync_enabled());
  }

  void schedulers_of_libtorch_are_driven_too() {
    TrainedLine t({.gradient_accumulation_steps = 2}, 1.0);
    torch::optim::StepLR step_lr(t.sgd, 1, 0.5);
    auto& scheduler = t.accelerator.prepare(step_lr, t.optimizer);
    OriginLine twin;
    torch::optim::SGD twin_sgd(twin.parameters(), torch::optim::SGDOptions(1.0));
    torch::optim::StepLR by_hand(twin_sgd, 1, 0.5);
    for (int m = 1; m <= 8; ++m) {
      t.micro_step(1e-3);
      scheduler.step();
      if (m % 2 == 0) by_hand.step();
      QCOMPARE(scheduler.get_last_lr(), learning_rates(twin_sgd));
    }
    QVERIFY(scheduler.get_last_lr()[0] < 1.0);
  }

  void skipped_steps_are_said() {
    TrainedLine t({.mixed_precision = MixedPrecision::fp16});
    std::vector<bool> skipped;
    for (const double factor : {1.0, std::nan(""), std::nan(""), 1.0}) {
      t.micro_step(factor);
      skipped.push_back(t.optimizer.step_was_skipped());
      QCOMPARE(t.accelerator.optimizer_step_was_skipped(), skipped.back());
    }
    QCOMPARE(skipped, (std::vector<bool>{false, true, true, false}));
  }

  void an_overflow_anywhere_discards_exactly_its_window() {
    for (int bad = 1; bad <= 8; ++bad) {
      TrainedLine t({.gradient_accumulation_steps = 4, .mixed_precision = MixedPrecision::fp16});
      std::vector<bool> skipped;
      for (int m = 1; m <= 12; ++m) {
        const double before = t.model.value();
        const StepOutcome outcome = t.micro_step(m == bad ? std::numeric_limits<double>::infinity() : 1.0);
        QVERIFY((outcome == StepOutcome::accumulated) == (m % 4 != 0));
        if (m % 4 != 0) continue;
        skipped.push_back(outcome == StepOutcome::skipped_overflow);
        QCOMPARE(t.model.value() == before, skipped.back());
      }
      QCOMPARE(skipped, (std::vector<bool>{bad <= 4, bad > 4, false}));
    }
  }

  void the_scaler_leaves_the_result_as_it_is() {
    TrainedLine plain({.gradient_accumulation_steps = 4});
    TrainedLine scaled({.gradient_accumulation_steps = 4, .mixed_precision = MixedPrecision::fp16});
    for (int m = 1; m <= 8; ++m) {
      plain.micro_step();
      scaled.micro_step();
    }
    QCOMPARE(scaled.model.value(), plain.model.value());  // the scale is a power of two
  }

  void clipping_is_never_gated() {
    TrainedLine t({.gradient_accumulation_steps = 4});
    const auto scope = t.accelerator.accumulate(t.model);
    t.accelerator.backward(t.model.loss(points({1.0})));
    QVERIFY(!t.accelerator.sync_gradients());
    QCOMPARE(t.accelerator.clip_grad_norm_({t.model.w}, 0.25).item<double>(), 1.0);
    QVERIFY(near(t.model.gradient(), -0.25, 1e-6));
    t.accelerator.clip_grad_value_({t.model.w}, 0.125);
    QCOMPARE(t.model.gradient(), -0.125);
  }

  void the_norm_of_16_bit_gradients_may_be_beyond_what_they_hold() {
    TrainedLine t({});
    const at::Tensor half = at::zeros({9}, at::kHalf).requires_grad_();
    half.mutable_grad() = at::full({9}, 30000.0, at::kHalf);
    QVERIFY(near(t.accelerator.clip_grad_norm_({half}, 9.0).item<double>(), 90000.0, 0.1));
    QCOMPARE(half.grad()[0].item<double>(), 3.0);
  }

  void a_second_unscale_in_a_window_is_an_error() {
    TrainedLine t({.gradient_accumulation_steps = 4, .mixed_precision = MixedPrecision::fp16});
    const auto clip = [&] { t.accelerator.clip_grad_norm_({t.model.w}, 1.0); };
    for (int m = 1; m <= 2; ++m) {
      const auto scope = t.accelerator.accumulate(t.model);
      t.accelerator.backward(t.model.loss(points({1.0})));
      if (m == 1)
        clip();
      else
        QVERIFY_THROWS_EXCEPTION(std::logic_error, clip());
    }
  }

  void two_optimizers_that_clip_first_are_unscaled_once() {
    TwoOfOneLoss two({});
    two.accelerator.clip_grad_norm_({two.a.w, two.b.w}, 100.0);
    two.step_a.step();
    two.step_b.step();
    QCOMPARE(two.a.value(), 0.4);
    QCOMPARE(two.b.value(), 0.4);
  }

  /// The scale grows after every update, and falls after an overflow: neither may come between two steps of one loss.
  void two_optimizers_of_one_loss_unscale_by_its_scale() {
    for (const bool overflows : {false, true}) {
      TwoOfOneLoss two({.init_scale = 1024.0, .growth_interval = 1});
      if (overflows) two.a.w.mutable_grad().fill_(HUGE_VAL);
      QCOMPARE(two.step_a.step(), overflows ? StepOutcome::skipped_overflow : StepOutcome::updated);
      QCOMPARE(two.step_b.step(), StepOutcome::updated);
      QCOMPARE(two.b.value(), 0.4);
      QCOMPARE(two.accelerator.scaler()->get_scale(), overflows ? 512.0 : 2048.0);
    }
  }

  void an_attempt_that_failed_between_clip_and_step_is_forgotten() {
    const auto axis = single_communicator();
    Accelerator accelerator({.mixed_precision = MixedPrecision::fp16}, *axis);
    int attempts = 0;
    accelerator.find_executable_batch_size(2, [&](const BatchAttempt&) {
      OriginLine line;
      torch::optim::SGD sgd(line.parameters(), torch::optim::SGDOptions(0.1));
      accelerator.prepare(line);
      auto& optimizer = accelerator.prepare(sgd);
      const auto scope = accelerator.accumulate(line);
      accelerator.backward(line.loss(points({1.0})));
      accelerator.clip_grad_norm_({line.w}, 100.0);
      if (++attempts == 1) throw std::bad_alloc();
      optimizer.zero_grad();
    });
    QCOMPARE(attempts, 2);
  }

  void the_end_of_the_loader_is_known_at_the_last_batch_of_every_epoch() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    auto loader = accelerator.prepare(value_loader(16, {.batch_size = 4}));
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<bool> ends;
      for (const at::Tensor& x : loader) {
        Q_UNUSED(x)
        ends.push_back(accelerator.state().end_of_dataloader());
      }
      QCOMPARE(ends, (std::vector<bool>{false, false, false, true}));
      QVERIFY(!accelerator.state().in_dataloader());
    }
  }

  void the_innermost_loader_is_active() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    auto outer = accelerator.prepare(value_loader(80, {.batch_size = 16}));
    auto inner = accelerator.prepare(value_loader(96, {.batch_size = 16}));
    const GradientState& state = accelerator.state();
    int at = 0;
    for (auto it = outer.begin(); it != outer.end(); ++it, ++at) {
      const ActiveLoader* own = state.active_dataloader();
      QCOMPARE(state.end_of_dataloader(), at == 4);
      int nested = 0;
      for (auto in = inner.begin(); in != inner.end(); ++in, ++nested) {
        QVERIFY(state.active_dataloader() != own);
        QCOMPARE(state.end_of_dataloader(), nested == 5);
        QCOMPARE(own->end_of_dataloader(), at == 4);
      }
      QCOMPARE(nested, 6);
      QCOMPARE(state.active_dataloader(), own);
      QCOMPARE(state.end_of_dataloader(), at == 4);
    }
    QCOMPARE(at, 5);
    QVERIFY(state.active_dataloader() == nullptr);
  }

  void data_sets_of_torch_data_are_read_by_request() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    Numbers numbers;
    auto loader = accelerator.prepare(map_loader(numbers, {.batch_size = 4}));
    std::vector<std::size_t> sizes;
    for (const auto& batch : loader) sizes.push_back(batch.size());
    QCOMPARE(sizes, (std::vector<std::size_t>{4, 4, 2}));
  }

  void streams_end_a_window_without_a_known_length() {
    TrainedLine t({.gradient_accumulation_steps = 4});
    std::vector<at::Tensor> batches(10, points({1.0}));
    auto source = source_of(batches);
    auto loader = t.accelerator.prepare(source);
    std::vector<int> boundaries;
    int m = 0;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const at::Tensor& x : loader) {
        Q_UNUSED(x)
        ++m;
        t.micro_step();
        if (t.accelerator.sync_gradients()) boundaries.push_back(m);
      }
    QCOMPARE(boundaries, (std::vector<int>{4, 8, 10, 14, 18, 20}));
  }

  void shuffled_epochs_hold_every_sample_in_another_order() {
    const auto axis = single_communicator();
    Accelerator accelerator({.seed = 7}, *axis);
    auto loader = accelerator.prepare(value_loader(20, {.batch_size = 1, .shuffle = true}));
    std::vector<std::vector<double>> epochs(2);
    for (auto& epoch : epochs)
      for (const at::Tensor& x : loader) epoch.push_back(x.item<double>());
    QVERIFY(epochs[0] != epochs[1]);
    for (const auto& epoch : epochs) QCOMPARE(std::set<double>(epoch.begin(), epoch.end()).size(), std::size_t{20});
  }

  void models_that_were_not_prepared_are_refused() {
    TrainedLine t({});
    OriginLine stranger;
    QVERIFY(error_of([&] { (void)t.accelerator.accumulate(stranger); }).find("was not prepared") != std::string::npos);
    QVERIFY(!error_of([&] { t.accelerator.backward(points({1.0})); }).empty());
  }

  void the_step_is_saved_and_the_gradients_are_not_unless_asked_data() {
    QTest::addColumn<bool>("gradients");
    QTest::newRow("as the original") << false;
    QTest::newRow("with gradients") << true;
  }
  void the_step_is_saved_and_the_gradients_are_not_unless_asked() {
    QFETCH(bool, gradients);
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    TrainedLine first({.gradient_accumulation_steps = 4});
    for (int m = 1; m <= 6; ++m) first.micro_step();
    for (int again = 0; again < 2; ++again)
      QVERIFY(first.accelerator.save_state(path, {.gradients = gradients}).has_value());
    TrainedLine second({.gradient_accumulation_steps = 4});
    second.micro_step();  // left-overs of another training do not survive the load
    QVERIFY(second.accelerator.load_state(path).has_value());
    QCOMPARE(second.model.value(), first.model.value());
    QCOMPARE(second.model.gradient(), gradients ? first.model.gradient() : 0.0);
    std::vector<bool> flags;
    for (int m = 7; m <= 8; ++m) {
      first.micro_step();
      second.micro_step();
      flags.push_back(second.accelerator.sync_gradients());
    }
    QCOMPARE(flags, (std::vector<bool>{false, true}));
    QCOMPARE(second.model.value() == first.model.value(), gradients);
  }

  void a_load_leaves_n_as_the_program_set_it_data() {
    QTest::addColumn<int>("built");
    QTest::addColumn<int>("set");
    QTest::addColumn<int>("boundary");  // the next one, after six micro-steps of which two are of an open group of four
    QTest::newRow("made with eight") << 8 << 0 << 8;
    QTest::newRow("set to three before the load") << 8 << 3 << 9;
    QTest::newRow("as it was saved") << 4 << 0 << 8;
  }
  void a_load_leaves_n_as_the_program_set_it() {
    QFETCH(int, built);
    QFETCH(int, set);
    QFETCH(int, boundary);
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    TrainedLine first({.gradient_accumulation_steps = 2});
    first.accelerator.set_gradient_accumulation_steps(4);
    for (int m = 1; m <= 6; ++m) first.micro_step();
    QVERIFY(first.accelerator.save_state(path).has_value());
    TrainedLine second({.gradient_accumulation_steps = built});
    if (set > 0) second.accelerator.set_gradient_accumulation_steps(set);
    QVERIFY(second.accelerator.load_state(path).has_value());
    QCOMPARE(second.accelerator.gradient_accumulation_steps(), set > 0 ? set : built);
    int m = 6;
    do {
      ++m;
      second.micro_step();
    } while (!second.accelerator.sync_gradients() && m < 20);
    QCOMPARE(m, boundary);
  }

  void a_window_that_only_the_end_of_the_loader_ends_costs_nothing() {
    for (const bool set_later : {false, true}) {
      const std::int64_t most = std::numeric_limits<std::int64_t>::max();
      TrainedLine t({.gradient_accumulation_steps = set_later ? 2 : most});
      if (set_later) {
        t.micro_step();
        t.accelerator.set_gradient_accumulation_steps(1'000'000'000);
      }
      auto loader = t.accelerator.prepare(value_loader(5, {.batch_size = 1}));
      std::string flags;
      for (int epoch = 0; epoch < 2; ++epoch)
        for (const at::Tensor& x : loader) {
          Q_UNUSED(x)
          t.micro_step();
          flags += t.accelerator.sync_gradients() ? '1' : '0';
        }
      QCOMPARE(flags, std::string("0000100001"));
    }
  }

  void reductions_that_would_count_gradients_twice_are_refused() {
    const auto axis = single_communicator();
    AcceleratorOptions options{.data_parallel = {.op = ReduceOp::sum}};
    options.gradient_accumulation_plugin = GradientAccumulationPlugin{.num_steps = 4, .sync_each_batch = true};
    const std::string error = error_of([&] { Accelerator accelerator(options, *axis); });
    QVERIFY2(error.find("sync_each_batch") != std::string::npos && error.find("use op = mean") != std::string::npos,
             error.c_str());
    options.gradient_accumulation_plugin->sync_each_batch = false;
    QVERIFY(error_of([&] { Accelerator accelerator(options, *axis); }).empty());
  }

  void two_losses_may_share_a_graph() {
    TrainedLine t({.gradient_accumulation_steps = 2});
    const auto scope = t.accelerator.accumulate(t.model);
    const at::Tensor out = points({3.0}) * t.model.w;
    const at::Tensor shared = out * out + out;
    t.accelerator.backward(shared.sum(), {.retain_graph = true});
    t.accelerator.backward(shared.sum() * 2.0);
    QCOMPARE(t.model.gradient(), 3.0 * 3.0 / 2.0);
    QVERIFY_THROWS_EXCEPTION(std::exception, t.accelerator.backward(shared.sum()));
  }

  void scopes_may_outlive_what_was_prepared() {
    TrainedLine t({.gradient_accumulation_steps = 2});
    auto other = std::make_unique<OriginLine>();
    t.accelerator.prepare(*other);
    std::optional<AccumulateScope> open(t.accelerator.accumulate(t.model, *other));
    std::optional<accelerate::NoSyncScope> quiet(t.accelerator.no_sync(t.model, *other));
    std::optional<TriggerSyncScope> triggered(t.accelerator.trigger_sync_in_backward(*other));
    t.accelerator.free_memory();
    auto& ddp = t.accelerator.prepare(t.model);
    triggered.reset();
    quiet.reset();
    open.reset();
    QVERIFY(ddp.sync_enabled());
  }

  void loaders_can_be_moved() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    std::vector<decltype(accelerator.prepare(value_loader(4, {})))> loaders;
    for (const std::int64_t samples : {4, 6}) loaders.push_back(accelerator.prepare(value_loader(samples, {})));
    QCOMPARE(accelerator.state().loaders(), (std::vector<PreparedLoaderBase*>{&loaders[0], &loaders[1]}));
    loaders[0].set_epoch(5);
    auto taken = std::move(loaders[0]);
    QCOMPARE(taken.epoch(), 5);
    double sum = 0.0;
    for (const at::Tensor& x : taken) sum += x.item<double>();
    QCOMPARE(sum, 10.0);
    loaders.clear();
    QCOMPARE(accelerator.state().loaders(), std::vector<PreparedLoaderBase*>{&taken});
  }

  void a_state_that_does_not_fit_names_the_file() {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    const auto axis = single_communicator();
    Parity other;
    Accelerator writer({}, *axis);
    writer.prepare(other);
    QVERIFY(writer.save_state(path).has_value());
    TrainedLine t({});
    const auto loaded = t.accelerator.load_state(path);
    QVERIFY(!loaded);
    QVERIFY2(loaded.error().text().find("model.safetensors") != std::string::npos, loaded.error().text().c_str());
    QVERIFY(!t.accelerator.load_state(path + "-nowhere"));
  }

  void free_memory_sets_the_step_to_zero() {
    TrainedLine t({.gradient_accumulation_steps = 4});
    t.micro_step();
    t.micro_step();
    t.accelerator.free_memory();
    std::vector<bool> flags;
    for (int m = 1; m <= 4; ++m) {
      const auto scope = t.accelerator.accumulate();
      flags.push_back(t.accelerator.sync_gradients());
    }
    QCOMPARE(flags, (std::vector<bool>{false, false, false, true}));
  }

  void the_memory_search_keeps_the_effective_batch() {
    for (const std::int64_t start : {256, 96, 30, 21, 7, 1})
      for (const std::int64_t steps : {1, 2, 3})
        for (const BatchAttempt& each : batch_attempts(start, steps, ShrinkRule::keep_effective_batch))
          QCOMPARE(each.batch_size * each.gradient_accumulation_steps, start * steps);
    const auto halves = batch_attempts(256, 1, ShrinkRule::keep_effective_batch);
    QCOMPARE(halves.size(), std::size_t{9});
    QVERIFY((halves[3] == BatchAttempt{32, 8}));
    QVERIFY((batch_attempts(30, 1, ShrinkRule::keep_effective_batch)[2] == BatchAttempt{6, 5}));
  }

  void the_originals_shrink_rule_lets_the_batch_drift() {
    const auto attempts = batch_attempts(256, 1, ShrinkRule::by_a_tenth);
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < 8; ++i) sizes.push_back(attempts[i].batch_size);
    QCOMPARE(sizes, (std::vector<std::int64_t>{256, 230, 207, 186, 167, 150, 135, 121}));
    QCOMPARE(attempts[6].gradient_accumulation_steps, 1);
    QCOMPARE(attempts[7].gradient_accumulation_steps * attempts[7].batch_size, 242);
  }

  void running_out_of_memory_sets_n() {
    const auto axis = single_communicator();
    Accelerator accelerator({.gradient_accumulation_steps = 2}, *axis);
    std::vector<std::int64_t> tried;
    const BatchAttempt found = accelerator.find_executable_batch_size(64, [&](const BatchAttempt& attempt) {
      tried.push_back(attempt.batch_size);
      QCOMPARE(accelerator.gradient_accumulation_steps(), attempt.gradient_accumulation_steps);
      if (attempt.batch_size > 16) throw std::bad_alloc();
    });
    QVERIFY((found == BatchAttempt{16, 8}));
    QCOMPARE(tried, (std::vector<std::int64_t>{64, 32, 16}));
    QCOMPARE(accelerator.gradient_accumulation_steps(), 8);
    QVERIFY_THROWS_EXCEPTION(NoExecutableBatchSize, accelerator.find_executable_batch_size(4, [](const BatchAttempt&) {
      throw std::runtime_error("CUDA out of memory. Tried to allocate");
    }));
    QVERIFY_THROWS_EXCEPTION(std::domain_error, accelerator.find_executable_batch_size(4, [](const BatchAttempt&) {
      throw std::domain_error("another matter");
    }));
  }
};

ACCRUE_TEST_MAIN(TestAccelerateFacades)

}  // namespace test_accelerate_facades
#include "test_accelerate_facades.moc"

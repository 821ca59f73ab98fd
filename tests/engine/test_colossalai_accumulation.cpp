// SPDX-License-Identifier: Apache-2.0
// Colossal-AI's accumulation under its own names: whole groups only, one window for optimizer, loader, handlers and
// schedule, gates, recovery after a backward too many, and the defects that are replayed only on request.
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "accrue/accumulation/colossalai.h"
#include "accrue/accumulation/llm_amp.h"
#include "support/counted_sync.h"
#include "support/refusals.h"
#include "support/ten_batches.h"
#include "support/test_program.h"

namespace test_colossalai_accumulation {

using namespace accrue;
using namespace accrue::test;
using colossalai::GradAccumDataloader;
using colossalai::GradAccumLrSchedulerByStep;
using colossalai::GradAccumOptimizer;

namespace {

/// The numbers 1..length, and what was asked of them.
struct Numbers final : BatchSource<int> {
  explicit Numbers(int length, bool drained = true) : count(length), drained(drained) {}
  void reset() override {
    at = 0;
    ++epochs;
  }
  std::optional<int> next() override {
    ++pulls;
    if (at >= count) return std::nullopt;
    return ++at;
  }
  std::optional<std::int64_t> length() const override { return told; }
  bool drained_when_cut() const override { return drained; }

  int count;
  bool drained;
  std::optional<std::int64_t> told = count;
  int at = 0;
  int pulls = 0;
  int epochs = 0;
};

struct CountingHandler final : colossalai::BaseGradientHandler {
  explicit CountingHandler(const Line* of = nullptr) : line(of) {}
  void handle_gradient() override {
    ++calls;
    if (line != nullptr) seen.push_back(line->gradient());
  }
  const Line* line;
  int calls = 0;
  std::vector<double> seen;
};

/// LibTorch's warnings while it lives.
struct Warnings final : c10::WarningHandler {
  void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
  std::vector<std::string> texts;
  c10::WarningUtils::WarningHandlerGuard guard{this};
};

std::vector<int> all_of(GradAccumDataloader<int>& loader) {
  std::vector<int> batches;
  for (const int each : loader) batches.push_back(each);
  return batches;
}

}  // namespace

class TestColossalaiAccumulation : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_source_shorter_than_it_declares_is_found() {
    const std::vector<int> numbers = ten_batches();
    auto source = source_of(numbers, 12);
    colossalai::GradAccumDataloader<int> loader(source, 4);
    QCOMPARE(&loader.source(), static_cast<BatchSource<int>*>(&source));
    int handed_out = 0;
    const auto text = thrown_by<std::logic_error>([&] {
      for (const int batch : loader) handed_out += batch > 0;
    });
    QCOMPARE(handed_out, 10);
    QVERIFY2(text.contains(u"declares 12 batches an epoch and ended after 10"), qPrintable(text));
  }

  void a_loader_says_what_it_drops() {
    const std::vector<int> numbers = ten_batches();
    auto source = source_of(numbers);
    std::ostringstream text;
    text << GradAccumDataloader<int>(source, 4);
    QCOMPARE(text.str(), std::string("GradAccumDataloader: 8 batches an epoch, in windows of 4; 2 are dropped"));
  }

  void ten_batches_give_the_documented_weights_data() {
    QTest::addColumn<int>("epochs");
    QTest::addColumn<int>("updates");
    QTest::addColumn<bool>("drained");
    for (const bool drained : {false, true})
      for (int epochs = 1; epochs <= 3; ++epochs)
        QTest::addRow("%d epochs%s", epochs, drained ? ", source that is drained" : "")
            << epochs << 2 * epochs << drained;
  }
  void ten_batches_give_the_documented_weights() {
    QFETCH(int, epochs);
    QFETCH(int, updates);
    QFETCH(bool, drained);
    auto [line, sgd] = SgdLine();
    Numbers numbers(10, drained);
    auto [optimizer, loader, handlers, schedule] = colossalai::accumulate_gradient(nullptr, sgd, numbers, 4);
    int taken = 0, seen = 0;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (const int b : *loader) {
        ++seen;
        optimizer->zero_grad();
        optimizer->backward(line.loss(b));
        if (optimizer->step() == StepOutcome::updated) ++taken;
      }
    }
    QCOMPARE(taken, updates);
    QCOMPARE(seen, 8 * epochs);
    const double epoch_factor = group_factor({1, 2, 3, 4}, 4) * group_factor({5, 6, 7, 8}, 4);
    ACCRUE_NEAR(line.weight(), 2.0 - 2.0 * std::pow(epoch_factor, epochs));
    if (epochs == 1) ACCRUE_NEAR(line.weight(), 0.95475);
    QCOMPARE(optimizer->window().open_micro_steps(), std::int64_t{0});  // nothing unapplied
    optimizer->zero_grad();
    QCOMPARE(line.gradient(), 0.0);
  }

  void the_early_drain_loses_the_last_kept_batch_where_asked_for_data() {
    QTest::addColumn<int>("epochs");
    QTest::addColumn<int>("updates");
    QTest::newRow("one epoch") << 1 << 1;
    QTest::newRow("two epochs") << 2 << 3;
    QTest::newRow("three epochs") << 3 << 5;
  }
  void the_early_drain_loses_the_last_kept_batch_where_asked_for() {
    QFETCH(int, epochs);
    QFETCH(int, updates);
    Line line;
    const std::vector<int> numbers = ten_batches();
    auto source = source_of(numbers, 10);
    auto sgd = sgd_over(line);
    auto [optimizer, loader, handlers, schedule] =
        colossalai::accumulate_gradient(nullptr, sgd, source, 4, {}, nullptr, {Replay::drain_early});
    int taken = 0;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      std::vector<int> seen;
      for (const int b : *loader) {
        seen.push_back(b);
        optimizer->zero_grad();
        optimizer->backward(line.loss(b));
        if (optimizer->step() == StepOutcome::updated) ++taken;
      }
      QCOMPARE(seen, (std::vector<int>{1, 2, 3, 4, 5, 6, 7}));
    }
    QCOMPARE(taken, updates);
    if (epochs > 1) return;
    ACCRUE_NEAR(line.weight(), 0.15);
    ACCRUE_NEAR(line.gradient(), -101.75);
    QCOMPARE(optimizer->window().open_micro_steps(), std::int64_t{3});
  }

  void the_early_drain_leaves_only_sources_alone_that_are_not_drained() {
    Numbers left(10, false), drained(10), one(10);
    GradAccumDataloader<int> first(left, 4, {Replay::drain_early}), second(drained, 4, {Replay::drain_early});
    QCOMPARE(all_of(first).size(), std::size_t{8});
    second.reset();
    for (int i = 1; i <= 7; ++i) QCOMPARE(second.next(), std::optional<int>(i));
    QCOMPARE(second.next(), std::optional<int>());  // a trainer that calls next() does not expect this
    GradAccumDataloader<int> single(one, 1, {Replay::drain_early});
    QCOMPARE(all_of(single).size(), std::size_t{9});  // with N = 1 the last batch is lost too
  }

  void updates_and_the_schedule_stand_where_the_table_says() {
    auto [line, sgd] = SgdLine();
    Numbers numbers(10);
    const auto decay = std::make_shared<LambdaLR>(decay_of(sgd));
    auto [optimizer, loader, handlers, schedule] = colossalai::accumulate_gradient(nullptr, sgd, numbers, 4, {}, decay);
    std::vector<int> updated_at, position_in_use;
    std::string positions;
    int m = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const int b : *loader) {
        ++m;
        optimizer->zero_grad();
        const double before = line.gradient(), d = line.weight() - 2.0;
        optimizer->backward(line.loss(b));
        ACCRUE_NEAR(line.gradient() - before, 2.0 * b * b * d / 4.0);
        if (optimizer->step() == StepOutcome::updated) {
          updated_at.push_back(m);
          position_in_use.push_back(static_cast<int>(decay->position()));
        }
        schedule->step();
        positions += std::to_string(decay->position());
      }
    }
    QCOMPARE(updated_at, (std::vector<int>{4, 8, 12, 16}));  // batches 4 and 8 of each epoch
    QCOMPARE(positions.substr(0, 8), std::string("00011112"));
    QCOMPARE(position_in_use, (std::vector<int>{0, 1, 2, 3}));
    QCOMPARE(decay->position(), 2 * GradAccumLrSchedulerByStep::compute_effective_steps_per_epoch(numbers, 4));
  }

  void an_epoch_is_whole_windows() {
    for (int length = 0; length <= 13; ++length) {
      for (int steps = 1; steps <= 6; ++steps) {
        Numbers numbers(length);
        Warnings warnings;
        GradAccumDataloader<int> loader(numbers, steps);
        QCOMPARE(warnings.texts.size(), static_cast<std::size_t>(length < steps ? 1 : 0));
        const int kept = length - length % steps;
        QCOMPARE(loader.length(), std::optional<std::int64_t>(kept));
        QCOMPARE(loader.dropped(), std::int64_t{length - kept});
        QCOMPARE(all_of(loader).size(), static_cast<std::size_t>(kept));
        QCOMPARE(loader.next(), std::optional<int>());
        QCOMPARE(all_of(loader).size(), static_cast<std::size_t>(kept));
        QCOMPARE(GradAccumLrSchedulerByStep::compute_effective_steps_per_epoch(length, steps),
                 std::int64_t{length / steps});
      }
    }
  }

  void a_source_that_asks_for_it_is_read_to_its_end() {
    Numbers drained(10), left(10, false);
    GradAccumDataloader<int> first(drained, 4), second(left, 4);
    QCOMPARE(all_of(first), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
    QCOMPARE(drained.at, 10);
    QCOMPARE(drained.pulls, 11);
    QCOMPARE(all_of(second).size(), std::size_t{8});
    QCOMPARE(left.at, 8);
  }

  void a_second_iteration_ends_the_first() {
    std::vector<int> batches = ten_batches();
    auto source = source_of(batches, 10);
    GradAccumDataloader<int> loader(source, 4);
    auto outer = loader.begin();
    QCOMPARE(*outer, 1);
    ++outer;
    QCOMPARE(*outer, 2);
    QCOMPARE(all_of(loader), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
    ++outer;
    QVERIFY(outer == loader.end());
  }

  void what_cannot_work_is_refused() {
    auto [line, sgd] = SgdLine();
    auto decay = decay_of(sgd);
    Numbers unknown(10), numbers(10);
    unknown.told.reset();
    QVERIFY(contains(refused([&] { GradAccumDataloader<int>(unknown, 4); }), "give the source a length"));
    QVERIFY(contains(refused([&] { colossalai::accumulate_gradient(nullptr, sgd, unknown, 4); }), "length"));
    QVERIFY(contains(refused([&] { colossalai::accumulate_gradient(nullptr, sgd, numbers, 0); }), "at least 1"));
    QVERIFY(contains(refused([&] { GradAccumOptimizer(sgd, -1); }), "is -1;"));
    QVERIFY(contains(refused([&] { GradAccumDataloader<int>(numbers, 100'000'000); }), "at most 1048576"));
    QVERIFY(contains(refused([&] { GradAccumLrSchedulerByStep(decay, 0); }), "is 0;"));
    QVERIFY(contains(refused([&] { colossalai::GradAccumGradientHandler(nullptr, 2); }), "handler is empty"));
    QVERIFY(contains(refused([&] { colossalai::accumulate_gradient(nullptr, sgd, numbers, 2, {nullptr}); }), "empty"));
    QVERIFY(contains(refused([&] { GradAccumOptimizer(sgd, 2, nullptr, {Replay::scheduler_state}); }),
                     "scheduler_state is not one of this system's defects, which are clip_partial_sums, drain_early"));
    QVERIFY(contains(refused([&] { GradAccumOptimizer(sgd, SharedWindow()); }), "there is no window"));
    QVERIFY(contains(refused([&] { GradAccumOptimizer(std::shared_ptr<BaseOptimizer>(), 2); }), "pointer is empty"));
  }

  void the_optional_two_stay_empty() {
    auto [line, sgd] = SgdLine();
    Numbers numbers(10);
    const auto made = colossalai::accumulate_gradient(nullptr, sgd, numbers, 1);
    QVERIFY(made.optimizer && made.dataloader);
    QVERIFY(made.gradient_handlers.empty());
    QVERIFY(made.lr_scheduler == nullptr);
    made.optimizer->backward(line.loss(1.0));
    QCOMPARE(made.optimizer->step(), StepOutcome::updated);
  }

  void one_backward_too_many_is_made_up_for_by_the_next_step() {
    auto [line, sgd] = SgdLine(0.25);
    GradAccumOptimizer optimizer(sgd, 2);
    for (int i = 0; i < 3; ++i) optimizer.backward(line.loss(1.0));
    optimizer.zero_grad();
    ACCRUE_NEAR(line.gradient(), -6.0);
    QCOMPARE(optimizer.step(), StepOutcome::updated);
    ACCRUE_NEAR(line.weight(), 1.5);
    optimizer.zero_grad();
    optimizer.backward(line.loss(1.0));
    QCOMPARE(optimizer.step(), StepOutcome::accumulated);
    optimizer.backward(line.loss(1.0));
    QCOMPARE(optimizer.step(), StepOutcome::updated);
  }

  void a_gradient_from_elsewhere_is_not_divided() {
    auto [line, sgd] = SgdLine();
    CountedSync sync;
    GradAccumOptimizer optimizer(sgd, 2, &sync);
    optimizer.backward_by_grad(line.w * 3.0, at::full({1}, 5.0, at::kDouble));
    ACCRUE_NEAR(line.gradient(), 15.0);
    QCOMPARE(optimizer.step(), StepOutcome::accumulated);
    QCOMPARE(sync.reductions, 0);
    optimizer.backward_by_grad(line.w * 3.0, at::full({1}, 5.0, at::kDouble));
    QCOMPARE(sync.reductions, 1);
    QCOMPARE(optimizer.step(), StepOutcome::updated);
    ACCRUE_NEAR(line.weight(), -30.0 * ten_batch_lr);
  }

  void gradients_are_clipped_where_the_step_is_due_and_only_then() {
    auto [line, sgd] = SgdLine();
    GradAccumOptimizer optimizer(sgd, 2);
    optimizer.backward(line.loss(2.0));
    QVERIFY(!optimizer.clip_grad_norm({line.w}, 1.0));
    ACCRUE_NEAR(line.gradient(), -8.0);
    optimizer.backward(line.loss(2.0));
    QVERIFY(!optimizer.clip_grad_norm({line.w}, 0.0));
    ACCRUE_NEAR(line.gradient(), -16.0);
    const auto norm = optimizer.clip_grad_norm({line.w}, 1.0);
    QVERIFY(norm.has_value());
    ACCRUE_NEAR(*norm, 16.0);
    ACCRUE_NEAR(line.gradient(), -16.0 / (16.0 + 1e-6));
    optimizer.step();
    QVERIFY(!optimizer.clip_grad_norm({line.w}, 1e-9));
  }

  void partial_sums_are_clipped_where_asked_for() {
    auto [line, sgd] = SgdLine();
    GradAccumOptimizer optimizer(sgd, 2, nullptr, {Replay::clip_partial_sums});
    optimizer.backward(line.loss(2.0));
    QVERIFY(optimizer.clip_grad_norm({line.w}, 1.0).has_value());
    const double clipped = 8.0 / (8.0 + 1e-6);
    ACCRUE_NEAR(line.gradient(), -clipped);
    optimizer.backward(line.loss(2.0));
    ACCRUE_NEAR(line.gradient(), -clipped - 8.0);
    optimizer.clip_grad_norm({line.w}, 0.0);  // the default of the version that has the defect
    QCOMPARE(line.gradient(), 0.0);
    QCOMPARE(optimizer.step(), StepOutcome::updated);
    QCOMPARE(line.weight(), 0.0);
  }

  void the_scheduler_counts_its_own_calls_and_prints_its_rates() {
    auto [line, sgd] = SgdLine(0.1);
    auto decay = decay_of(sgd);
    GradAccumLrSchedulerByStep schedule(decay, 3);
    for (int call = 1; call <= 9; ++call) schedule.step();  // also if a hook calls it once per epoch
    QCOMPARE(decay.position(), std::int64_t{3});
    QCOMPARE(schedule.get_lr(), schedule.get_last_lr());
    ACCRUE_NEAR(schedule.get_last_lr().at(0), 0.0729);
    std::ostringstream text;
    schedule.print_lr(text);
    QCOMPARE(text.str(), std::string("learning rate of parameter group 0: 0.0729\n"));
  }

  void a_lone_handler_acts_at_every_nth_call() {
    const auto counting = std::make_shared<CountingHandler>();
    colossalai::GradAccumGradientHandler handler(counting, 3);
    for (int call = 1; call <= 10; ++call) {
      handler.handle_gradient();
      QCOMPARE(counting->calls, call / 3);
    }
  }

  void handlers_of_a_window_see_the_whole_sum_once() {
    auto [line, sgd] = SgdLine(0.0);
    Numbers numbers(8);
    const auto counting = std::make_shared<CountingHandler>(&line);
    auto made = colossalai::accumulate_gradient(nullptr, sgd, numbers, 4, {counting});
    for (const int b : *made.dataloader) {
      made.optimizer->zero_grad();
      made.optimizer->backward(line.loss(b));
      for (const auto& handler : made.gradient_handlers) {
        handler->handle_gradient();
        handler->handle_gradient();  // a sum is not taken twice
      }
      made.optimizer->step();
    }
    QCOMPARE(counting->calls, 2);
    ACCRUE_NEAR(counting->seen[0], -30.0);
    ACCRUE_NEAR(counting->seen[1], -174.0);
  }

  void a_handler_that_comes_after_the_step_is_told() {
    auto [line, sgd] = SgdLine();
    Numbers numbers(4);
    const auto counting = std::make_shared<CountingHandler>();
    auto made = colossalai::accumulate_gradient(nullptr, sgd, numbers, 2, {counting});
    const auto handle = [&made] { made.gradient_handlers[0]->handle_gradient(); };
    handle();  // before any backward there is nothing to reduce
    made.optimizer->backward(line.loss(1.0));
    made.optimizer->step();
    handle();
    made.optimizer->backward(line.loss(1.0));
    made.optimizer->step();
    QVERIFY(thrown_by<std::logic_error>(handle).contains(u"before clip_grad_norm() and step()"));
    QCOMPARE(counting->calls, 0);
  }

  void a_backward_that_has_to_reduce_is_refused_under_no_sync() {
    auto [line, sgd] = SgdLine();
    CountedSync sync;
    GradAccumOptimizer optimizer(sgd, 1, &sync);
    const auto quiet = sync.no_sync();
    QVERIFY(thrown_by<std::logic_error>([&] { optimizer.backward(line.loss(1.0)); }).contains(u"no_sync scope"));
    const at::Tensor one = at::full({1}, 1.0, at::kDouble);
    QVERIFY(thrown_by<std::logic_error>([&] { optimizer.backward_by_grad(line.w, one); }).contains(u"no_sync scope"));
  }

  void the_engine_reduces_then_clips_then_steps() {
    auto [line, sgd] = SgdLine(1.0);
    Numbers numbers(4);
    const auto counting = std::make_shared<CountingHandler>(&line);
    auto made = colossalai::accumulate_gradient(nullptr, sgd, numbers, 2, {counting});
    colossalai::Engine engine(made.optimizer, made.gradient_handlers, 1.0);
    std::vector<StepOutcome> outcomes;
    for (const int b : *made.dataloader) {
      if (b == 3) ACCRUE_NEAR(line.weight(), 10.0 / (10.0 + 1e-6));
      engine.zero_grad();
      engine.backward(line.loss(b));
      outcomes.push_back(engine.step());
    }
    ACCRUE_NEAR(counting->seen.at(0), -10.0);  // before the clip
    QCOMPARE(counting->calls, 2);
    QCOMPARE(outcomes, (std::vector<StepOutcome>{StepOutcome::accumulated, StepOutcome::updated,
                                                 StepOutcome::accumulated, StepOutcome::updated}));
  }

  void the_zero_handler_calls_the_optimizers_own_reduction() {
    struct Zero final : colossalai::SyncsGradients {
      void sync_grad() override { ++calls; }
      int calls = 0;
    } zero;
    colossalai::GradAccumGradientHandler handler(std::make_shared<colossalai::ZeROGradientHandler>(zero), 2);
    for (int call = 0; call < 5; ++call) handler.handle_gradient();
    QCOMPARE(zero.calls, 2);
  }

  void who_reduces_follows_from_the_setup() {
    using colossalai::choose_reduction;
    using colossalai::GradientReduction;
    QCOMPARE(choose_reduction({.data_parallel = 4, .zero = true}), GradientReduction::zero_handler);
    QCOMPARE(choose_reduction({.sequence_parallel = true}), GradientReduction::distributed_data_parallel);
    QCOMPARE(choose_reduction({.data_parallel = 2}), GradientReduction::distributed_data_parallel);
    QCOMPARE(choose_reduction({.data_parallel = 2, .pipeline = true}), GradientReduction::data_parallel_handler);
    QCOMPARE(choose_reduction({.data_parallel = 2, .naive_amp = true}), GradientReduction::data_parallel_handler);
    QCOMPARE(choose_reduction({}), GradientReduction::none);
  }

  void an_overflow_under_the_engines_clip_skips_its_window_alone() {
    auto [line, sgd] = SgdLine();
    Numbers numbers(12);
    const auto amp = std::make_shared<llm::AMPOptimizer>(line, sgd, GradScaler({.init_scale = 1024.0}));
    const auto decay = std::make_shared<LambdaLR>(decay_of(sgd));
    auto made = colossalai::accumulate_gradient(nullptr, amp, numbers, 4, {}, decay);
    colossalai::Engine engine(made.optimizer, {}, 1e6);  // a clip that unscales and changes nothing
    std::vector<StepOutcome> outcomes;
    for (const int b : *made.dataloader) {
      engine.zero_grad();
      const at::Tensor loss = line.loss(b);
      engine.backward(b == 6 ? loss * std::numeric_limits<double>::infinity() : loss);
      const StepOutcome outcome = engine.step();
      made.lr_scheduler->step();
      if (b % 4 == 0) outcomes.push_back(outcome);
      if (b % 4 == 0) QCOMPARE(decay->position(), std::int64_t{b / 4});
    }
    QCOMPARE(outcomes,
             (std::vector<StepOutcome>{StepOutcome::updated, StepOutcome::skipped_overflow, StepOutcome::updated}));
    const double last = 1.0 - 0.81 * ten_batch_lr * 2.0 * (81 + 100 + 121 + 144) / 4;  // at the third rate
    ACCRUE_NEAR(line.weight(), 2.0 - 2.0 * 0.925 * last);
    QCOMPARE(amp->scaler().get_scale(), 512.0);
  }
};

ACCRUE_TEST_MAIN(TestColossalaiAccumulation)

}  // namespace test_colossalai_accumulation
#include "test_colossalai_accumulation.moc"

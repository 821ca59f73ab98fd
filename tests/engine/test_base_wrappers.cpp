// SPDX-License-Identifier: Apache-2.0
// The base of the accumulation systems: LibTorch's optimizers and schedulers behind one interface, and their state.
#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <QStringList>
#include <QTest>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "accrue/accumulation/base_optimizer.h"
#include "accrue/accumulation/base_scheduler.h"
#include "accrue/accumulation/colossalai.h"
#include "accrue/accumulation/llm.h"
#include "accrue/accumulation/mmengine/optim_wrapper.h"
#include "accrue/comm/rendezvous.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/ten_batches.h"
#include "support/test_program.h"
#include "support/window_positions.h"

namespace test_base_wrappers {

using namespace accrue;
using namespace accrue::test;

namespace {

#define ADAM                          \
  "Adam (\n"                          \
  "Parameter Group 0: 1 parameters\n" \
  "    lr: 0.1\n"                     \
  "    betas: (0.9, 0.999)\n"         \
  "    eps: 1e-08\n"                  \
  "    weight_decay: 0\n"             \
  "    amsgrad: false\n"              \
  ")"
#define RATE "learning rate of parameter group 0: 0.1"

/// Prints something made over an optimizer.
using Print = std::function<void(std::ostream&, torch::optim::Optimizer&)>;

struct Weight {
  at::Tensor w = at::ones({3}, at::kDouble).requires_grad_();
  at::Tensor loss() const { return (w * w).sum(); }
  double first() const { return w[0].item<double>(); }
};

}  // namespace

class TestBaseWrappers : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_torch_optimizer_steps_through_its_wrapper() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.25));
    const auto optimizer = wrap(sgd);
    optimizer->backward(weight.loss());
    QCOMPARE(optimizer->step(), StepOutcome::updated);
    QCOMPARE(weight.first(), 0.5);
    QCOMPARE(&optimizer->torch(), static_cast<torch::optim::Optimizer*>(&sgd));
    QCOMPARE(optimizer->parameters().size(), std::size_t{1});
  }

  void a_step_without_any_gradient_says_so() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.25));
    QCOMPARE(wrap(sgd)->step(), StepOutcome::skipped_empty);
    QCOMPARE(weight.first(), 1.0);
  }

  /// AdamW(0.1, weight decay 0.1): used in the first of five updates only, as PyTorch leaves it: 0.99 - 0.1.
  void a_weight_that_is_not_used_again_is_left_alone() {
    Weight weight, other;
    torch::optim::AdamW adamw({weight.w, other.w}, torch::optim::AdamWOptions(0.1).weight_decay(0.1));
    const auto optimizer = wrap(adamw);
    for (int update = 0; update < 5; ++update) {
      optimizer->zero_grad();
      optimizer->backward(update == 0 ? weight.loss() : other.loss());
      optimizer->step();
    }
    QVERIFY(std::abs(weight.first() - 0.89) < 1e-8);
  }

  void zeroed_gradients_stay_where_they_lie() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.25));
    const auto optimizer = wrap(sgd);
    optimizer->backward(weight.loss());
    const void* before = weight.w.grad().const_data_ptr();
    optimizer->zero_grad(/*set_to_none=*/false);
    QCOMPARE(weight.w.grad().const_data_ptr(), before);
    QCOMPARE(weight.w.grad().abs().sum().item<double>(), 0.0);
  }

  void loading_a_state_from_before_the_first_step_forgets_the_moments() {
    Weight weight;
    torch::optim::Adam adam({weight.w}, torch::optim::AdamOptions(0.1));
    const auto optimizer = wrap(adam);
    const StateDict untouched = optimizer->state_dict();
    optimizer->backward(weight.loss());
    optimizer->step();
    QCOMPARE(adam.state().size(), std::size_t{1});
    optimizer->load_state_dict(untouched);
    QCOMPARE(adam.state().size(), std::size_t{0});
  }

  void a_state_that_does_not_fit_changes_nothing() {
    Weight weight, second;
    torch::optim::Adam adam({weight.w}, torch::optim::AdamOptions(0.1));
    const auto optimizer = wrap(adam);
    optimizer->backward(weight.loss());
    optimizer->step();
    torch::optim::Adam two({weight.w, second.w}, torch::optim::AdamOptions(0.3));
    const auto text = refused([&] { optimizer->load_state_dict(wrap(two)->state_dict()); });
    QVERIFY2(text.find("\"group.0.parameters\" does not fit") != std::string::npos, text.c_str());
    QCOMPARE(adam.state().size(), std::size_t{1});
    QCOMPARE(learning_rates(adam).at(0), 0.1);
    QVERIFY(refused([&] { optimizer->load_state_dict({}); }).find("no entries under") != std::string::npos);
    QVERIFY(!refused([&] { optimizer->load_state_dict({{"optimizer", at::zeros({7}, at::kByte)}}); }).empty());
    QCOMPARE(adam.state().size(), std::size_t{1});
  }

  void every_entry_of_an_optimizers_state_is_checked_data() {
    QTest::addColumn<QString>("entry");
    QTest::addColumn<QString>("says");
    QTest::newRow("moments of another shape") << "state.0.exp_avg"
                                              << "its shape";
    QTest::newRow("whole numbers for moments") << "state.0.exp_avg_sq"
                                               << "no real numbers";
    QTest::newRow("a negative step") << "state.0.step"
                                     << "negative";
    QTest::newRow("three betas") << "group.0.betas"
                                 << "two numbers";
    QTest::newRow("a rate that is missing") << "group.0.lr"
                                            << "no entry";
    QTest::newRow("moments that are missing") << "state.0.exp_avg"
                                              << "no entry";
    QTest::newRow("another kind") << "kind"
                                  << "it is of SGD";
    QTest::newRow("a group too many") << "group.1.parameters"
                                      << "1 groups";
  }
  void every_entry_of_an_optimizers_state_is_checked() {
    QFETCH(QString, entry);
    QFETCH(QString, says);
    Weight weight;
    torch::optim::Adam adam({weight.w}, torch::optim::AdamOptions(0.1));
    const auto optimizer = wrap(adam);
    optimizer->backward(weight.loss());
    optimizer->step();
    StateDict state = optimizer->state_dict();
    const std::string name = "optimizer." + entry.toStdString();
    if (says.contains(u"no entry"))
      state.erase(name);
    else if (entry == u"kind")
      state[name] = at::tensor({83, 71, 68}, at::kByte);
    else if (entry.endsWith(u"step"))
      state[name] = state_number(std::int64_t{-1});
    else if (entry.endsWith(u"exp_avg_sq"))
      state[name] = at::ones({3}, at::kLong);
    else
      state[name] = at::ones({4}, at::kDouble);
    if (entry.startsWith(u"group.1")) state[name] = state_number(std::int64_t{0});
    const StateDict before = optimizer->state_dict();
    const auto text = refused([&] { optimizer->load_state_dict(state); });
    QVERIFY2(text.find(says.toStdString()) != std::string::npos, text.c_str());
    for (const auto& [each, tensor] : optimizer->state_dict()) QVERIFY(at::equal(tensor, before.at(each)));
  }

  /// Two updates, save, two more; and the same two from the state in a fresh optimizer of the kind, of another rate.
  void every_optimizer_of_the_library_continues_from_its_state_data() {
    QTest::addColumn<QString>("kind");
    for (const char* kind : {"SGD", "Adam", "Adam with amsgrad", "AdamW", "RMSprop", "Adagrad"})
      QTest::newRow(kind) << QString::fromLatin1(kind);
  }
  void every_optimizer_of_the_library_continues_from_its_state() {
    QFETCH(QString, kind);
    const auto make = [&](const Weight& weight, double lr) -> std::unique_ptr<torch::optim::Optimizer> {
      const std::vector<at::Tensor> all{weight.w};
      if (kind == u"SGD")
        return std::make_unique<torch::optim::SGD>(all, torch::optim::SGDOptions(lr).momentum(0.9).nesterov(true));
      if (kind == u"Adam") return std::make_unique<torch::optim::Adam>(all, torch::optim::AdamOptions(lr));
      if (kind == u"Adam with amsgrad")
        return std::make_unique<torch::optim::Adam>(all, torch::optim::AdamOptions(lr).amsgrad(true));
      if (kind == u"AdamW") return std::make_unique<torch::optim::AdamW>(all, torch::optim::AdamWOptions(lr));
      if (kind == u"RMSprop")
        return std::make_unique<torch::optim::RMSprop>(all,
                                                       torch::optim::RMSpropOptions(lr).momentum(0.5).centered(true));
      return std::make_unique<torch::optim::Adagrad>(all, torch::optim::AdagradOptions(lr).lr_decay(0.1));
    };
    const auto update = [](BaseOptimizer& with, const Weight& of) {
      with.zero_grad();
      with.backward(of.loss());
      with.step();
    };
    Weight weight, other;
    const auto first = make(weight, 0.01), second = make(other, 0.5);
    const auto optimizer = wrap(*first), resumed = wrap(*second);
    for (int i = 0; i < 2; ++i) update(*optimizer, weight);
    const StateDict state = optimizer->state_dict();
    for (const auto& [name, tensor] : state) QVERIFY2(tensor.numel() <= 8, name.c_str());  // values, not an archive
    resumed->load_state_dict(state);
    {
      const at::NoGradGuard no_grad;
      other.w.copy_(weight.w);
    }
    for (int i = 0; i < 2; ++i) update(*optimizer, weight);
    for (int i = 0; i < 2; ++i) update(*resumed, other);
    QVERIFY(at::equal(weight.w, other.w));
  }

  void numbers_in_a_state_are_checked() {
    const StateDict state{{"n", state_number(std::int64_t{7})}, {"x", state_number(0.1)}, {"two", at::zeros({2})}};
    QCOMPARE(integer_of(state, "n"), std::int64_t{7});
    QCOMPARE(real_of(state, "x"), 0.1);
    QVERIFY(!refused([&] { integer_of(state, "x"); }).empty());
    QVERIFY(!refused([&] { real_of(state, "two"); }).empty());
    QVERIFY(refused([&] { real_of(state, "y"); }).find("\"y\"") != std::string::npos);
  }

  void parts_of_a_state_go_under_a_name_and_come_back() {
    StateDict state{{"window", state_number(1.0)}};
    put_under(state, "window", {{"a", state_number(2.0)}, {"b.c", state_number(3.0)}});
    QCOMPARE(state.size(), std::size_t{3});
    const StateDict part = take_under(state, "window");
    QCOMPARE(part.size(), std::size_t{2});
    QCOMPARE(real_of(part, "a"), 2.0);
    QCOMPARE(real_of(part, "b.c"), 3.0);
  }

  void every_field_of_a_window_position_survives() {
    const WindowPosition position = numbered_position();
    QVERIFY(window_position(window_state(position)) == position);
    StateDict state = window_state(position);
    for (const std::int64_t impossible : {std::int64_t{-2}, std::numeric_limits<std::int64_t>::max()}) {
      state["counter"] = state_number(impossible);
      QVERIFY(refused([&] { window_position(state); }).find("\"counter\"") != std::string::npos);
    }
    state.erase("counter");
    QVERIFY(refused([&] { window_position(state); }).find("\"counter\"") != std::string::npos);
  }

  void lambda_lr_scales_each_groups_own_rate() {
    Weight first, second;
    torch::optim::SGD sgd({first.w}, torch::optim::SGDOptions(1.0));
    sgd.add_param_group(torch::optim::OptimizerParamGroup({second.w}, std::make_unique<torch::optim::SGDOptions>(0.5)));
    LambdaLR schedule(
        sgd, [](std::int64_t n) { return 1.0 / static_cast<double>(n + 1); }, 10);
    QCOMPARE(learning_rates(sgd), (std::vector<double>{1.0, 0.5}));
    schedule.step();
    QCOMPARE(learning_rates(sgd), (std::vector<double>{0.5, 0.25}));
    QCOMPARE(schedule.get_last_lr(), (std::vector<double>{0.5, 0.25}));
    const StateDict state = schedule.state_dict();
    schedule.step();
    schedule.load_state_dict(state);
    QCOMPARE(schedule.position(), std::int64_t{1});
    QCOMPARE(learning_rates(sgd), (std::vector<double>{0.5, 0.25}));
    QCOMPARE(schedule.total_steps(), std::optional<std::int64_t>(10));
  }

  void a_scheduler_of_the_library_is_saved_with_its_position() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(1.0)), other({weight.w}, torch::optim::SGDOptions(1.0));
    torch::optim::StepLR halves(sgd, 2, 0.5), again(other, 2, 0.5);
    const auto schedule = wrap(halves, sgd), resumed = wrap(again, other);
    for (int i = 0; i < 4; ++i) schedule->step();
    resumed->load_state_dict(schedule->state_dict());
    QCOMPARE(resumed->get_last_lr(), schedule->get_last_lr());
    for (int i = 0; i < 5; ++i) {
      schedule->step();
      resumed->step();
      QCOMPARE(learning_rates(other), learning_rates(sgd));
    }
    QVERIFY(learning_rates(sgd).at(0) < 0.2);
    QVERIFY(!refused([&] { resumed->load_state_dict({}); }).empty());
  }

  /// torch.optim.lr_scheduler.StepLR(step_size=2, gamma=0.5) of PyTorch 2.11, lr 1: the rates of six steps.
  void step_lr_is_pythons() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(1.0)), other({weight.w}, torch::optim::SGDOptions(1.0));
    StepLR ours(sgd, 2, 0.5);
    torch::optim::StepLR libtorchs(other, 2, 0.5);
    const auto wrapped = wrap(libtorchs, other);
    std::vector<double> rates, late;
    for (int i = 0; i < 6; ++i) {
      rates.push_back(learning_rates(sgd).at(0));
      late.push_back(learning_rates(other).at(0));
      ours.step();
      wrapped->step();
    }
    QCOMPARE(rates, (std::vector<double>{1.0, 1.0, 0.5, 0.5, 0.25, 0.25}));
    QCOMPARE(late, (std::vector<double>{1.0, 1.0, 1.0, 0.5, 0.5, 0.25}));  // one step later, as wrap() says
    QVERIFY(!refused([&] { StepLR(sgd, 0); }).empty());
  }

  void a_schedule_goes_to_a_position() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(1.0));
    StepLR schedule(sgd, 2, 0.5);
    schedule.step(5);
    QCOMPARE(learning_rates(sgd).at(0), 0.25);
    schedule.step();
    QCOMPARE(schedule.position(), std::int64_t{6});
    torch::optim::StepLR libtorchs(sgd, 2, 0.5);
    QVERIFY(refused([&] { wrap(libtorchs, sgd)->step(3); }).find("cannot go to a position") != std::string::npos);
  }

  void everything_prints_what_it_is_data() {
    const Rows<Print, QByteArray> row;
    row(
        "an optimizer", [](auto& out, auto& adam) { out << *wrap(adam); }, ADAM);
    row(
        "llm's optimizer",
        [](auto& out, auto& adam) {
          llm::GradientAccumulationOptimizer optimizer(adam, nullptr, 4);
          optimizer.backward(Weight().loss());
          out << optimizer;
        },
        "GradientAccumulationOptimizer: 1 of 4 micro-steps done\n" ADAM);
    row(
        "Colossal-AI's optimizer", [](auto& out, auto& adam) { out << colossalai::GradAccumOptimizer(adam, 4); },
        "GradAccumOptimizer: 0 of 4 micro-steps done\n" ADAM);
    row(
        "MMEngine's wrapper",
        [](auto& out, auto& adam) { out << mmengine::OptimWrapper(adam, {.accumulative_counts = 4}); },
        "Type: OptimWrapper\n_accumulative_counts: 4\noptimizer:\n" ADAM);
    row(
        "a schedule", [](auto& out, auto& adam) { out << decay_of(adam); }, RATE);
    row(
        "llm's schedule",
        [](auto& out, auto& adam) {
          auto decay = decay_of(adam);
          out << llm::GradientAccumulationLRScheduler(decay, 4);
        },
        "GradientAccumulationLRScheduler: one step per window of 4\n" RATE);
    row(
        "Colossal-AI's schedule",
        [](auto& out, auto& adam) {
          auto decay = decay_of(adam);
          out << colossalai::GradAccumLrSchedulerByStep(decay, 4);
        },
        "GradAccumLrSchedulerByStep: one step per window of 4\n" RATE);
    row(
        "a handler",
        [](auto& out, auto& adam) {
          const auto axis = single_communicator();
          out << colossalai::GradAccumGradientHandler(
              std::make_shared<colossalai::DataParallelGradientHandler>(adam.param_groups()[0].params(), *axis), 4);
        },
        "GradAccumGradientHandler: once per window of 4\nDataParallelGradientHandler: 1 parameter over 1 rank");
    row(
        "a handler of experts",
        [](auto& out, auto& adam) {
          const auto axis = single_communicator();
          const auto parameters = adam.param_groups()[0].params();
          out << colossalai::MoeGradientHandler(parameters, *axis,
                                                std::vector<colossalai::MoeGradientHandler::Group>{{{}, axis.get()}});
        },
        "MoeGradientHandler\nDataParallelGradientHandler: 1 parameter over 1 rank\n"
        "DataParallelGradientHandler: 0 parameters over 1 rank");
    row(
        "Accelerate's plug-in", [](auto& out, auto&) { out << accelerate::GradientAccumulationPlugin{.num_steps = 4}; },
        "GradientAccumulationPlugin(num_steps=4, adjust_scheduler=True, sync_with_dataloader=True, "
        "sync_each_batch=False)");
    row(
        "an Accelerator",
        [](auto& out, auto&) {
          const auto axis = single_communicator();
          out << accelerate::Accelerator({.gradient_accumulation_steps = 4}, *axis);
        },
        "Num processes: 1\nProcess index: 0\nDevice: cpu\nMixed precision type: no\nSync Gradients: true\n"
        "At end of current dataloader: false\nExtra samples added: -1\nGradient accumulation plugin: num_steps 4, "
        "adjust_scheduler true, sync_with_dataloader true, sync_each_batch false\n");
    row(
        "Accelerate's optimizer and schedule",
        [](auto& out, auto& adam) {
          const auto axis = single_communicator();
          accelerate::Accelerator accelerator({.gradient_accumulation_steps = 4}, *axis);
          auto& optimizer = accelerator.prepare(adam);
          out << optimizer << '\n' << accelerator.prepare(std::make_shared<LambdaLR>(decay_of(adam)), {&optimizer});
        },
        "AcceleratedOptimizer\n" ADAM "\nAcceleratedScheduler at position 0\n" RATE);
  }
  void everything_prints_what_it_is() {
    const auto [print, text] = current_row<Print, QByteArray>();
    Weight weight;
    torch::optim::Adam adam({weight.w}, torch::optim::AdamOptions(0.1));
    std::ostringstream out;
    print(out, adam);
    QCOMPARE(QByteArray::fromStdString(out.str()), text);
  }

  void a_closure_computes_the_gradients_of_its_step() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.25));
    const auto outcome = wrap(sgd)->step([&] {
      const at::Tensor loss = weight.loss();
      loss.backward();
      return loss;
    });
    QCOMPARE(outcome, StepOutcome::updated);
    QCOMPARE(weight.first(), 0.5);
  }

  void a_graph_is_kept_where_asked_for() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.25));
    const auto optimizer = wrap(sgd);
    const at::Tensor loss = weight.loss();
    optimizer->backward(loss, {.retain_graph = true});
    optimizer->backward(loss);
    QCOMPARE(weight.w.grad()[0].item<double>(), 4.0);
    QVERIFY_EXCEPTION_THROWN(optimizer->backward(loss), std::exception);
  }

  void a_plain_optimizers_state_is_loaded_and_the_window_stays() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.1));
    set_learning_rates(sgd, {0.7});
    const StateDict plain = wrap(sgd)->state_dict();
    set_learning_rates(sgd, {0.1});
    llm::GradientAccumulationOptimizer optimizer(sgd, nullptr, 3);
    optimizer.backward(weight.loss());
    optimizer.load_state_dict(plain);
    QCOMPARE(learning_rates(sgd).at(0), 0.7);
    QCOMPARE(optimizer.window().open_micro_steps(), std::int64_t{1});
  }

  void a_schedule_that_moves_before_the_first_step_is_warned_of() {
    struct Noted : c10::WarningHandler {
      void process(const c10::Warning& warning) override { texts << QString::fromStdString(warning.msg()); }
      QStringList texts;
    } noted;
    for (const bool steps_first : {true, false}) {
      Weight weight;
      torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.1));
      LambdaLR decay(sgd, [](std::int64_t) { return 1.0; });
      const auto [optimizer, schedule] = llm::initialize(nullptr, sgd, decay, 1);
      const c10::WarningUtils::WarningHandlerGuard guard(&noted);
      for (int m = 0; m < 3; ++m) {
        optimizer->backward(weight.loss());
        if (steps_first) optimizer->step();
        schedule->step();
        if (!steps_first) optimizer->step();
      }
    }
    QCOMPARE(noted.texts.size(), 1);
    QVERIFY2(noted.texts.front().contains(u"before the optimizer's first step"), qPrintable(noted.texts.front()));
  }

  void a_curve_is_in_force_from_construction_and_tells_its_end() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(9.0));
    LrCurve curve;
    curve.kind = ScheduleKind::linear;
    curve.lr = 1.0;
    curve.total = 4;
    const auto schedule = make_curve_lr(sgd, curve);
    QCOMPARE(learning_rates(sgd).at(0), 1.0);
    schedule->step();
    QCOMPARE(learning_rates(sgd).at(0), 0.75);
    QCOMPARE(schedule->total_steps(), std::optional<std::int64_t>(4));
    curve.kind = ScheduleKind::exponential;
    QVERIFY(!make_curve_lr(sgd, curve)->total_steps());
    StateDict state = schedule->state_dict();
    state["position"] = state_number(std::int64_t{3});
    schedule->load_state_dict(state);
    QCOMPARE(learning_rates(sgd).at(0), 0.25);
  }

  void a_curve_keeps_the_proportions_of_the_groups() {
    Weight weight, second;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.5));
    sgd.add_param_group(
        torch::optim::OptimizerParamGroup({second.w}, std::make_unique<torch::optim::SGDOptions>(0.125)));
    LrCurve curve;
    curve.kind = ScheduleKind::linear;
    curve.lr = 1.0;
    curve.total = 4;
    const auto schedule = make_curve_lr(sgd, curve);
    QCOMPARE(learning_rates(sgd), (std::vector<double>{1.0, 0.25}));
    schedule->step();
    QCOMPARE(schedule->get_last_lr(), (std::vector<double>{0.75, 0.1875}));
    const StateDict state = schedule->state_dict();
    set_learning_rates(sgd, {0.0, 0.0});
    const auto resumed = make_curve_lr(sgd, curve);  // nothing to see of the proportions any more
    resumed->load_state_dict(state);
    QCOMPARE(learning_rates(sgd), (std::vector<double>{0.75, 0.1875}));
  }

  void a_group_added_after_the_schedule_was_made_is_told() {
    Weight weight, second;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.5));
    LambdaLR schedule(sgd, [](std::int64_t) { return 1.0; });
    sgd.add_param_group(
        torch::optim::OptimizerParamGroup({second.w}, std::make_unique<torch::optim::SGDOptions>(0.125)));
    QVERIFY(contains(refused([&] { schedule.step(); }), "make the schedule anew after add_param_group()"));
  }

  void an_optimizer_that_asks_for_the_loss_again_is_refused() {
    Weight weight;
    torch::optim::LBFGS lbfgs({weight.w}, torch::optim::LBFGSOptions(0.5));
    QVERIFY(contains(refused([&] { wrap(lbfgs); }), "computes the loss again within its step"));
  }
};

ACCRUE_TEST_MAIN(TestBaseWrappers)

}  // namespace test_base_wrappers
#include "test_base_wrappers.moc"

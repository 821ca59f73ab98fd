// SPDX-License-Identifier: Apache-2.0
// The base of the accumulation systems: LibTorch's optimizers and schedulers behind one interface, and their state.
#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <stdexcept>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/accumulation/base_scheduler.h"
#include "support/refusals.h"

using namespace accrue;
using namespace accrue::test;

namespace {

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

  void zeroed_gradients_stay_where_they_lie() {
    Weight weight;
    torch::optim::SGD sgd({weight.w}, torch::optim::SGDOptions(0.25));
    const auto optimizer = wrap(sgd);
    optimizer->backward(weight.loss());
    const void* before = weight.w.grad().const_data_ptr();
    optimizer->zero_grad();
    QCOMPARE(weight.w.grad().const_data_ptr(), before);
    QCOMPARE(weight.w.grad().abs().sum().item<double>(), 0.0);
  }

  void optimizer_state_continues_bit_for_bit_in_another_optimizer() {
    Weight weight;
    torch::optim::Adam adam({weight.w}, torch::optim::AdamOptions(0.1));
    const auto optimizer = wrap(adam);
    const auto update = [](BaseOptimizer& with, const Weight& of) {
      with.zero_grad();
      with.backward(of.loss());
      with.step();
    };
    update(*optimizer, weight);
    const StateDict state = optimizer->state_dict();
    Weight other;
    other.w = weight.w.detach().clone().requires_grad_();
    torch::optim::Adam fresh({other.w}, torch::optim::AdamOptions(0.7));
    const auto resumed = wrap(fresh);
    resumed->load_state_dict(state);
    QCOMPARE(learning_rates(fresh).at(0), 0.1);
    update(*optimizer, weight);
    update(*resumed, other);
    QVERIFY(at::equal(weight.w, other.w));
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
    QVERIFY2(text.find("\"optimizer\" does not fit") != std::string::npos, text.c_str());
    QCOMPARE(adam.state().size(), std::size_t{1});
    QCOMPARE(learning_rates(adam).at(0), 0.1);
    QVERIFY(refused([&] { optimizer->load_state_dict({}); }).find("no entry \"optimizer\"") != std::string::npos);
    QVERIFY(!refused([&] { optimizer->load_state_dict({{"optimizer", at::zeros({7}, at::kByte)}}); }).empty());
    QCOMPARE(adam.state().size(), std::size_t{1});
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
    const WindowPosition position{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, true};
    QVERIFY(window_position(window_state(position)) == position);
    StateDict state = window_state(position);
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
    schedule->load_state_dict({{"position", state_number(std::int64_t{3})}});
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

QTEST_GUILESS_MAIN(TestBaseWrappers)
#include "test_base_wrappers.moc"

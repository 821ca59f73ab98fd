// SPDX-License-Identifier: Apache-2.0
// Colossal-AI's optimizers as classes for any program: number types, groups, state by name, and what they refuse.
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <QTest>
#include <cmath>
#include <limits>
#include <memory>
#include <sstream>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/optim/cpu_adam.h"
#include "accrue/optim/fused_adam.h"
#include "accrue/optim/fused_lamb.h"
#include "accrue/optim/fused_sgd.h"
#include "accrue/optim/hybrid_adam.h"
#include "accrue/optim/lamb.h"
#include "accrue/optim/lars.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_optimizer_classes {

using namespace accrue;
using namespace accrue::test;
using torch::optim::Optimizer;

namespace {

const std::vector<std::string> all_names{"CPUAdam", "FusedAdam", "FusedLAMB", "FusedSGD", "HybridAdam", "Lamb", "Lars"};

std::shared_ptr<BaseOptimizer> made(const std::string& name, const std::vector<at::Tensor>& params) {
  OptimizerConfig config{.type = name, .settings = {{"lr", {0.05}}, {"weight_decay", {0.1}}}};
  if (name == "FusedSGD" || name == "Lars") config.settings["momentum"] = {0.9};
  return build_optimizer(params, config);
}

std::vector<at::Tensor> parameters(at::ScalarType type) {
  at::manual_seed(1);
  return {at::randn({30, 41}, type).requires_grad_(), at::randn({7}, type).requires_grad_()};
}

void draw_gradients(std::vector<at::Tensor>& params) {
  for (at::Tensor& param : params) param.mutable_grad() = at::randn_like(param) * 0.1;
}

double largest(const at::Tensor& tensor) {
  return tensor.abs().max().item<double>();
}

}  // namespace

class TestOptimizerClasses : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void defaults_are_the_originals() {
    QCOMPARE(CPUAdamOptions().lr(), 1e-3);
    QCOMPARE(CPUAdamOptions().eps(), 1e-8);
    QVERIFY(CPUAdamOptions().adamw_mode() && CPUAdamOptions().bias_correction());
    QCOMPARE(FusedAdamOptions().weight_decay(), 0.0);
    QVERIFY(FusedAdamOptions().set_grad_none() && !FusedAdamOptions().amsgrad());
    QCOMPARE(FusedLAMBOptions().eps(), 1e-6);
    QCOMPARE(FusedLAMBOptions().weight_decay(), 0.01);
    QCOMPARE(FusedLAMBOptions().max_grad_norm(), 1.0);
    QVERIFY(FusedLAMBOptions().grad_averaging() && !FusedLAMBOptions().use_nvlamb());
    QCOMPARE(HybridAdamOptions().nvme_offload_fraction(), 0.0);
    QCOMPARE(LambOptions().eps(), 1e-6);
    QVERIFY(!LambOptions().bias_correction() && !LambOptions().adam());
    QCOMPARE(LarsOptions().eeta(), 1e-3);
    QCOMPARE(LarsOptions().epsilon(), 0.0);
    QVERIFY(LarsOptions().lars());
    QVERIFY(!FusedSGDOptions(0.1).wd_after_momentum());
    QCOMPARE(std::get<1>(LambOptions().betas()), 0.999);
  }

  /// Two further steps after torch::load() are those without it, to the bit.
  void torch_save_keeps_the_state_data() {
    const Rows<std::string, double> row;  // which, and how much of the state lies in files
    for (const std::string& name : all_names) row(name.c_str(), name, 0.0);
    row("CPUAdam in files", "CPUAdam", 0.5);
    row("HybridAdam in files", "HybridAdam", 1.0);
  }
  void torch_save_keeps_the_state() {
    const auto [name, in_files] = current_row<std::string, double>();
    std::vector<at::Tensor> params = parameters(at::kFloat);
    const auto build = [&](const std::vector<at::Tensor>& of) -> std::shared_ptr<Optimizer> {
      if (in_files > 0.0 && name == "CPUAdam")
        return std::make_shared<CPUAdam>(of, CPUAdamOptions(0.05).nvme_offload_fraction(in_files));
      if (in_files > 0.0)
        return std::make_shared<HybridAdam>(of, HybridAdamOptions(0.05).nvme_offload_fraction(in_files));
      const auto wrapped = made(name, of);
      return {wrapped, &wrapped->torch()};
    };
    const auto one = build(params);
    for (int step = 0; step < 3; ++step) draw_gradients(params), one->step();
    one->param_groups()[0].options().set_lr(0.02);  // as a schedule leaves it
    std::stringstream file;
    torch::serialize::OutputArchive saved;
    one->save(saved);
    saved.save_to(file);
    std::vector<at::Tensor> others;
    for (const at::Tensor& each : params) others.push_back(each.detach().clone().requires_grad_());
    const auto two = build(others);
    torch::serialize::InputArchive loaded;
    loaded.load_from(file);
    two->load(loaded);
    for (int step = 0; step < 2; ++step) {
      draw_gradients(params);
      for (std::size_t i = 0; i < params.size(); ++i) others[i].mutable_grad() = params[i].grad().clone();
      one->step();
      two->step();
    }
    for (std::size_t i = 0; i < params.size(); ++i) QVERIFY(at::equal(params[i], others[i]));
  }

  void an_archive_of_another_optimizer_is_refused() {
    std::vector<at::Tensor> params = parameters(at::kFloat);
    Lamb lamb(params);
    HybridAdam adam(params);
    draw_gradients(params);
    lamb.step();
    std::stringstream file;
    torch::serialize::OutputArchive saved;
    lamb.save(saved);
    saved.save_to(file);
    torch::serialize::InputArchive loaded;
    loaded.load_from(file);
    QVERIFY(contains(refused([&] { adam.load(loaded); }), "it is of Lamb, and this is HybridAdam"));
    QVERIFY(adam.state().empty());
  }

  /// Three steps beside float32 ones of the same numbers, within what Colossal-AI's own tests allow, absolute and
  /// relative together.
  void half_precision_follows_float32_data() {
    QTest::addColumn<std::string>("name");
    QTest::addColumn<int>("own");
    QTest::addColumn<int>("other");
    QTest::addColumn<double>("tolerance");
    for (const std::string& name : all_names)
      for (const auto& [text, own, other, tolerance] :
           {std::tuple("float32, float16", at::kFloat, at::kHalf, 1e-5),
            std::tuple("float32, bfloat16", at::kFloat, at::kBFloat16, 1e-5),
            std::tuple("float16, float16", at::kHalf, at::kHalf, 1e-3),
            std::tuple("bfloat16, bfloat16", at::kBFloat16, at::kBFloat16, 4e-3)})
        QTest::addRow("%s: %s", name.c_str(), text)
            << name << static_cast<int>(own) << static_cast<int>(other) << tolerance;
  }
  void half_precision_follows_float32() {
    QFETCH(std::string, name);
    QFETCH(int, own);
    QFETCH(int, other);
    QFETCH(double, tolerance);
    at::manual_seed(5);
    const at::Tensor start = at::rand({4099}).to(static_cast<at::ScalarType>(own));
    at::Tensor ours = start.clone().requires_grad_(), theirs = start.clone().to(at::kFloat).requires_grad_();
    const auto build = [&](const at::Tensor& params) {
      OptimizerConfig config{.type = name, .settings = {{"lr", {1e-2}}}};
      if (name == "FusedSGD" || name == "Lars") config.settings["momentum"] = {0.9};
      if (name == "Lars") config.settings["eeta"] = {1.0};
      if (name == "FusedLAMB") config.settings["max_grad_norm"] = {0.0};
      return build_optimizer({params}, config);
    };
    const auto one = build(ours), two = build(theirs);
    for (int step = 0; step < 3; ++step) {
      // Not so small that float16 rounds their squares' thousandth to zero.
      const at::Tensor grad = (at::rand({4099}) + 0.1).to(static_cast<at::ScalarType>(other));
      ours.mutable_grad() = grad;
      theirs.mutable_grad() = grad.to(at::kFloat);
      one->step();
      two->step();
    }
    QCOMPARE(ours.scalar_type(), static_cast<at::ScalarType>(own));
    QVERIFY(!at::equal(ours.detach(), start));
    const at::Tensor off = (ours.detach().to(at::kFloat) - theirs.detach()).abs();
    QVERIFY2(largest(off / (1.0 + theirs.detach().abs())) <= tolerance, qPrintable(QString::number(largest(off))));
  }

  void state_is_tensors_by_name_and_goes_on_to_the_same_bits_data() {
    QTest::addColumn<std::string>("name");
    for (const std::string& name : all_names) QTest::newRow(name.c_str()) << name;
  }
  void state_is_tensors_by_name_and_goes_on_to_the_same_bits() {
    QFETCH(std::string, name);
    auto through = parameters(at::kFloat), halves = parameters(at::kFloat);
    const auto one = made(name, through), before = made(name, halves);
    for (int step = 0; step < 6; ++step) {
      at::manual_seed(100 + step);
      draw_gradients(through);
      one->step();
    }
    for (int step = 0; step < 3; ++step) {
      at::manual_seed(100 + step);
      draw_gradients(halves);
      before->step();
    }
    const StateDict state = before->state_dict();
    QVERIFY(state.contains(name == "FusedSGD" || name == "Lars" ? "optimizer.state.1.momentum_buffer"
                                                                : "optimizer.state.1.exp_avg_sq"));
    const auto after = made(name, halves);
    after->load_state_dict(state);
    for (int step = 3; step < 6; ++step) {
      at::manual_seed(100 + step);
      draw_gradients(halves);
      after->step();
    }
    for (std::size_t i = 0; i < through.size(); ++i) QVERIFY(at::equal(through[i], halves[i]));
    QVERIFY(contains(after->text(), name.c_str()));
  }

  void parameters_of_any_strides_are_updated() {
    for (const std::string& name : all_names) {
      at::manual_seed(8);
      const at::Tensor start = at::randn({6, 9}), grad = at::randn({6, 9}).t().contiguous().t();
      at::Tensor plain = start.clone().requires_grad_(), turned = start.t().contiguous().t().requires_grad_();
      QVERIFY(!turned.is_contiguous());
      const auto one = made(name, {plain}), two = made(name, {turned});
      for (int step = 0; step < 3; ++step) {
        plain.mutable_grad() = grad;
        turned.mutable_grad() = grad;
        one->step();
        two->step();
      }
      QVERIFY2(at::equal(plain, turned) && !at::equal(plain, start), name.c_str());
    }
  }

  void a_buffer_begins_with_its_own_parameter() {
    at::Tensor early = at::ones({1}, at::kDouble).requires_grad_(), late = at::ones({1}, at::kDouble).requires_grad_();
    FusedSGD sgd({early, late}, FusedSGDOptions(1.0).momentum(0.5).dampening(0.5));
    early.mutable_grad() = at::full({1}, 0.1, at::kDouble);
    sgd.step();
    late.mutable_grad() = at::full({1}, 0.1, at::kDouble);
    sgd.step();  // early: 0.5 * 0.1 + 0.5 * 0.1; late: its first
    QVERIFY(std::abs(early.item<double>() - 0.8) < 1e-15);
    QVERIFY(std::abs(late.item<double>() - 0.9) < 1e-15);
  }

  void a_flag_keeps_fused_sgd_from_stepping() {
    at::Tensor weight = at::ones({3}).requires_grad_();
    FusedSGD sgd({weight}, FusedSGDOptions(1.0).momentum(0.5));
    weight.mutable_grad() = at::full({3}, INFINITY);
    sgd.step(nullptr, true);
    QVERIFY(at::equal(weight, at::ones({3})));
    QVERIFY(sgd.state().empty());
    sgd.step();
    QVERIFY(!weight.isfinite().any().item<bool>());
  }

  void a_loss_scale_is_divided_out_as_gradients_are_read() {
    const auto stepped = [](auto&& optimizer, at::Tensor& weight, double scale) {
      weight.mutable_grad() = at::full({3}, 0.25 * scale);
      optimizer.step(nullptr, scale);
      return weight.detach().clone();
    };
    const auto compare = [&]<typename Class>(std::type_identity<Class>) {
      at::Tensor one = at::ones({3}).requires_grad_(), two = at::ones({3}).requires_grad_();
      const at::Tensor scaled = stepped(Class({one}), one, 1024.0), plain = stepped(Class({two}), two, 1.0);
      return at::equal(scaled, plain) && !at::equal(plain, at::ones({3})) && largest(one.grad() - 256.0) == 0.0;
    };
    QVERIFY(compare(std::type_identity<CPUAdam>{}));
    QVERIFY(compare(std::type_identity<HybridAdam>{}));
    QVERIFY(compare(std::type_identity<FusedAdam>{}));
  }

  /// One element: u is its own trust, so the step is lr * |p| * sign(u); the gradient becomes u.
  void fused_lamb_overwrites_gradients_only_as_a_replay() {
    for (const bool replays : {false, true}) {
      at::Tensor weight = at::full({1}, 2.0, at::kDouble).requires_grad_();
      FusedLAMB lamb({weight}, FusedLAMBOptions(0.1).replay_overwritten_gradients(replays));
      weight.mutable_grad() = at::full({1}, 0.5, at::kDouble);
      lamb.step();
      QVERIFY(std::abs(weight.item<double>() - 1.8) < 1e-12);
      const double u = 0.5 / (0.5 + 1e-6) + 0.01 * 2.0;
      QVERIFY(std::abs(weight.grad().item<double>() - (replays ? u : 0.5)) < 1e-12);
      lamb.zero_grad();
      QVERIFY(!weight.grad().defined());
    }
  }

  void fused_adam_counts_for_the_group_and_cpu_adam_for_each_parameter() {
    at::Tensor early = at::ones({1}, at::kDouble).requires_grad_(), late = at::ones({1}, at::kDouble).requires_grad_();
    const at::Tensor grad = at::full({1}, 0.1, at::kDouble);
    const auto moved = [&](Optimizer& optimizer) {
      late.detach().fill_(1.0);
      late.mutable_grad().reset();
      for (int step = 0; step < 2; ++step) {
        early.mutable_grad() = grad;
        if (step == 1) late.mutable_grad() = grad;
        optimizer.step();
      }
      return 1.0 - late.item<double>();
    };
    FusedAdam fused({early, late}, FusedAdamOptions(0.1));
    CPUAdam apart({early, late}, CPUAdamOptions(0.1));
    // One gradient of 0.1: by its own count a whole step; by the group's, corrected as if it were the second.
    const double first = 0.01 / (1 - 0.81), second = 0.001 * 0.01 / (1 - 0.998001);
    QVERIFY(std::abs(moved(apart) - 0.1) < 1e-8);
    QVERIFY(std::abs(moved(fused) - 0.1 * first / (std::sqrt(second) + 1e-8)) < 1e-12);
  }

  void what_cannot_be_is_refused_by_name_data() {
    QTest::addColumn<std::string>("found");
    QTest::addColumn<std::string>("words");
    const at::Tensor weight = at::ones({2}).requires_grad_();
    const std::vector<at::Tensor> list{weight};
    const auto row = [](const char* name, const std::string& found, const char* words) {
      QTest::newRow(name) << found << std::string(words);
    };
    row("amsgrad", refused([&] { FusedAdam adam(list, FusedAdamOptions().amsgrad(true)); }), "FusedAdam: amsgrad");
    row("amsgrad of FusedLAMB", refused([&] { FusedLAMB lamb(list, FusedLAMBOptions().amsgrad(true)); }),
        "FusedLAMB: amsgrad");
    row("Nesterov without momentum", refused([&] { FusedSGD sgd(list, FusedSGDOptions(0.1).nesterov(true)); }),
        "nesterov needs a momentum");
    row("Nesterov with dampening",
        refused([&] { FusedSGD sgd(list, FusedSGDOptions(0.1).momentum(0.9).dampening(0.1).nesterov(true)); }),
        "no dampening");
    row("negative rate", refused([&] { FusedSGD sgd(list, FusedSGDOptions(-0.1)); }), "FusedSGD: lr is -0.1");
    row("eeta of 0", refused([&] { Lars lars(list, LarsOptions().eeta(0.0)); }), "eeta is 0");
    row("eeta above 1", refused([&] { Lars lars(list, LarsOptions().eeta(1.5)); }), "at most 1");
    row("beta of 1", refused([&] { Lamb lamb(list, LambOptions().betas({0.9, 1.0})); }), "below 1");
    row("more than all in files", refused([&] { CPUAdam adam(list, CPUAdamOptions().nvme_offload_fraction(1.5)); }),
        "nvme_offload_fraction is a part");
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(list, std::make_unique<torch::optim::SGDOptions>(0.1));
    row("options of another", refused([&] { Lars lars(groups); }), "Lars: a group's options are of another optimizer");
    for (const std::string& name : all_names) {
      at::Tensor half = at::ones({2}, at::kHalf).requires_grad_();
      half.mutable_grad() = at::ones({2}, at::kBFloat16);
      const auto optimizer = made(name, {half});
      row((name + ", unlike types").c_str(), refused([&] { optimizer->torch().step(); }),
          (name + ": a parameter").c_str());
      at::Tensor table = at::ones({2}).requires_grad_();
      table.mutable_grad() = at::ones({2}).to_sparse();
      const auto of_table = made(name, {table});
      row((name + ", sparse").c_str(), refused([&] { of_table->torch().step(); }), "sparse gradients");
    }
  }
  void what_cannot_be_is_refused_by_name() {
    QFETCH(std::string, found);
    QFETCH(std::string, words);
    QVERIFY2(found.find(words) != std::string::npos, found.c_str());
  }

  void non_finite_gradients_come_through() {
    for (const std::string& name : all_names) {
      at::Tensor weight = at::ones({20}).requires_grad_();
      const auto optimizer = made(name, {weight});
      weight.mutable_grad() = at::full({20}, std::numeric_limits<float>::quiet_NaN());
      optimizer->torch().step();
      QVERIFY2(weight.isnan().all().item<bool>(), name.c_str());
    }
  }
};

ACCRUE_TEST_MAIN(TestOptimizerClasses)

}  // namespace test_optimizer_classes
#include "test_optimizer_classes.moc"

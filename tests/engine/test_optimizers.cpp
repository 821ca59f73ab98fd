// SPDX-License-Identifier: Apache-2.0
// The flat optimizers against LibTorch's own, tensor by tensor, and the norm and clip factor against their definitions.
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <cmath>
#include <limits>

#include "accrue/optim/flat_optimizer.h"
#include "optim/flat_paths.h"
#include "support/test_program.h"
#include "update/judgement.h"
#include "update/model_sums.h"

namespace test_optimizers {

using namespace accrue;

namespace {

constexpr std::int64_t decayed = 1003, plain = 77, padding = 8, numel = decayed + plain + padding;
constexpr int steps = 50;

std::vector<OptimizerSegment> segments() {
  return {{.name = "first", .range = {0, decayed}}, {.name = "second", .range = {decayed, plain}, .weight_decay = 0.0}};
}

/// Parameters of many sizes, each at a multiple of 16 elements, treated in every way there is.
std::vector<OptimizerSegment> mixed_segments(std::int64_t& numel) {
  std::vector<OptimizerSegment> list;
  numel = 0;
  for (const std::int64_t size : {40, 1, 16, 333, 17, 70'001, 5, 64}) {
    const auto i = static_cast<std::int64_t>(list.size());
    list.push_back({.name = "p" + std::to_string(i),
                    .range = {numel, size},
                    .weight_decay = i % 3 == 0 ? 0.0 : 1.0,
                    .lr = i == 4 ? 0.5 : 1.0,
                    .tensor_split = i % 2 == 0,
                    .shared = i == 6});
    numel += (size + 15) / 16 * 16;
  }
  return list;
}

/// Zero in the padding, as the flat space is.
at::Tensor draw_flat(const std::vector<OptimizerSegment>& segments, std::int64_t numel) {
  at::Tensor flat = at::zeros({numel});
  for (const OptimizerSegment& segment : segments) flat.narrow(0, segment.range.offset, segment.range.size).normal_();
  return flat;
}

OptimizerSpec adamw_spec() {
  return {.kind = OptimizerKind::adamw, .weight_decay = 0.1};
}

/// Two parameters whose gradients are drawn anew each step, updated both ways.
struct Twin {
  explicit Twin(at::ScalarType type) {
    at::manual_seed(7);
    flat = at::randn({numel}, type) * 0.25;  // weights below one: float32 rounds to 6e-8 or better
    first = flat.slice(0, 0, decayed).clone().requires_grad_();
    second = flat.slice(0, decayed, decayed + plain).clone().requires_grad_();
  }
  at::Tensor draw() {
    at::Tensor grads = at::randn({numel}, flat.options()) * 0.3;
    first.mutable_grad() = grads.slice(0, 0, decayed).clone();
    second.mutable_grad() = grads.slice(0, decayed, decayed + plain).clone();
    return grads;
  }
  double difference() const {
    const at::Tensor theirs = at::cat({first, second}).detach();
    return (flat.slice(0, 0, decayed + plain) - theirs).abs().max().item<double>();
  }
  at::Tensor flat, first, second;
};

template <typename Options>
std::vector<torch::optim::OptimizerParamGroup> groups(const Twin& twin, const Options& options) {
  auto decay = std::make_unique<Options>(options), none = std::make_unique<Options>(options);
  decay->weight_decay(0.1);
  none->weight_decay(0.0);
  std::vector<torch::optim::OptimizerParamGroup> list;
  list.emplace_back(std::vector<at::Tensor>{twin.first}, std::move(decay));
  list.emplace_back(std::vector<at::Tensor>{twin.second}, std::move(none));
  return list;
}

double follow(Twin& twin, FlatOptimizer& ours, torch::optim::Optimizer& theirs, double lr, double grad_scale) {
  double worst = 0.0;
  for (int step = 0; step < steps; ++step) {
    const at::Tensor grads = twin.draw();
    ours.step(twin.flat, grads / grad_scale, lr, grad_scale);
    theirs.step();
    worst = std::max(worst, twin.difference());
  }
  return worst;
}

}  // namespace

class TestOptimizers : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_device_updates_as_the_cpu_does_data() {
    QTest::addColumn<int>("kind");
    QTest::addColumn<double>("momentum");
    QTest::newRow("adamw") << static_cast<int>(OptimizerKind::adamw) << 0.0;
    QTest::newRow("adam") << static_cast<int>(OptimizerKind::adam) << 0.0;
    QTest::newRow("sgd") << static_cast<int>(OptimizerKind::sgd) << 0.0;
    QTest::newRow("sgd with momentum") << static_cast<int>(OptimizerKind::sgd) << 0.9;
  }
  // The operators that run on a device, run here on the CPU: held against LibTorch by way of the fused passes.
  void a_device_updates_as_the_cpu_does() {
    QFETCH(int, kind);
    QFETCH(double, momentum);
    const OptimizerSpec spec{.kind = static_cast<OptimizerKind>(kind), .weight_decay = 0.1, .momentum = momentum};
    std::int64_t size = 0;
    const auto parts = mixed_segments(size);
    at::manual_seed(5);
    at::Tensor fused = draw_flat(parts, size).to(at::kDouble), plain_operators = fused.clone();
    auto ours = make_flat_optimizer(spec, parts, size, at::kDouble);
    auto theirs = make_flat_optimizer(spec, parts, size, at::TensorOptions(at::kDouble), UpdatePath::operators);
    for (int step = 0; step < steps; ++step) {
      const at::Tensor grads = draw_flat(parts, size).to(at::kDouble);
      std::vector<FlatRange> reached;
      for (std::size_t i = 0; i < parts.size(); ++i)
        if ((step + static_cast<int>(i)) % 3 != 0) reached.push_back(parts[i].range);
      ours->step(fused, grads, 1e-2, 0.25, reached);
      theirs->step(plain_operators, grads, 1e-2, 0.25, reached);
      QVERIFY2((fused - plain_operators).abs().max().item<double>() < 1e-12, qPrintable(QString::number(step)));
    }
    QVERIFY(at::equal(ours->segment_steps(), theirs->segment_steps()));
    QCOMPARE(ours->state().size(), theirs->state().size());
  }

  void a_device_measures_and_clips_as_the_cpu_does() {
    at::manual_seed(6);
    const at::Tensor flat = at::randn({100'003}) * 3.0;
    const std::vector<FlatRange> ranges{{3, 1000}, {50'000, 50'003}};
    const double wanted = square_sum(flat, ranges);
    QVERIFY(std::abs(tensor_square_sum(flat, ranges).item<double>() / wanted - 1.0) < 1e-12);
    at::Tensor clipped = flat.clone();
    clip_flat_norm(clipped, 2.0);
    QVERIFY(std::abs(clipped.to(at::kDouble).norm().item<double>() - 2.0) < 1e-5);
    at::Tensor kept = flat.clone();
    clip_flat_norm(kept, 0.0);
    QVERIFY(at::equal(kept, flat));
  }

  void an_optimizer_refuses_tensors_of_another_type() {
    at::Tensor params = at::zeros({numel}, at::kDouble);
    auto ours = make_flat_optimizer({.kind = OptimizerKind::sgd}, segments(), numel, at::kFloat);
    try {
      ours->step(params, params, 0.1, 1.0);
      QFAIL("it took them");
    } catch (const std::invalid_argument& error) {
      QVERIFY2(std::string(error.what()).find("float") != std::string::npos, error.what());
    }
  }

  void adamw_follows_the_library_in_float32() { adamw(at::kFloat, 1e-6); }
  void adamw_follows_the_library_in_float64() { adamw(at::kDouble, 1e-12); }
  void sgd_follows_the_library_in_float32() { sgd(at::kFloat, 0.9, 1e-6); }
  void sgd_follows_the_library_in_float64() { sgd(at::kDouble, 0.9, 1e-12); }
  void sgd_without_momentum_follows_the_library() { sgd(at::kDouble, 0.0, 1e-12); }

  void grad_scale_is_folded_into_the_update() {
    Twin twin(at::kDouble);
    const OptimizerSpec spec{.kind = OptimizerKind::adamw, .lr = 1e-2, .weight_decay = 0.1};
    auto ours = make_flat_optimizer(spec, segments(), numel, at::kDouble);
    const torch::optim::AdamWOptions options(1e-2);
    torch::optim::AdamW theirs(groups(twin, options), options);
    QVERIFY(follow(twin, *ours, theirs, 1e-2, 0.125) < 1e-12);
  }

  void a_parameter_without_a_gradient_is_left_alone_data() {
    QTest::addColumn<bool>("adamw");
    QTest::newRow("adamw") << true;
    QTest::newRow("sgd with momentum") << false;
  }
  void a_parameter_without_a_gradient_is_left_alone() {
    QFETCH(bool, adamw);
    Twin twin(at::kDouble);
    const OptimizerSpec spec{.kind = adamw ? OptimizerKind::adamw : OptimizerKind::sgd,
                             .lr = 1e-2,
                             .weight_decay = 0.1,
                             .momentum = adamw ? 0.0 : 0.9};
    auto ours = make_flat_optimizer(spec, segments(), numel, at::kDouble);
    std::unique_ptr<torch::optim::Optimizer> theirs;
    const torch::optim::AdamWOptions adamw_options(1e-2);
    const auto sgd_options = torch::optim::SGDOptions(1e-2).momentum(0.9);
    if (adamw)
      theirs = std::make_unique<torch::optim::AdamW>(groups(twin, adamw_options), adamw_options);
    else
      theirs = std::make_unique<torch::optim::SGD>(groups(twin, sgd_options), sgd_options);
    // The first parameter misses every other update, the second one the first two: moments and bias corrections count
    // each parameter's own updates.
    for (int step = 0; step < steps; ++step) {
      const at::Tensor grads = twin.draw();
      std::vector<FlatRange> reached;
      if (step % 2 == 0)
        reached.push_back({0, decayed});
      else
        twin.first.mutable_grad().reset();
      if (step >= 2)
        reached.push_back({decayed, plain});
      else
        twin.second.mutable_grad().reset();
      ours->step(twin.flat, grads, 1e-2, 1.0, reached);
      theirs->step();
      QVERIFY2(twin.difference() < 1e-12, qPrintable(QStringLiteral("after step %1").arg(step + 1)));
    }
  }

  void gradients_and_padding_are_left_alone() {
    at::Tensor params = at::ones({numel}), grads = at::full({numel}, 0.5);
    auto ours = make_flat_optimizer({.kind = OptimizerKind::adamw}, segments(), numel, at::kFloat);
    ours->step(params, grads, 0.1, 2.0);
    QVERIFY(grads.eq(0.5).all().item<bool>());
    QVERIFY(params.slice(0, decayed + plain).eq(1.0).all().item<bool>());
    QVERIFY(params.slice(0, 0, decayed + plain).lt(1.0).all().item<bool>());
  }

  void state_and_step_count_continue_a_run() {
    at::manual_seed(3);
    const OptimizerSpec spec{.kind = OptimizerKind::adamw};
    at::Tensor whole = at::randn({numel}), halves = whole.clone();
    const at::Tensor grads = at::randn({numel});
    auto one = make_flat_optimizer(spec, segments(), numel, at::kFloat);
    auto before = make_flat_optimizer(spec, segments(), numel, at::kFloat);
    auto after = make_flat_optimizer(spec, segments(), numel, at::kFloat);
    for (int step = 0; step < 6; ++step) one->step(whole, grads, 1e-2, 1.0);
    for (int step = 0; step < 3; ++step) before->step(halves, grads, 1e-2, 1.0);
    for (auto& [name, tensor] : after->state()) {
      for (const auto& [saved_name, saved] : before->state()) {
        if (saved_name == name) tensor.copy_(saved);
      }
    }
    after->set_steps(before->steps());
    after->segment_steps().copy_(before->segment_steps());
    for (int step = 0; step < 3; ++step) after->step(halves, grads, 1e-2, 1.0);
    QVERIFY(at::equal(whole, halves));
    QCOMPARE(after->steps(), std::int64_t{6});
  }

  void steps_limited_to_the_shards_of_any_number_of_ranks_are_the_whole_step() {
    for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}) {
      const OptimizerSpec spec{.kind = kind, .weight_decay = 0.1, .momentum = 0.9};
      std::int64_t size = 0;
      const auto parts = mixed_segments(size);
      at::manual_seed(11);
      const at::Tensor start = draw_flat(parts, size);
      for (const std::int64_t world : {2, 3, 8}) {
        auto one = make_flat_optimizer(spec, parts, size, at::kFloat);
        std::vector<std::unique_ptr<FlatOptimizer>> ranks;
        for (std::int64_t rank = 0; rank < world; ++rank)
          ranks.push_back(make_flat_optimizer(spec, parts, size, at::kFloat));
        at::Tensor whole = start.clone(), sharded = start.clone();
        for (int step = 0; step < 3; ++step) {
          const at::Tensor grads = draw_flat(parts, size);
          one->step(whole, grads, 1e-2, 0.5);
          for (std::int64_t rank = 0; rank < world; ++rank) {
            const std::vector<FlatRange> own{shard_range(size, rank, world)};
            ranks[static_cast<std::size_t>(rank)]->step(sharded, grads, 1e-2, 0.5, own);
          }
        }
        QVERIFY(at::equal(whole, sharded));
      }
    }
  }

  void a_parameter_outside_the_ranges_keeps_its_value_its_moments_and_its_count() {
    std::int64_t size = 0;
    const auto parts = mixed_segments(size);
    at::manual_seed(12);
    at::Tensor ours = draw_flat(parts, size), theirs = ours.clone();
    auto flat = make_flat_optimizer(adamw_spec(), parts, size, at::kFloat);
    auto alone = make_flat_optimizer(adamw_spec(), {parts[5]}, size, at::kFloat);
    std::vector<FlatRange> without;
    for (const OptimizerSegment& segment : parts)
      if (segment.name != "p5") without.push_back(segment.range);
    for (int step = 0; step < 4; ++step) {
      const at::Tensor grads = draw_flat(parts, size);
      if (step == 1) {
        flat->step(ours, grads, 1e-2, 1.0, without);
      } else {
        flat->step(ours, grads, 1e-2, 1.0);
        alone->step(theirs, grads, 1e-2, 1.0);
      }
    }
    const auto [offset, length] = parts[5].range;
    QVERIFY(at::equal(ours.narrow(0, offset, length), theirs.narrow(0, offset, length)));
    QCOMPARE(flat->segment_steps()[5].item<std::int64_t>(), std::int64_t{3});
    QCOMPARE(flat->segment_steps()[4].item<std::int64_t>(), std::int64_t{4});
    QCOMPARE(flat->steps(), std::int64_t{4});
  }

  void multipliers_scale_rate_and_decay() {
    at::manual_seed(13);
    const at::Tensor start = at::randn({64}), grads = at::randn({64});
    const auto stepped = [&](double weight_decay, OptimizerSegment segment, double lr) {
      at::Tensor params = start.clone();
      segment.range = {0, 64};
      auto optimizer =
          make_flat_optimizer({.kind = OptimizerKind::adamw, .weight_decay = weight_decay}, {segment}, 64, at::kFloat);
      optimizer->step(params, grads, lr, 1.0);
      return params;
    };
    QVERIFY(at::equal(stepped(0.1, {.lr = 0.5}, 1e-2), stepped(0.1, {}, 5e-3)));
    QVERIFY(at::equal(stepped(0.1, {.weight_decay = 0.5}, 1e-2), stepped(0.05, {}, 1e-2)));
    QVERIFY(!at::equal(stepped(0.1, {}, 1e-2), stepped(0.05, {}, 1e-2)));
  }

  /// Rates, and the weight decay, are new in each step; the groups' factors stay.
  void groups_are_updated_as_those_of_torch() {
    at::manual_seed(21);
    struct Group {
      double decay, lr;
      bool decoupled;
    };
    const std::vector<Group> groups{{1.0, 1.0, false}, {0.0, 1.0, false}, {1.0, 1.0, true}, {1.0, 0.25, true}};
    constexpr std::int64_t size = 48;
    std::vector<OptimizerSegment> parts;
    std::vector<torch::optim::OptimizerParamGroup> torch_groups;
    const auto all = static_cast<std::int64_t>(groups.size()) * size;
    at::Tensor flat = at::randn({all}, at::kDouble);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::int64_t offset = static_cast<std::int64_t>(i) * size;
      parts.push_back({.range = {offset, size},
                       .weight_decay = groups[i].decay,
                       .lr = groups[i].lr,
                       .decoupled = groups[i].decoupled});
      torch_groups.emplace_back(std::vector<at::Tensor>{flat.narrow(0, offset, size).clone().requires_grad_()},
                                std::make_unique<torch::optim::AdamWOptions>());
    }
    torch::optim::AdamW theirs(torch_groups);
    auto ours = make_flat_optimizer({.kind = OptimizerKind::adamw, .weight_decay = 7.0}, parts, all, at::kDouble);
    for (int step = 1; step <= 20; ++step) {
      const at::Tensor grads = at::randn({all}, at::kDouble);
      UpdateRates rates = 1e-2 / step;
      rates.decoupled_lr = 3e-3 * step;
      rates.weight_decay = 0.01 * step;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        auto& group = theirs.param_groups()[i];
        auto& options = static_cast<torch::optim::AdamWOptions&>(group.options());
        options.lr((groups[i].decoupled ? rates.decoupled_lr : rates.lr) * groups[i].lr);
        options.weight_decay(*rates.weight_decay * groups[i].decay);
        group.params()[0].mutable_grad() = grads.narrow(0, parts[i].range.offset, size);
      }
      theirs.step();
      ours->step(flat, grads, rates, 1.0);
    }
    for (std::size_t i = 0; i < groups.size(); ++i)
      QVERIFY(at::allclose(flat.narrow(0, parts[i].range.offset, size), theirs.param_groups()[i].params()[0].detach(),
                           1e-12, 1e-14));
  }

  void a_norm_over_tensor_and_pipeline_ranks_counts_each_element_once() {
    // Two tensor ranks: each holds one half of what is split and a copy of the rest; p6 belongs to another stage.
    std::int64_t size = 0;
    const auto parts = mixed_segments(size);
    at::manual_seed(14);
    const std::vector<at::Tensor> ranks{draw_flat(parts, size), draw_flat(parts, size)};
    double expected = 0.0;
    for (const OptimizerSegment& segment : parts) {
      if (segment.shared) continue;
      for (std::size_t rank = 0; rank < (segment.tensor_split ? 2 : 1); ++rank) {
        const at::Tensor part = ranks[rank].narrow(0, segment.range.offset, segment.range.size).to(at::kDouble);
        expected += part.square().sum().item<double>();
      }
    }
    double sum = 0.0;
    for (std::size_t rank = 0; rank < 2; ++rank)
      for (const OptimizerSegment& each : parts)
        if (counts_here(each.shared, each.tensor_split, static_cast<std::int64_t>(rank)))
          sum += square_sum(ranks[rank], {&each.range, 1});
    QVERIFY(std::abs(sum / expected - 1.0) < 1e-13);
  }

  void refuses_what_it_was_not_made_for() {
    auto ours = make_flat_optimizer({}, segments(), numel, at::kFloat);
    at::Tensor params = at::zeros({numel});
    QVERIFY_EXCEPTION_THROWN(ours->step(params, at::zeros({numel - 1}), 0.1, 1.0), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(ours->step(params, at::zeros({numel}, at::kDouble), 0.1, 1.0), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(make_flat_optimizer({}, {{.range = {numel - 1, 2}}}, numel, at::kFloat),
                             std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(make_flat_optimizer({}, {{.range = {0, 9}}, {.range = {8, 2}}}, numel, at::kFloat),
                             std::invalid_argument);
    const at::Tensor grads = at::zeros({numel});
    for (const std::vector<FlatRange>& ranges :
         {std::vector<FlatRange>{{-1, 2}}, {{0, numel + 1}}, {{0, 9}, {8, 2}}, {{8, 2}, {0, 4}}})
      QVERIFY_EXCEPTION_THROWN(ours->step(params, grads, 0.1, 1.0, ranges), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(make_flat_optimizer({}, segments(), numel, at::kBFloat16), std::invalid_argument);
  }

  void norm_is_accumulated_in_double() {
    at::manual_seed(1);
    const at::Tensor values = at::randn({300'001});
    const double exact = values.to(at::kDouble).norm().item<double>();
    QVERIFY(std::abs(flat_norm(values) / exact - 1.0) < 1e-13);
    QVERIFY(std::abs(flat_norm(values.to(at::kDouble)) / exact - 1.0) < 1e-13);
    // In float32 the square of 1e30 overflows; in double it does not.
    QVERIFY(std::abs(flat_norm(at::full({4}, 1e30)) / 2e30 - 1.0) < 1e-6);
    QCOMPARE(flat_norm(at::empty({0})), 0.0);
  }

  void non_finite_gradients_come_through_the_norm() {
    at::Tensor values = at::ones({70'000});
    values[69'999] = std::numeric_limits<double>::quiet_NaN();
    QVERIFY(std::isnan(flat_norm(values)));
    values[69'999] = std::numeric_limits<double>::infinity();
    QVERIFY(std::isinf(flat_norm(values)));
  }

  void clip_factor_is_that_of_clip_grad_norm() {
    QCOMPARE(clip_factor(10.0, 0.0), 0.0);
    QCOMPARE(clip_factor(0.5, 1.0), 1.0);
    QCOMPARE(clip_factor(4.0, 1.0), 1.0 / (4.0 + 1e-6));
    QVERIFY(std::isnan(clip_factor(std::numeric_limits<double>::quiet_NaN(), 1.0)));
    QCOMPARE(clip_factor(std::numeric_limits<double>::infinity(), 1.0), 0.0);
  }

  void a_loss_scale_is_divided_out() {
    QCOMPARE(unscaled(DynamicScale{.scale = 1024.0}, 0.5), 0.5 / 1024.0);
    QCOMPARE(unscaled(DynamicScale{.scale = 1024.0}), 1.0 / 1024.0);
    QCOMPARE(unscaled(DynamicScale(), 0.5), 0.5);  // no scaling
  }

  void the_norm_judges_an_update_data() {
    QTest::addColumn<double>("norm");
    QTest::addColumn<double>("max_norm");
    QTest::addColumn<bool>("finite");
    QTest::addColumn<double>("clip");  // of a finite norm
    QTest::newRow("within the bound") << 0.5 << 1.0 << true << 1.0;
    QTest::newRow("above the bound") << 4.0 << 1.0 << true << 1.0 / (4.0 + 1e-6);
    QTest::newRow("no bound") << 4.0 << 0.0 << true << 1.0;
    QTest::newRow("no gradient") << 0.0 << 1.0 << true << 1.0;
    QTest::newRow("an overflow") << std::numeric_limits<double>::infinity() << 1.0 << false << 0.0;
    QTest::newRow("not a number, without a bound") << std::numeric_limits<double>::quiet_NaN() << 0.0 << false << 0.0;
  }
  void the_norm_judges_an_update() {
    QFETCH(double, norm);
    QFETCH(double, max_norm);
    QFETCH(bool, finite);
    QFETCH(double, clip);
    const Judgement judgement = judge_norm(norm, max_norm);
    QCOMPARE(judgement.finite(), finite);
    if (finite) QCOMPARE(judgement.clip, clip);
    QVERIFY(Judgement().finite());  // without a norm nothing is known to be wrong
  }

 private:
  static void adamw(at::ScalarType type, double tolerance) {
    Twin twin(type);
    const OptimizerSpec spec{
        .kind = OptimizerKind::adamw, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    auto ours = make_flat_optimizer(spec, segments(), numel, type);
    const auto options = torch::optim::AdamWOptions(1e-3).betas({0.9, 0.95});
    torch::optim::AdamW theirs(groups(twin, options), options);
    const double worst = follow(twin, *ours, theirs, 1e-3, 1.0);
    QVERIFY2(worst < tolerance, qPrintable(QString::number(worst)));
  }

  static void sgd(at::ScalarType type, double momentum, double tolerance) {
    Twin twin(type);
    const OptimizerSpec spec{.kind = OptimizerKind::sgd, .weight_decay = 0.1, .momentum = momentum};
    auto ours = make_flat_optimizer(spec, segments(), numel, type);
    const auto options = torch::optim::SGDOptions(1e-2).momentum(momentum);
    torch::optim::SGD theirs(groups(twin, options), options);
    const double worst = follow(twin, *ours, theirs, 1e-2, 1.0);
    QVERIFY2(worst < tolerance, qPrintable(QString::number(worst)));
  }
};

ACCRUE_TEST_MAIN(TestOptimizers)

}  // namespace test_optimizers
#include "test_optimizers.moc"

// SPDX-License-Identifier: Apache-2.0
// Weight gradients that layers add straight into the arena, beside the same gradients handed over and added.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <QTest>
#include <limits>

#include "accrue/comm/rendezvous.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/parallel/tensor_layers.h"
#include "models/gpt_model.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_direct_gradient {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

constexpr std::int64_t inputs = 48, outputs = 40, rows = 64;

struct Layer : torch::nn::Module {
  explicit Layer(at::ScalarType type) {
    at::manual_seed(3);
    weight = register_parameter("weight", at::randn({outputs, inputs}, at::kDouble).to(type));
    bias = register_parameter("bias", at::randn({outputs}, at::kDouble).to(type));
  }
  at::Tensor loss(const at::Tensor& x, bool direct) const {
    return (direct ? accumulating_linear(x, weight, bias) : at::linear(x, weight, bias)).tanh().sum();
  }
  at::Tensor weight, bias;
};

at::Tensor input(std::uint64_t seed, at::ScalarType type) {
  at::manual_seed(seed);
  return at::randn({rows, inputs}, at::kDouble).to(type);
}

/// Whether a gradient of the weight was handed to autograd.
class Witness final : public torch::autograd::FunctionPreHook {
 public:
  explicit Witness(int& given) : given_(given) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    given_ += gradients.at(0).defined() ? 1 : 0;
    return gradients;
  }

 private:
  int& given_;
};

void watch(const at::Tensor& weight, int& given) {
  torch::autograd::impl::grad_accumulator(weight)->add_pre_hook(std::make_unique<Witness>(given));
}

/// The weight's summed gradient after `steps` micro-steps.
at::Tensor summed(at::ScalarType type, bool direct, int steps, DataParallelOptions options = {}) {
  const auto axis = single_communicator();
  Layer layer(type);
  DistributedDataParallel ddp(layer, *axis, options);
  for (int i = 0; i < steps; ++i)
    layer.loss(input(static_cast<std::uint64_t>(i), at::kDouble).to(type), direct).backward();
  return layer.weight.grad().clone();
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).norm() / b.to(at::kDouble).norm()).item<double>();
}

ModelSpec gpt(Dtype dtype) {
  return {
      .kind = ModelKind::gpt, .dtype = dtype, .layers = 2, .width = 32, .heads = 4, .context = 24, .vocabulary = 29};
}

Batch batch_of(std::uint64_t seed) {
  at::manual_seed(seed);
  return {at::randint(29, {3, 24}, at::kLong), at::randint(29, {3, 24}, at::kLong), 3, 72};
}

}  // namespace

class TestDirectGradient : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void no_gradient_of_a_weight_exists_outside_the_arena_data() {
    const Rows<int, bool> row;
    row("float32", int(at::kFloat), true);
    row("float64", int(at::kDouble), true);
    row("bfloat16, summed in float32", int(at::kBFloat16), true);
    row("float16, summed in float32", int(at::kHalf), true);
    row("at::linear", int(at::kFloat), false);
  }
  void no_gradient_of_a_weight_exists_outside_the_arena() {
    const auto [type, direct] = current_row<int, bool>();
    const auto dtype = static_cast<at::ScalarType>(type);
    const auto axis = single_communicator();
    Layer layer(dtype);
    DistributedDataParallel ddp(layer, *axis);
    int given = 0;
    watch(layer.weight, given);
    for (int i = 0; i < 3; ++i) layer.loss(input(1, dtype), direct).backward();
    QCOMPARE(given, direct ? 0 : 3);
    QCOMPARE(ddp.arrivals(), 6);  // those of the weight and of the bias
    QVERIFY(ddp.reached() == std::vector<bool>({true, true}));
    QVERIFY(
        ddp.flat_gradients().narrow(0, ddp.layout().parameters[0].offset, outputs * inputs).abs().sum().item<float>() >
        0);
  }

  void sums_are_those_of_gradients_handed_over() {
    QVERIFY(apart(summed(at::kDouble, true, 5), summed(at::kDouble, false, 5)) < 1e-15);
    QVERIFY(apart(summed(at::kFloat, true, 5), summed(at::kFloat, false, 5)) < 1e-6);
    QVERIFY(summed(at::kFloat, true, 1).equal(summed(at::kFloat, false, 1)));
  }

  void half_precision_is_closer_to_the_exact_sum_than_rounded_gradients() {
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
      const double eps = type == at::kHalf ? std::pow(2.0, -10) : std::pow(2.0, -7);
      // The exact products of what backward multiplies: its dy is rounded to the type, which both have in common.
      at::Tensor exact = at::zeros({outputs, inputs}, at::kDouble);
      Layer layer(type);
      for (int i = 0; i < 8; ++i) {
        const at::Tensor x = input(static_cast<std::uint64_t>(i), at::kDouble).to(type);
        const at::Tensor y = at::linear(x, layer.weight, layer.bias).detach().requires_grad_(true);
        y.tanh().sum().backward();
        exact += y.grad().to(at::kDouble).t().mm(x.to(at::kDouble));
      }
      const at::Tensor direct = summed(type, true, 8), rounded = summed(type, false, 8);
      QCOMPARE(direct.scalar_type(), at::kFloat);
      QVERIFY2(apart(direct, rounded) <= 4 * eps, QByteArray::number(apart(direct, rounded)));
      QVERIFY2(apart(direct, exact) < 0.01 * apart(rounded, exact),
               QByteArray::number(apart(direct, exact)) + " and " + QByteArray::number(apart(rounded, exact)));
    }
  }

  void a_tied_table_takes_products_and_rows() {
    // Plain operators: the head adds its product, the lookup hands its rows over. Fused: both are handed over.
    for (const bool plain : {true, false}) {
      const auto bare = std::dynamic_pointer_cast<GptModel>(make_model(gpt(Dtype::float64), 3));
      const auto model = std::dynamic_pointer_cast<GptModel>(make_model(gpt(Dtype::float64), 3));
      const auto axis = single_communicator();
      DistributedDataParallel ddp(*model, *axis);
      bare->use_plain_operators(plain);
      model->use_plain_operators(plain);
      for (const std::uint64_t seed : {5, 6, 7}) {
        bare->whole_loss(batch_of(seed)).sum.backward();
        model->whole_loss(batch_of(seed)).sum.backward();
      }
      const auto expected = bare->named_parameters(), named = model->named_parameters();
      QCOMPARE(ddp.arrivals(), 3 * std::int64_t(named.size()));
      for (std::size_t i = 0; i < named.size(); ++i) {
        const double off = apart(named[i].value().grad(), expected[i].value().grad());
        QVERIFY2(off < 1e-14, qPrintable(QString("%1: %2").arg(named[i].key().c_str()).arg(off)));
      }
    }
  }

  void fused_blocks_hand_over_no_weight_gradient() {
    const auto model = std::dynamic_pointer_cast<GptModel>(make_model(gpt(Dtype::float32), 3));
    const auto axis = single_communicator();
    DistributedDataParallel ddp(*model, *axis);
    int given = 0, others = 0;
    for (const auto& each : model->named_parameters())
      watch(each.value(), each.value().dim() == 2 && each.key().starts_with("blocks") ? given : others);
    model->whole_loss(batch_of(5)).sum.backward();
    QCOMPARE(given, 0);
    QCOMPARE(others, 2 * 8 + 4);  // norms and biases of two blocks, both embeddings and the last norm
  }

  void recomputed_blocks_add_the_same_bits() {
    const ParallelSpec full{.recompute = RecomputeKind::full};
    for (const bool plain : {true, false}) {
      std::vector<at::Tensor> flats;
      for (const ParallelSpec& parallel : {ParallelSpec{}, full}) {
        const auto model =
            std::dynamic_pointer_cast<GptModel>(make_model_part(gpt(Dtype::float32), 3, {}, {}, parallel));
        model->use_plain_operators(plain);
        const auto axis = single_communicator();
        DistributedDataParallel ddp(*model, *axis);
        for (const std::uint64_t seed : {5, 6}) model->whole_loss(batch_of(seed)).sum.backward();
        QCOMPARE(ddp.arrivals(), 2 * std::int64_t(model->parameters().size()));
        flats.push_back(ddp.flat_gradients().clone());
      }
      QVERIFY(flats[0].equal(flats[1]));
    }
  }

  void sums_that_round_otherwise_get_gradients_as_before() {
    for (const auto accumulation : {AccumulationDtype::float32_compensated, AccumulationDtype::parameter}) {
      for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
        if (accumulation == AccumulationDtype::parameter && type == at::kFloat) continue;
        const DataParallelOptions options{.accumulation = accumulation};
        QVERIFY(summed(type, true, 4, options).equal(summed(type, false, 4, options)));
      }
    }
  }

  void a_gradient_that_is_asked_for_is_returned_and_not_added() {
    const auto axis = single_communicator();
    Layer layer(at::kDouble);
    DistributedDataParallel ddp(layer, *axis);
    const auto asked = torch::autograd::grad({layer.loss(input(1, at::kDouble), true)}, {layer.weight});
    QVERIFY(asked.at(0).defined());
    QVERIFY(!layer.weight.grad().defined());
    QCOMPARE(ddp.flat_gradients().abs().sum().item<double>(), 0.0);
    layer.loss(input(1, at::kDouble), true).backward();
    QVERIFY(layer.weight.grad().equal(asked.at(0)));
  }

  void dropped_gradients_are_cleared_before_a_product_is_added() {
    const auto axis = single_communicator();
    Layer layer(at::kDouble);
    DistributedDataParallel ddp(layer, *axis);
    layer.loss(input(1, at::kDouble), true).backward();
    const at::Tensor first = layer.weight.grad().clone();
    layer.zero_grad();
    QVERIFY(!layer.weight.grad().defined());
    layer.loss(input(1, at::kDouble), true).backward();
    QVERIFY(layer.weight.grad().equal(first));
  }

  void gradients_of_gradients_are_still_there() {
    const auto axis = single_communicator();
    Layer layer(at::kDouble);
    DistributedDataParallel ddp(layer, *axis);
    const at::Tensor x = input(1, at::kDouble);
    const auto once = [&](bool direct) {
      const auto slope = torch::autograd::grad({layer.loss(x, direct)}, {layer.weight}, {}, true, true);
      return torch::autograd::grad({slope.at(0).square().sum()}, {layer.weight}).at(0);
    };
    QVERIFY(apart(once(true), once(false)) < 1e-14);
  }
};

ACCRUE_TEST_MAIN(TestDirectGradient)

}  // namespace test_direct_gradient

#include "test_direct_gradient.moc"

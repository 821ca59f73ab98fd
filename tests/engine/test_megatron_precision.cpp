// SPDX-License-Identifier: Apache-2.0
// Number types under the Megatron-LM plug-in's Accelerator, in one process: what is cast, models of two types, loss
// scales and updates that are left out.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <QTest>
#include <cmath>
#include <limits>

#include <torch/optim/sgd.h>

#include "support/megatron_cases.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_megatron_precision {

using namespace accrue;
using namespace accrue::megatron;
using accrue::megatron::Batch;
using namespace accrue::test;

namespace {

/// A slope that holds what is no number, too.
struct Counted final : ModelChunk {
  Counted()
      : weight(register_parameter("weight", at::full({1}, 0.5, at::kFloat))),
        scale(register_buffer("scale", at::ones({1}, at::kFloat))),
        mask(register_buffer("mask", at::ones({3}, at::kBool))),
        count(register_buffer("count", at::full({1}, 4097, at::kLong))) {}
  Tensors forward(const Batch& batch) override { return {batch.at("x") * weight}; }
  at::Tensor weight, scale, mask, count;
};

/// y = (half + wide) x, with one parameter of a half type and one of float64, in either order.
struct TwoTypes final : ModelChunk {
  TwoTypes(at::ScalarType type, bool half_first) {
    if (half_first) half = register_parameter("half", at::full({1}, 0.25, type));
    wide = register_parameter("wide", at::full({1}, 0.25, at::kDouble));
    if (!half_first) half = register_parameter("half", at::full({1}, 0.25, type));
  }
  Tensors forward(const Batch& batch) override { return {batch.at("x") * (half.to(at::kDouble) + wide)}; }
  at::Tensor half, wide;
};

bool near(double a, double b, double tolerance = 1e-12) {
  return std::abs(a - b) <= tolerance;
}

}  // namespace

class TestMegatronPrecision : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { at::set_num_threads(1); }  // the tensors are small

  /// 4097 is no number of float16.
  void half_precision_casts_numbers_alone() {
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(1);
    plugin.custom_model_provider_function = [](const ChunkPlace&) { return std::make_shared<Counted>(); };
    AcceleratorOptions options = with(plugin);
    options.mixed_precision = MixedPrecision::fp16;
    Accelerator accelerator(std::move(options), mesh);
    auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 4}, {slope_loader(4, 2)});
    const auto& chunk = dynamic_cast<const Counted&>(*prepared.model.chunks().at(0));
    for (const at::Tensor& each : {chunk.weight, chunk.scale}) QCOMPARE(each.scalar_type(), at::kHalf);
    QCOMPARE(chunk.mask.scalar_type(), at::kBool);
    QCOMPARE(chunk.count.scalar_type(), at::kLong);
    QCOMPARE(chunk.count.item<std::int64_t>(), std::int64_t{4097});
  }

  /// Each gradient is the mean of (0.5 x - 2 x) x over x = 1 to 4, which is -11.25: the norm is 11.25 sqrt(2), and
  /// clipped to 1 each gradient is -1 / sqrt(2).
  void a_model_of_two_types_is_clipped_and_scaled_as_one_data() {
    const Rows<at::ScalarType, bool, double> row;
    row("bfloat16 first", at::kBFloat16, true, 1.0);
    row("bfloat16 last", at::kBFloat16, false, 1.0);
    row("float16 first", at::kHalf, true, 1024.0);
    row("float16 last", at::kHalf, false, 1024.0);
  }
  void a_model_of_two_types_is_clipped_and_scaled_as_one() {
    const auto [type, half_first, scale] = current_row<at::ScalarType, bool, double>();
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(1);
    plugin.custom_model_provider_function = [type, half_first](const ChunkPlace&) {
      return std::make_shared<TwoTypes>(type, half_first);
    };
    plugin.gradient_clipping = 1.0;
    if (scale > 1.0) plugin.other_megatron_args = std::vector<std::string>{"initial_loss_scale = 1024"};
    Accelerator accelerator(with(plugin), mesh);
    const torch::optim::SGD sgd(std::vector<at::Tensor>{}, torch::optim::SGDOptions(0.125));
    auto& prepared = accelerator.prepare(ModelProvider{}, sgd, {.total_num_steps = 4}, {slope_loader(4, 4)});
    QCOMPARE(accelerator.progress().loss_scale, scale);
    prepared.model(*prepared.loaders[0].next());
    QVERIFY(near(accelerator.progress().grad_norm.value(), 11.25 * std::sqrt(2.0), 1e-6));
    const auto& chunk = dynamic_cast<const TwoTypes&>(*prepared.model.chunks().at(0));
    const double expected = 0.25 + 0.125 / std::sqrt(2.0);
    QVERIFY(near(chunk.wide.item<double>(), expected, 1e-6));
    QVERIFY(near(chunk.half.item<double>(), expected, type == at::kHalf ? 0x1p-12 : 0x1p-9));
  }

  /// Wherever the float16 parameter is in the model, its type asks for Megatron-LM's scale.
  void float16_anywhere_in_the_model_is_scaled() {
    for (const bool half_first : {true, false}) {
      Mesh mesh;
      MegatronLMPlugin plugin = slope_plugin(1);
      plugin.custom_model_provider_function = [half_first](const ChunkPlace&) {
        return std::make_shared<TwoTypes>(at::kHalf, half_first);
      };
      Accelerator accelerator(with(plugin), mesh);
      accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 4}, {slope_loader(4, 4)});
      QCOMPARE(accelerator.progress().loss_scale, std::ldexp(1.0, 32));
    }
  }

  /// Megatron-LM's own scale is 2^32 at first, which overflows here; it bears one overflow before it falls.
  void a_loss_scale_is_megatrons_unless_an_argument_says_otherwise() {
    const auto scales = [](const std::vector<std::string>& arguments) {
      Mesh mesh;
      AcceleratorOptions options = with({});
      options.megatron_lm_plugin.other_megatron_args = arguments;
      options.mixed_precision = MixedPrecision::fp16;
      Accelerator accelerator(std::move(options), mesh);
      ModelSpec gpt = tiny_gpt();
      gpt.dtype = Dtype::float32;
      auto& prepared = accelerator.prepare(gpt, adamw(0.01), {.total_num_steps = 8}, {token_loader(24, 2)});
      std::vector<double> seen{accelerator.progress().loss_scale};
      while (seen.size() < 4) {
        prepared.model(*prepared.loaders[0].next());
        seen.push_back(accelerator.progress().loss_scale);
      }
      return seen;
    };
    const double first = std::ldexp(1.0, 32);
    QCOMPARE(scales({}), (std::vector<double>{first, first, first / 2, first / 4}));
    QCOMPARE(scales({"hysteresis = 1"}), (std::vector<double>{first, first / 2, first / 4, first / 8}));
    QCOMPARE(scales({"hysteresis = 1", "min_loss_scale = 2147483648"}),
             (std::vector<double>{first, first / 2, first / 2, first / 2}));
    QVERIFY(thrown_by<std::exception>([&] {
              scales({"initial_loss_scale = 0.5"});
            }).contains("min_loss_scale is above the first loss scale (found 1.0, expected at most 0.5)"));
    // Megatron-LM's loss_scale neither falls nor grows: 2^32 overflows here in every step.
    QCOMPARE(scales({"loss_scale = 4294967296"}), std::vector<double>(4, first));
    QVERIFY(thrown_by<std::exception>([&] {
              scales({"loss_scale = 16", "hysteresis = 2"});
            }).contains("loss_scale is a constant scale, for which hysteresis has no use"));
  }

  /// By hand: at w = 0.5 the samples x = 1, 2 with y = 2 x have the gradient (0.5 - 2) (1 + 4) / 2 = -3.75, whatever
  /// the scale is. The next two samples have no finite y: their update is left out, and the scale stays.
  void a_constant_scale_leaves_out_an_update_and_stays() {
    Mesh mesh;
    MegatronLMPlugin plugin = slope_plugin(1);
    plugin.gradient_clipping = 0.0;
    plugin.other_megatron_args = {"loss_scale = 8"};
    Accelerator accelerator(with(plugin), mesh);
    auto loader = accelerate::map_loader(4,
                                         [](const std::vector<std::int64_t>& rows) {
                                           const at::Tensor x = at::tensor(rows, at::kDouble) + 1.0;
                                           return Batch{{"x", x}, {"y", rows.front() < 2 ? 2.0 * x : x / 0.0}};
                                         },
                                         {.batch_size = 2});
    auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1, 0.0), {.total_num_steps = 4}, {loader});
    prepared.model(*prepared.loaders[0].next());
    QVERIFY(!prepared.optimizer.step_was_skipped());
    QCOMPARE(accelerator.progress().grad_norm.value(), 3.75);
    const double weight = slope_of(prepared);
    prepared.model(*prepared.loaders[0].next());
    QVERIFY(prepared.optimizer.step_was_skipped());
    QCOMPARE(accelerator.progress().loss_scale, 8.0);
    QCOMPARE(slope_of(prepared), weight);
  }

  /// float16's largest number is 65504: a loss scaled by 2^60 overflows, and every overflow halves the scale.
  void an_overflow_leaves_the_update_out_and_halves_the_scale() {
    Mesh mesh;
    MegatronLMPlugin plugin;
    plugin.gradient_clipping = 0.0;
    plugin.other_megatron_args = {"initial_loss_scale = 1152921504606846976.0", "loss_scale_window = 2",
                                  "hysteresis = 1"};
    AcceleratorOptions options = with(plugin);
    options.mixed_precision = MixedPrecision::fp16;
    Accelerator accelerator(std::move(options), mesh);
    ModelSpec gpt = tiny_gpt();
    gpt.dtype = Dtype::float32;
    auto& prepared = accelerator.prepare(gpt, adamw(0.01), {.total_num_steps = 100}, {token_loader(24, 2)});
    const auto weight = [&] { return prepared.model.chunks().at(0)->parameters().front().detach().clone(); };
    const at::Tensor before = weight();
    prepared.model(*prepared.loaders[0].next());
    QVERIFY(prepared.optimizer.step_was_skipped());
    QCOMPARE(accelerator.progress().loss_scale, std::ldexp(1.0, 59));
    QVERIFY(weight().equal(before));
    QCOMPARE(prepared.scheduler.num_steps(), std::int64_t{0});
    while (accelerator.progress().iteration < 80) {
      const auto batch = prepared.loaders[0].next();
      if (batch) prepared.model(*batch);
      if (accelerator.progress().iteration - accelerator.progress().skipped >= 2) break;
    }
    QVERIFY(!prepared.optimizer.step_was_skipped());
    QVERIFY(!weight().equal(before));
  }

  /// An infinite loss leaves its update out; the schedule waits.
  void an_update_without_a_finite_gradient_is_left_out() {
    Mesh mesh;
    Accelerator accelerator(with(slope_plugin(1)), mesh);
    auto& prepared = accelerator.prepare(ModelProvider{}, adamw(0.1), {.total_num_steps = 8}, {slope_loader(4, 2)});
    Batch batch = *prepared.loaders[0].next();
    batch["y"] = at::full({2}, std::numeric_limits<double>::infinity(), at::kDouble);
    prepared.model(batch);
    QVERIFY(prepared.optimizer.step_was_skipped());
    QCOMPARE(slope_of(prepared), 0.5);
    QCOMPARE(accelerator.progress().skipped, std::int64_t{1});
    QCOMPARE(accelerator.progress().nan, std::int64_t{1});
    QCOMPARE(prepared.scheduler.num_steps(), std::int64_t{0});
    prepared.model(*prepared.loaders[0].next());
    QVERIFY(!prepared.optimizer.step_was_skipped());
  }
};

ACCRUE_TEST_MAIN(TestMegatronPrecision)

}  // namespace test_megatron_precision
#include "test_megatron_precision.moc"

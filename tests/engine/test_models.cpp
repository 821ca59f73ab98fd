// SPDX-License-Identifier: Apache-2.0
// linear, mlp and gpt: names and shapes, initial weights, losses as sums, and the two hand-computed training examples.
#include <ATen/ATen.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <cmath>

#include "accrue/models/model_part.h"
#include "accrue/run/cost/shard_layout.h"
#include "models/gpt_model.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_models {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

ModelSpec tiny_gpt() {
  return {.kind = ModelKind::gpt, .layers = 2, .width = 16, .heads = 2, .context = 12, .vocabulary = 29};
}

ModelSpec small_linear(std::int64_t outputs, Dtype dtype) {
  return {.kind = ModelKind::linear, .dtype = dtype, .inputs = 1, .outputs = outputs, .bias = false};
}

at::Tensor column(double first, double step) {
  return at::arange(8, at::kDouble).mul(step).add(first).view({8, 1});
}

/// Samples first..last of the causal toy: sample n (from 1) holds 1..n as inputs, label = value mod 2, padded to -100.
Batch toy_batch(std::int64_t first, std::int64_t last) {
  const std::int64_t rows = last - first + 1;
  at::Tensor inputs = at::zeros({rows, last, 1}, at::kDouble);
  at::Tensor targets = at::full({rows, last}, -100, at::kLong);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t value = 1; value <= first + row; ++value) {
      inputs[row][value - 1][0] = static_cast<double>(value);
      targets[row][value - 1] = value % 2;
    }
  }
  return {inputs, targets, rows, (first + last) * rows / 2};
}

Batch token_batch(std::int64_t rows, std::int64_t length, std::int64_t vocabulary) {
  at::manual_seed(11);
  const at::Tensor tokens = at::randint(vocabulary, {rows, length + 1}, at::kLong);
  return {tokens.slice(1, 0, length), tokens.slice(1, 1).clone(), rows, rows * length};
}

}  // namespace

class TestModels : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void no_parameter_is_read_before_the_model_says_so_data() {
    QTest::addColumn<int>("kind");
    QTest::addColumn<bool>("plain");
    QTest::addColumn<QList<int>>("missing");  // after each call
    // Embeddings, a block of twelve, another one, the tied table again, the last norm.
    const QList<int> gpt{26, 14, 2, 2, 0};
    QTest::newRow("fused") << int(ModelKind::gpt) << false << gpt;
    QTest::newRow("plain operators") << int(ModelKind::gpt) << true << gpt;
    // One embedding, blocks of six, the last norm and the head.
    QTest::newRow("llama") << int(ModelKind::llama) << true << QList<int>{14, 8, 2, 0};
    // The same with types among the embeddings, and with the heads the last norm, its bias, two layers and a norm.
    QTest::newRow("bert") << int(ModelKind::bert) << true << QList<int>{35, 23, 11, 11, 0};
    // Embeddings, two blocks, the norm between; embeddings, two blocks of twenty; table, norm and bias.
    QTest::newRow("t5") << int(ModelKind::t5) << true << QList<int>{69, 57, 45, 43, 43, 23, 3, 3, 0};
  }
  void no_parameter_is_read_before_the_model_says_so() {
    QFETCH(int, kind);
    QFETCH(bool, plain);
    QFETCH(QList<int>, missing);
    ModelSpec spec = tiny_gpt();
    spec.kind = static_cast<ModelKind>(kind);
    const auto model = make_model(spec, 3);
    QVERIFY(model->says_what_it_uses());
    if (const auto gpt = std::dynamic_pointer_cast<GptModel>(model)) gpt->use_plain_operators(plain);
    Batch batch = token_batch(2, 12, 29);
    if (spec.kind == ModelKind::t5) batch.decoder_inputs = batch.inputs;
    if (spec.kind == ModelKind::bert) batch.order = at::zeros({2}, at::kLong);
    const auto loss_of = [&] {
      const LossSum loss = model->whole_loss(batch);
      return loss.sum.item<double>() + (loss.second.defined() ? loss.second.item<double>() : 0.0);
    };
    const double expected = loss_of();
    // On their way: each has its values only from the call that names it on.
    const std::vector<at::Tensor> parameters = model->parameters();
    std::vector<at::Tensor> values;
    const at::NoGradGuard no_grad;
    for (const at::Tensor& each : parameters) {
      values.push_back(each.detach().clone());
      at::Tensor(each).fill_(std::nan(""));
    }
    QList<int> still_missing;
    const auto place = [&](const at::Tensor& one) {
      return std::size_t(std::ranges::find_if(parameters, [&](const auto& each) { return each.is_same(one); }) -
                         parameters.begin());
    };
    model->before_use([&](const at::Tensor& first, const at::Tensor& last) {
      for (std::size_t i = place(first); i <= place(last); ++i) at::Tensor(parameters[i]).copy_(values[i]);
      still_missing.push_back(int(std::ranges::count_if(
          parameters, [](const auto& each) { return each.isnan().any().template item<bool>(); })));
    });
    QCOMPARE(loss_of(), expected);
    QCOMPARE(still_missing, missing);
  }

  void parameters_are_those_of_the_plan_data() {
    QTest::addColumn<int>("kind");
    QTest::addColumn<bool>("bias");
    QTest::newRow("linear") << static_cast<int>(ModelKind::linear) << true;
    QTest::newRow("linear without bias") << static_cast<int>(ModelKind::linear) << false;
    QTest::newRow("mlp") << static_cast<int>(ModelKind::mlp) << true;
    QTest::newRow("mlp without bias") << static_cast<int>(ModelKind::mlp) << false;
    for (const auto& [name, kind] : {std::pair("gpt", ModelKind::gpt), std::pair("llama", ModelKind::llama)})
      for (const bool bias : {true, false}) QTest::addRow("%s, bias %d", name, bias) << static_cast<int>(kind) << bias;
  }
  void parameters_are_those_of_the_plan() {
    QFETCH(int, kind);
    QFETCH(bool, bias);
    ModelSpec spec = tiny_gpt();
    spec.kind = static_cast<ModelKind>(kind);
    spec.inputs = 3;
    spec.outputs = 5;
    spec.hidden = {7, 4};
    spec.bias = bias;
    const auto model = make_model(spec, 0);
    const auto planned = parameter_shapes(spec);
    const auto named = model->named_parameters();
    QCOMPARE(named.size(), planned.size());
    for (std::size_t i = 0; i < planned.size(); ++i) {
      QCOMPARE(named[i].key(), planned[i].name);
      QCOMPARE(named[i].value().sizes().vec(), planned[i].shape);
      QVERIFY(named[i].value().requires_grad());
    }
  }

  void parameters_of_other_forms_are_those_of_the_plan() {
    for (int form = 0; form < 6; ++form) {
      ModelSpec spec = tiny_gpt();
      spec.kind = form % 2 == 0 ? ModelKind::llama : ModelKind::gpt;
      if (form < 2) spec.kv_heads = 1;
      if (form == 2 || form == 3) spec.head_width = 6;
      if (form > 2) spec.mlp_width = 20;
      if (form == 4) spec.tied_head = true;
      if (form == 5) spec.positions = PositionKind::rotary;
      const auto named = make_model(spec, 0)->named_parameters();
      const auto planned = parameter_shapes(spec);
      QCOMPARE(named.size(), planned.size());
      for (std::size_t i = 0; i < planned.size(); ++i) {
        QCOMPARE(named[i].key(), planned[i].name);
        QCOMPARE(named[i].value().sizes().vec(), planned[i].shape);
      }
    }
  }

  void linear_starts_as_pytorch_does_after_manual_seed_0() {
    for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
      const auto model = make_model(small_linear(2, dtype), 0);
      const at::Tensor weight = model->parameters()[0].detach().to(at::kDouble);
      QVERIFY(std::abs(weight[0][0].item<double>() + 0.0074868202) < 1e-10);
      QVERIFY(std::abs(weight[1][0].item<double>() - 0.5364435911) < 1e-10);
    }
  }

  void weights_depend_on_the_seed_alone() {
    at::manual_seed(1);
    const auto one = make_model(tiny_gpt(), 5);
    at::manual_seed(2);
    const auto two = make_model(tiny_gpt(), 5), other = make_model(tiny_gpt(), 6);
    for (std::size_t i = 0; i < one->parameters().size(); ++i) {
      QVERIFY(at::equal(one->parameters()[i], two->parameters()[i]));
    }
    QVERIFY(!at::equal(one->parameters()[0], other->parameters()[0]));
  }

  void gpt_starts_with_scaled_residual_projections() {
    ModelSpec spec = tiny_gpt();
    spec.width = 64;
    spec.layers = 8;
    const auto named = make_model(spec, 0)->named_parameters();
    const auto deviation = [&](const char* name) { return named[name].std().item<double>(); };
    QVERIFY(std::abs(deviation("blocks.0.attention.qkv.weight") - 0.02) < 0.001);
    QVERIFY(std::abs(deviation("blocks.7.mlp.down.weight") - 0.02 / 4) < 0.0003);
    QVERIFY(named["blocks.3.norm_1.weight"].eq(1).all().item<bool>());
    QVERIFY(named["blocks.3.mlp.up.bias"].eq(0).all().item<bool>());
  }

  void given_values_are_taken_digit_for_digit() {
    ModelSpec spec = small_linear(2, Dtype::float64);
    spec.bias = true;
    spec.init = WeightInit::values;
    spec.values = {0.1, 0.2, 0.3, 0.4};
    const auto model = make_model(spec, 0);
    QCOMPARE(model->parameters()[0][1][0].item<double>(), 0.2);
    QCOMPARE(model->parameters()[1][1].item<double>(), 0.4);
    spec.values.pop_back();
    QVERIFY_EXCEPTION_THROWN(make_model(spec, 0), std::invalid_argument);
  }

  // x = 1..8, y = 2x, weight 0, mean squared error, SGD 0.02: one update gives 2.04, however the eight are grouped.
  void eight_points_give_two_point_zero_four() {
    for (const std::int64_t micro_batch : {8, 2, 1}) {
      ModelSpec spec = small_linear(1, Dtype::float64);
      spec.init = WeightInit::zeros;
      const auto model = make_model(spec, 0);
      std::int64_t count = 0;
      for (std::int64_t from = 0; from < 8; from += micro_batch) {
        const auto part =
            model->whole_loss({column(1, 1).slice(0, from, from + micro_batch),
                               column(2, 2).slice(0, from, from + micro_batch), micro_batch, micro_batch});
        part.sum.backward();
        count += part.count;
      }
      at::Tensor weight = model->parameters()[0];
      QCOMPARE(count, std::int64_t{8});
      QVERIFY(std::abs((weight.detach() - 0.02 * weight.grad() / count).item<double>() - 2.04) < 1e-12);
    }
  }

  void causal_toy_counts_true_tokens() {
    struct Case {
      std::vector<std::pair<int, int>> micro_steps;
      std::int64_t tokens;
      double loss, first, second;
    };
    const std::vector<Case> cases{{{{1, 8}}, 36, 1.1212300119, 0.0952785681, 0.4336782027},
                                  {{{1, 4}, {5, 8}}, 36, 1.1212300119, 0.0952785681, 0.4336782027},
                                  {{{1, 4}, {5, 8}, {9, 12}, {13, 16}}, 136, 1.7583316437, 0.2117169063, 0.3172398646}};
    for (const Case& expected : cases) {
      ModelSpec spec = small_linear(2, Dtype::float64);
      spec.loss = LossKind::cross_entropy;
      const auto model = make_model(spec, 0);
      std::int64_t count = 0;
      double sum = 0.0;
      for (const auto& [first, last] : expected.micro_steps) {
        const auto part = model->whole_loss(toy_batch(first, last));
        part.sum.backward();
        count += part.count;
        sum += part.sum.item<double>();
      }
      at::Tensor weight = model->parameters()[0];
      const at::Tensor updated = weight.detach() - 0.08 * weight.grad() / count;
      QCOMPARE(count, expected.tokens);
      QVERIFY(std::abs(sum / static_cast<double>(count) - expected.loss) < 1e-8);
      QVERIFY(std::abs(updated[0][0].item<double>() - expected.first) < 1e-8);
      QVERIFY(std::abs(updated[1][0].item<double>() - expected.second) < 1e-8);
    }
  }

  void losses_are_sums_over_what_counts() {
    const auto model = make_model(tiny_gpt(), 0);
    Batch batch = token_batch(3, 12, 29);
    const auto whole = model->whole_loss(batch);
    QCOMPARE(whole.count, std::int64_t{36});
    QCOMPARE(whole.sum.dim(), std::int64_t{0});
    // Nearly uniform predictions at the start: about log(vocabulary) a token.
    QVERIFY(std::abs(whole.sum.item<double>() / 36 - std::log(29.0)) < 0.1);
    at::Tensor rest = model->whole_loss({batch.inputs.slice(0, 1), batch.targets.slice(0, 1), 2, 24}).sum;
    batch.targets[0].fill_(-100);
    batch.items = 24;
    const auto part = model->whole_loss(batch);
    QCOMPARE(part.count, std::int64_t{24});
    QVERIFY(at::allclose(part.sum, rest, 1e-5));
    batch.targets.fill_(-100);
    batch.items = 0;
    const auto none = model->whole_loss(batch);
    QCOMPARE(none.count, std::int64_t{0});
    QCOMPARE(none.sum.item<double>(), 0.0);
    none.sum.backward();
    for (const at::Tensor& parameter : model->parameters()) {
      QVERIFY(!parameter.grad().defined() || parameter.grad().eq(0).all().item<bool>());
    }
  }

  void every_dtype_trains_a_step_data() {
    QTest::addColumn<int>("dtype");
    QTest::newRow("float32") << static_cast<int>(Dtype::float32);
    QTest::newRow("float64") << static_cast<int>(Dtype::float64);
    QTest::newRow("bfloat16") << static_cast<int>(Dtype::bfloat16);
    QTest::newRow("float16") << static_cast<int>(Dtype::float16);
  }
  void every_dtype_trains_a_step() {
    QFETCH(int, dtype);
    ModelSpec spec = tiny_gpt();
    spec.dtype = static_cast<Dtype>(dtype);
    const auto model = make_model(spec, 0);
    const auto reference = make_model(tiny_gpt(), 0);
    const Batch batch = token_batch(2, 12, 29);
    const auto loss = model->whole_loss(batch);
    loss.sum.backward();
    QCOMPARE(loss.sum.scalar_type(), spec.dtype == Dtype::float64 ? at::kDouble : at::kFloat);
    const double expected = reference->whole_loss(batch).sum.item<double>();
    QVERIFY(std::abs(loss.sum.item<double>() / expected - 1.0) < (dtype < 2 ? 1e-6 : 1e-2));
    for (const at::Tensor& parameter : model->parameters()) {
      QVERIFY(parameter.grad().defined());
      QVERIFY(at::isfinite(parameter.grad()).all().item<bool>());
    }
  }

  /// Rows that make the table divisible are no part of the model.
  void a_padded_vocabulary_is_the_same_model_data() {
    const Rows<int, bool> row;
    row("fused", 8, false);
    row("in plain operators", 8, true);
    row("more padding than vocabulary", 128, false);
  }
  void a_padded_vocabulary_is_the_same_model() {
    const auto [multiple, plain] = current_row<int, bool>();
    ModelSpec spec = tiny_gpt();
    spec.dtype = Dtype::float64;
    const auto usual = std::dynamic_pointer_cast<GptModel>(make_model(spec, 1));
    spec.vocabulary_multiple = multiple;
    const auto padded = std::dynamic_pointer_cast<GptModel>(make_model(spec, 1));
    const Batch batch = token_batch(2, 12, 29);
    std::vector<at::Tensor> losses;
    for (const auto& model : {usual, padded}) {
      model->use_plain_operators(plain);
      losses.push_back(model->whole_loss(batch).sum);
      losses.back().backward();
    }
    QVERIFY(at::allclose(losses[1], losses[0], 1e-12, 0.0));
    QVERIFY(at::allclose(padded->logits_of(batch.inputs), usual->logits_of(batch.inputs), 1e-12, 1e-12));
    const auto rows = [](const at::Tensor& tensor, const at::Tensor& like) {
      return tensor.narrow(0, 0, like.size(0));
    };
    for (std::size_t i = 0; i < usual->parameters().size(); ++i) {
      const at::Tensor a = usual->parameters()[i], b = padded->parameters()[i];
      QVERIFY(at::equal(rows(b, a), a));
      QVERIFY(at::allclose(rows(b.grad(), a), a.grad(), 1e-12, 1e-14));
      QVERIFY(b.size(0) % multiple == 0 || i > 0);
      QVERIFY(b.narrow(0, a.size(0), b.size(0) - a.size(0)).eq(0).all().item<bool>());
      QVERIFY(b.grad().narrow(0, a.size(0), b.size(0) - a.size(0)).eq(0).all().item<bool>());
    }
  }

  void under_megatron_padding_every_row_takes_part() {
    ModelSpec spec = tiny_gpt();
    spec.vocabulary_multiple = 8;
    spec.vocabulary_padding = VocabularyPadding::megatron;
    const auto model = std::dynamic_pointer_cast<GptModel>(make_model(spec, 1));
    const Batch batch = token_batch(2, 12, 29);
    QCOMPARE(model->logits_of(batch.inputs).size(-1), 32);
    model->whole_loss(batch).sum.backward();
    const at::Tensor table = model->parameters().front();
    QVERIFY(table.grad().slice(0, 29).ne(0).all().item<bool>());
    QVERIFY(table.slice(0, 29).ne(0).any().item<bool>());
  }

  void dropout_acts_in_training_only() {
    ModelSpec spec = tiny_gpt();
    spec.dropout = 0.5;
    const auto model = make_model(spec, 0);
    const Batch batch = token_batch(2, 12, 29);
    const auto sum = [&] { return model->whole_loss(batch).sum.item<double>(); };
    QVERIFY(sum() != sum());
    model->eval();
    QCOMPARE(sum(), sum());
    const auto plain = make_model(tiny_gpt(), 0);
    QVERIFY(std::abs(sum() / plain->whole_loss(batch).sum.item<double>() - 1.0) < 1e-5);
  }

  void a_later_token_changes_no_earlier_loss() {
    const auto model = make_model(tiny_gpt(), 0);
    model->eval();
    const at::NoGradGuard no_grad;
    Batch batch = token_batch(1, 12, 29);
    batch.targets.slice(1, 6).fill_(-100);
    const double before = model->whole_loss(batch).sum.item<double>();
    batch.inputs = batch.inputs.clone();
    batch.inputs.slice(1, 6).fill_(3);
    QCOMPARE(model->whole_loss(batch).sum.item<double>(), before);
    batch.inputs.slice(1, 5, 6).fill_(3);
    QVERIFY(model->whole_loss(batch).sum.item<double>() != before);
  }

  void mlp_learns_a_line() {
    ModelSpec spec{.kind = ModelKind::mlp, .inputs = 1, .outputs = 1, .hidden = {16}};
    const auto model = make_model(spec, 0);
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05));
    const Batch batch{column(-1, 0.25), column(-2, 0.5), 8, 8};
    const double start = model->whole_loss(batch).sum.item<double>();
    for (int step = 0; step < 200; ++step) {
      optimizer.zero_grad();
      const auto loss = model->whole_loss(batch);
      (loss.sum / loss.count).backward();
      optimizer.step();
    }
    QVERIFY(model->whole_loss(batch).sum.item<double>() < 0.02 * start);
  }

  void what_does_not_fit_is_refused_in_words() {
    const auto model = make_model(tiny_gpt(), 0);
    QVERIFY_EXCEPTION_THROWN(model->whole_loss(token_batch(1, 13, 29)), std::invalid_argument);
    ModelSpec odd = tiny_gpt();
    odd.heads = 3;
    QVERIFY_EXCEPTION_THROWN(make_model(odd, 0), std::invalid_argument);
    const auto linear = make_model(small_linear(2, Dtype::float32), 0);
    QVERIFY_EXCEPTION_THROWN(linear->whole_loss({column(1, 1), column(1, 1), 8, 8}), std::invalid_argument);
  }
};

ACCRUE_TEST_MAIN(TestModels)

}  // namespace test_models
#include "test_models.moc"

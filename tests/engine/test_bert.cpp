// SPDX-License-Identifier: Apache-2.0
// A BERT: against Megatron-LM's, its losses and their gradients, padding, recomputation, and the heads of fine-tuning.
#include <ATen/ATen.h>

#include <QTest>
#include <cmath>

#include "accrue/models/bert_classifier.h"
#include "accrue/run/cost/shard_layout.h"
#include "data/synthetic_sentences.h"
#include "models/bert_model.h"
#include "support/made_weights.h"
#include "support/test_program.h"

namespace test_bert {

using namespace accrue;
using namespace accrue::test;

namespace {

ModelSpec tiny(bool binary_head = true, double dropout = 0.0) {
  return {.kind = ModelKind::bert,
          .dtype = Dtype::float64,
          .layers = 2,
          .width = 8,
          .heads = 2,
          .context = 6,
          .vocabulary = 13,
          .dropout = dropout,
          .binary_head = binary_head};
}

std::shared_ptr<BertModel> made(const ModelSpec& spec, const ParallelSpec& parallel = {}) {
  auto model = std::dynamic_pointer_cast<BertModel>(make_model_part(spec, 3, {}, {}, parallel));
  fill_by_formula(*model);
  return model;
}

Batch two_samples() {
  Batch batch{.inputs = rows({{1, 5, 7, 2, 9, 0}, {3, 3, 8, 11, 12, 4}}),
              .targets = rows({{-100, 6, -100, -100, 2, -100}, {10, -100, -100, 12, -100, 0}}),
              .samples = 2,
              .items = 5};
  batch.types = rows({{0, 0, 0, 1, 1, 0}, {0, 0, 1, 1, 1, 1}});
  batch.padding = rows({{1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 1}});
  batch.order = at::tensor(at::ArrayRef<std::int64_t>({1, 0}));
  return batch;
}

/// The mean over masked tokens and that over samples.
at::Tensor mean_loss(const LossSum& loss) {
  const at::Tensor first = loss.sum / loss.count;
  return loss.second.defined() ? first + loss.second / loss.second_count : first;
}

}  // namespace

class TestBert : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void parameters_are_those_of_the_plan() {
    for (const bool binary_head : {true, false}) {
      const ModelSpec spec = tiny(binary_head);
      VERIFY_PLANNED(*make_model(spec, 0), spec);
    }
  }

  /// Expected values: megatron-core 0.12.0's BertModel on a CPU in float64 (local layers, GELU in its tanh form in the
  /// blocks), with the same weights and batch. PyTorch computed the losses from the logits, since Megatron-LM's own
  /// cross entropy computes in float32.
  void logits_losses_and_gradients_are_megatrons() {
    const auto model = made(tiny());
    const Batch batch = two_samples();
    const at::Tensor states = model->encoded(model->forward(batch, {}));
    const at::Tensor logits = model->masked_logits(states);
    QVERIFY(at::equal(model->logits(model->forward(batch, {})), logits));
    VERIFY_NUMBERS(logits[0][1],
                   ({0.37644218734489, 0.305121259305131, -0.97280131883059, 1.13009249115903, 0.14280730010938,
                     -1.39978532732165, 0.931208711087803, 0.198840183962097, -0.741346402015283, 1.01001524221721,
                     -0.603072381747981, -0.823473840537417, 1.47600228405246}));
    VERIFY_NUMBERS(logits[1][5],
                   ({0.454181250318839, 0.0203025135223277, -0.730982716595898, 1.1435983789284, -0.114164482967699,
                     -1.12497696527253, 0.879854164327037, -0.0183499935268292, -0.446311314376291, 0.896185340597863,
                     -0.770393903721086, -0.521914459406721, 1.30498367503791}));
    VERIFY_NUMBERS(model->order_logits(model->pooled(states, 6)),
                   ({0.550909872586861, 0.150385227358225, 0.605110577022653, 0.0483353723185621}));
    const LossSum loss = model->whole_loss(batch);
    VERIFY_NUMBERS(loss.sum, ({12.5153241943461}));
    const at::Tensor losses = model->token_losses(model->forward(batch, {}), batch);
    VERIFY_NUMBERS(losses.masked_select(batch.targets != -100).sum(), ({12.5153241943461}));
    VERIFY_NUMBERS(loss.second, ({1.36634838102333}));
    QCOMPARE(loss.count, 5);
    QCOMPARE(loss.second_count, 2);
    mean_loss(loss).backward();
    auto named = model->named_parameters();
    VERIFY_NUMBERS(gradient_length(*model), ({1.84437484946499}));
    VERIFY_NUMBERS(named["token_embedding.weight"].grad()[5],
                   ({0.00380712484865032, 0.00189112670628385, -0.0196061035439285, 0.0081964884547103,
                     0.0152766133932321, -0.0101686261789453, 0.00437767068348899, 0.00316966917219819}));
    VERIFY_NUMBERS(named["pooler.weight"].grad()[0],
                   ({0.0474396210417915, -0.0901291635608285, 0.0202903520444422, 0.119203001210254,
                     -0.0700327546026624, 0.0629110093008512, -0.033511401840217, -0.0751100330087926}));
    VERIFY_NUMBERS(named["blocks.0.attention.qkv.bias"].grad(), ({-0.00101880331614735,
                                                                  -0.0103516285223442,
                                                                  0.0126330045956869,
                                                                  -0.00382220488202817,
                                                                  0.00608886132353286,
                                                                  -0.0133404949782645,
                                                                  0.00887875401465394,
                                                                  0.00337881252268516,
                                                                  0,
                                                                  0,
                                                                  0,
                                                                  0,
                                                                  0,
                                                                  0,
                                                                  0,
                                                                  0,
                                                                  -0.00661006753624163,
                                                                  -0.0392509045359384,
                                                                  -0.0143890744353964,
                                                                  0.0315527834230175,
                                                                  0.0312697396464011,
                                                                  -0.014823545969401,
                                                                  -0.0392003020121563,
                                                                  -0.00614852377056265}));
  }

  void gradients_are_those_of_finite_differences() {
    const auto model = made(tiny());
    const Batch batch = two_samples();
    VERIFY_GRADIENTS(*model, [&] { return mean_loss(model->whole_loss(batch)); });
  }

  void padding_and_what_is_not_asked_for_change_nothing() {
    const auto model = made(tiny());
    const Batch batch = two_samples();
    Batch other = two_samples();
    other.inputs[0][5] = 11;
    other.types[0][5] = 1;
    const LossSum loss = model->whole_loss(batch), again = model->whole_loss(other);
    QVERIFY(std::abs((loss.sum - again.sum).item<double>()) < 1e-13);
    QVERIFY(std::abs((loss.second - again.second).item<double>()) < 1e-13);
    other.inputs[0][4] = 11;  // a token that the others look at
    QVERIFY(std::abs((loss.sum - model->whole_loss(other).sum).item<double>()) > 1e-3);
    other.order = at::Tensor();
    QVERIFY(!model->whole_loss(other).second.defined());
    QVERIFY(!made(tiny(false))->whole_loss(batch).second.defined());
    // Without padding and types all are tokens of one segment.
    Batch plain = two_samples();
    plain.padding.fill_(1);
    plain.types.fill_(0);
    const double given = model->whole_loss(plain).sum.item<double>();
    plain.padding = plain.types = at::Tensor();
    QVERIFY(std::abs(given - model->whole_loss(plain).sum.item<double>()) < 1e-13);
  }

  void what_is_computed_again_has_the_same_bits() {
    const Batch batch = two_samples();
    const auto trained = [&](const ParallelSpec& parallel) {
      const auto model = made(tiny(true, 0.3), parallel);
      at::manual_seed(7);
      mean_loss(model->whole_loss(batch)).backward();
      return gradients_of(*model);
    };
    const auto expected = trained({});
    for (const ParallelSpec& parallel : {ParallelSpec{.recompute = RecomputeKind::selective},
                                         ParallelSpec{.recompute = RecomputeKind::full, .recompute_layers = 2}}) {
      const auto found = trained(parallel);
      for (std::size_t i = 0; i < expected.size(); ++i) QVERIFY(at::equal(found[i], expected[i]));
    }
  }

  void a_wrong_batch_is_refused() {
    const auto model = made(tiny());
    Batch batch = two_samples();
    batch.targets[0][0] = 13;
    QVERIFY_EXCEPTION_THROWN(model->whole_loss(batch), std::invalid_argument);
    batch = two_samples();
    batch.inputs = at::zeros({2, 7}, at::kLong);
    QVERIFY_EXCEPTION_THROWN(model->whole_loss(batch), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(made(tiny(false))->pooled(at::zeros({2, 6, 8}, at::kDouble), 6), std::logic_error);
  }

  /// The means by hand: squares 0.25 and 1; log(1 + e^-1) for the right class by one; log 2, and log(1 + e^-1) twice.
  void a_classifier_takes_its_loss_by_labels_and_targets() {
    const auto doubles = [](std::vector<double> values) { return at::tensor(values, at::kDouble); };
    const BertClassifier one(tiny(), 1, 5), two(tiny(), 2, 5);
    QCOMPARE(one.loss(doubles({0.5, 2.0}).view({2, 1}), doubles({1.0, 1.0})).item<double>(), 0.625);
    const at::Tensor logits = doubles({1.0, 0.0, 0.0, 1.0}).view({2, 2});
    const double right = std::log1p(std::exp(-1.0)), wrong = right + 1.0;
    QVERIFY(std::abs(two.loss(logits, at::tensor(at::ArrayRef<std::int64_t>({0, 0}))).item<double>() -
                     (right + wrong) / 2) < 1e-15);
    const double each = (2 * right + 2 * std::log(2.0)) / 4;
    QVERIFY(std::abs(two.loss(logits, doubles({1.0, 0.0, 1.0, 1.0}).view({2, 2})).item<double>() - each) < 1e-15);
    QVERIFY_EXCEPTION_THROWN(one.loss(logits, doubles({1.0})), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(BertClassifier(tiny(false), 2, 5), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(BertClassifier(tiny(), 0, 5), std::invalid_argument);
  }

  void a_classifier_learns() {
    BertClassifier classifier(tiny(), 2, 5);
    const Batch batch = two_samples();
    const at::Tensor targets = at::tensor(at::ArrayRef<std::int64_t>({1, 0}));
    const auto loss = [&] { return classifier.loss(classifier.forward(batch), targets); };
    const double before = loss().item<double>();
    for (int step = 0; step < 20; ++step) {
      classifier.zero_grad();
      loss().backward();
      const at::NoGradGuard no_grad;
      for (at::Tensor& parameter : classifier.parameters())
        if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.5);
    }
    QVERIFY2(loss().item<double>() < 0.1 * before, qPrintable(QString::number(loss().item<double>())));
  }

  void made_samples_ask_for_as_many_tokens_each() {
    ModelSpec model = tiny();
    model.context = 40;
    model.vocabulary = 30;
    DataFacts facts;
    facts.samples = 20;
    facts.validation_samples = 2;
    facts.tokens_per_sample = synthetic_items(model);
    QCOMPARE(facts.tokens_per_sample, 6);
    const auto source = make_synthetic_sentences(9, model, facts);
    std::int64_t swapped = 0, padded = 0;
    for (std::int64_t i = 0; i < 20; ++i) {
      const Batch batch = source->batch(Split::train, std::vector<std::int64_t>{i});
      QCOMPARE(batch.items, 6);
      QCOMPARE((batch.targets >= 0).sum().item<std::int64_t>(), 6);
      QCOMPARE(batch.inputs[0][0].item<std::int64_t>(), 26);
      QCOMPARE((batch.inputs == 27).sum().item<std::int64_t>(), 2);
      QVERIFY((batch.padding == 1).eq(batch.inputs != 29).all().item<bool>());
      QVERIFY(batch.targets.max().item<std::int64_t>() < 26);
      swapped += batch.order.item<std::int64_t>();
      padded += 40 - batch.padding.sum().item<std::int64_t>();
    }
    QVERIFY(swapped > 2 && swapped < 18);
    QVERIFY(padded > 0);
    const Batch first = source->batch(Split::train, std::vector<std::int64_t>{0, 1});
    QVERIFY(at::equal(first.inputs[1], source->batch(Split::train, std::vector<std::int64_t>{1}).inputs[0]));
    QVERIFY(!at::equal(first.inputs[0], source->batch(Split::validation, std::vector<std::int64_t>{0}).inputs[0]));
  }
};

ACCRUE_TEST_MAIN(TestBert)

}  // namespace test_bert
#include "test_bert.moc"

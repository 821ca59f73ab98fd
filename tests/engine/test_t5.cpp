// SPDX-License-Identifier: Apache-2.0
// A T5: against Megatron-LM's, its gradients, what its tokens look at, recomputation, and made samples.
#include <ATen/ATen.h>

#include <QTest>
#include <cmath>

#include "accrue/run/shard_layout.h"
#include "data/synthetic_sentences.h"
#include "models/t5_model.h"
#include "support/made_weights.h"
#include "support/test_program.h"

namespace test_t5 {

using namespace accrue;
using namespace accrue::test;

namespace {

ModelSpec tiny(double dropout = 0.0) {
  return {.kind = ModelKind::t5,
          .dtype = Dtype::float64,
          .layers = 2,
          .width = 8,
          .heads = 2,
          .context = 6,
          .vocabulary = 13,
          .dropout = dropout,
          .decoder_layers = 1,
          .decoder_context = 4};
}

std::shared_ptr<T5Model> made(const ModelSpec& spec, const ParallelSpec& parallel = {}) {
  auto model = std::dynamic_pointer_cast<T5Model>(make_model_part(spec, 3, {}, {}, parallel));
  fill_by_formula(*model);
  return model;
}

Batch two_samples() {
  Batch batch{.inputs = rows({{1, 5, 7, 2, 9, 0}, {3, 3, 8, 11, 12, 4}}),
              .targets = rows({{12, 6, 6, 3}, {11, 1, 3, -100}}),
              .samples = 2,
              .items = 7};
  batch.padding = rows({{1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 1}});
  batch.decoder_inputs = rows({{2, 12, 6, 6}, {2, 11, 1, 0}});
  return batch;
}

}  // namespace

class TestT5 : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void parameters_are_those_of_the_plan() {
    ModelSpec spec = tiny();
    VERIFY_PLANNED(*make_model(spec, 0), spec);
    spec.decoder_layers = spec.decoder_context = std::nullopt;
    VERIFY_PLANNED(*make_model(spec, 0), spec);
  }

  /// What megatron-core 0.12.0's T5Model gave on a CPU in float64 (local layers, GELU in its tanh form) for the same
  /// weights and batch.
  void logits_loss_and_gradients_are_megatrons() {
    const auto model = made(tiny());
    const Batch batch = two_samples();
    const at::Tensor logits = model->logits(model->forward(batch, {}));
    VERIFY_NUMBERS(logits[0][1], ({0.375036923309851, 1.08313771041312, -1.1858143741914, 0.633942266380702, 0.276930215538847, -1.43700954965265, 1.2695585428974, 0.469767260690742, -1.48625108109586, 0.906645279029761, 0.00290657582147157, -0.868163515866876, 1.4595949295955}));
    VERIFY_NUMBERS(logits[1][2], ({-0.786774252881249, 1.38761270538578, -0.365614555920095, -0.590771100581711, 0.830820234720759, -0.833743344904482, 0.0388228359122943, 1.247347769287, -1.12793622252027, -0.272953219292837, 0.968064092533432, -0.771441363170218, 0.385918202868935}));
    const LossSum loss = model->whole_loss(batch);
    VERIFY_NUMBERS(loss.sum, ({15.781729221344}));
    QCOMPARE(loss.count, 7);
    (loss.sum / loss.count).backward();
    auto named = model->named_parameters();
    VERIFY_NUMBERS(gradient_length(*model), ({4.66646167287409}));
    VERIFY_NUMBERS(named["token_embedding.weight"].grad()[5], ({0.00391779154016633, -0.00438708266111037, 0.0421162663378292, -0.00317025490305665, -0.0614703163751069, 0.0538456594865539, -0.0155100120060212, -0.0046998798837102}));
    VERIFY_NUMBERS(named["position_embedding.weight"].grad()[1], ({1.25563629019444, 0.723544257209899, -1.07356344451946, -1.48508976212699, 0.113422522497416, 1.32691332204227, 0.450165220513462, -1.31102840581104}));
    VERIFY_NUMBERS(named["decoder.0.cross.key_value.bias"].grad(), ({0, 0, 0, 0, 0, 0, 0, 0, -0.0411505579779931, -0.0256484372793669, 0.0274287041214301, 0.0403227297257131, -0.00585613818428213, -0.0434557499348305, -0.0173925862248585, 0.0341507570510274}));
  }

  void gradients_are_those_of_finite_differences() {
    const auto model = made(tiny());
    const Batch batch = two_samples();
    VERIFY_GRADIENTS(*model, [&] { return model->whole_loss(batch).sum; });
  }

  void tokens_look_at_what_they_may() {
    const auto model = made(tiny());
    const at::Tensor before = model->logits(model->forward(two_samples(), {}));
    const auto changed = [&](const Batch& batch, std::int64_t sample) {
      std::vector<bool> differs;
      const at::Tensor logits = model->logits(model->forward(batch, {}));
      for (std::int64_t t = 0; t < 4; ++t)
        differs.push_back((logits[sample][t] - before[sample][t]).abs().max().item<double>() > 1e-9);
      return differs;
    };
    Batch batch = two_samples();
    batch.decoder_inputs[0][2] = 9;
    QCOMPARE(changed(batch, 0), (std::vector<bool>{false, false, true, true}));
    QCOMPARE(changed(batch, 1), std::vector<bool>(4, false));
    batch = two_samples();
    batch.inputs[0][4] = 10;
    QCOMPARE(changed(batch, 0), std::vector<bool>(4, true));
    batch = two_samples();
    batch.inputs[0][5] = 10;  // padding
    QCOMPARE(changed(batch, 0), std::vector<bool>(4, false));
  }

  void what_is_computed_again_has_the_same_bits() {
    const Batch batch = two_samples();
    const auto trained = [&](const ParallelSpec& parallel) {
      const auto model = made(tiny(0.3), parallel);
      at::manual_seed(7);
      model->whole_loss(batch).sum.backward();
      return gradients_of(*model);
    };
    const auto expected = trained({});
    for (const ParallelSpec& parallel :
         {ParallelSpec{.recompute = RecomputeKind::selective}, ParallelSpec{.recompute = RecomputeKind::full},
          ParallelSpec{.recompute = RecomputeKind::full, .recompute_layers = 2}}) {
      const auto found = trained(parallel);
      for (std::size_t i = 0; i < expected.size(); ++i) QVERIFY(at::allclose(found[i], expected[i], 1e-13, 1e-14));
    }
  }

  void a_wrong_batch_is_refused() {
    const auto model = made(tiny());
    Batch batch = two_samples();
    batch.decoder_inputs = at::zeros({2, 5}, at::kLong);
    QVERIFY_EXCEPTION_THROWN(model->whole_loss(batch), std::invalid_argument);
    batch = two_samples();
    batch.targets[1][0] = 13;
    QVERIFY_EXCEPTION_THROWN(model->whole_loss(batch), std::invalid_argument);
  }

  void made_samples_write_what_was_masked() {
    ModelSpec model = tiny();
    model.context = 40;
    model.decoder_context = 12;
    model.vocabulary = 30;
    DataFacts facts;
    facts.samples = 10;
    facts.tokens_per_sample = synthetic_items(model);
    QCOMPARE(facts.tokens_per_sample, 9);  // two spans of three tokens, their sentinels, and the end
    const auto source = make_synthetic_sentences(9, model, facts);
    for (std::int64_t i = 0; i < 10; ++i) {
      const Batch batch = source->batch(Split::train, std::vector<std::int64_t>{i});
      QCOMPARE(batch.items, 9);
      const at::Tensor decoder = batch.decoder_inputs[0], targets = batch.targets[0];
      QCOMPARE(decoder[0].item<std::int64_t>(), 28);
      QVERIFY(at::equal(targets.slice(0, 0, 8), decoder.slice(0, 1, 9)));
      QCOMPARE(targets[8].item<std::int64_t>(), 27);
      QVERIFY(targets.slice(0, 9).eq(-100).all().item<bool>());
      for (const std::int64_t sentinel : {26, 25}) {
        QCOMPARE((batch.inputs == sentinel).sum().item<std::int64_t>(), 1);
        QCOMPARE((decoder == sentinel).sum().item<std::int64_t>(), 1);
      }
      QVERIFY((batch.padding == 1).eq(batch.inputs != 29).all().item<bool>());
    }
  }
};

ACCRUE_TEST_MAIN(TestT5)

}  // namespace test_t5
#include "test_t5.moc"

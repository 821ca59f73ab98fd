// SPDX-License-Identifier: Apache-2.0
// A T5: against Megatron-LM's, its gradients, what its tokens look at, recomputation, and made samples.
#include <ATen/ATen.h>

#include <QTest>
#include <cmath>

#include "accrue/run/cost/shard_layout.h"
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

  /// Expected values: megatron-core 0.12.0's T5Model on a CPU in float64 (local layers, GELU in its tanh form), with
  /// the same weights and batch. PyTorch computed the loss from the logits, since Megatron-LM's own cross entropy
  /// computes in float32.
  void logits_loss_and_gradients_are_megatrons() {
    const auto model = made(tiny());
    const Batch batch = two_samples();
    const at::Tensor logits = model->logits(model->forward(batch, {}));
    VERIFY_NUMBERS(logits[0][1],
                   ({0.373237297652306, 1.08934388329144, -1.19097787910107, 0.63352938343733, 0.282556962111296,
                     -1.44290969920464, 1.27055157835521, 0.47455325572493, -1.49261385229427, 0.908998112947419,
                     0.00662954144359449, -0.874693399994441, 1.46319828837016}));
    VERIFY_NUMBERS(logits[1][2],
                   ({-0.761137293207109, 1.34185321276203, -0.33991080561467, -0.573850406514326, 0.786131998422244,
                     -0.800525244860558, 0.0462414098382405, 1.20580626287304, -1.08874653419013, -0.275381309292253,
                     0.931598644733874, -0.728100188859628, 0.373756217695192}));
    const LossSum loss = model->whole_loss(batch);
    VERIFY_NUMBERS(loss.sum, ({15.7610691549748}));
    const at::Tensor losses = model->token_losses(model->forward(batch, {}), batch);
    VERIFY_NUMBERS(losses.masked_select(batch.targets != -100).sum(), ({15.7610691549748}));
    QCOMPARE(loss.count, 7);
    (loss.sum / loss.count).backward();
    auto named = model->named_parameters();
    VERIFY_NUMBERS(gradient_length(*model), ({4.3252734101833}));
    VERIFY_NUMBERS(named["token_embedding.weight"].grad()[5],
                   ({0.00364081582788035, -0.00568893125805878, 0.0433254122534285, -0.000774704932657452,
                     -0.0633050689386688, 0.0525692015952354, -0.0147297957030791, -0.00430736279278287}));
    VERIFY_NUMBERS(named["position_embedding.weight"].grad()[1],
                   ({1.14374886457205, 0.658046520141613, -0.978061053693289, -1.35117192649247, 0.104046838165487,
                     1.20828248771781, 0.409506783253283, -1.19439851366448}));
    VERIFY_NUMBERS(
        named["decoder.0.cross.key_value.bias"].grad(),
        ({0, 0, 0, 0, 0, 0, 0, 0, -0.0355990429096359, -0.0198160676721958, 0.0249974931291207, 0.0331896679333781,
          -0.00724109853988557, -0.0370636386881263, -0.0125878613273923, 0.0303291623681945}));
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

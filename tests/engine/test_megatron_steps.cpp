// SPDX-License-Identifier: Apache-2.0
// Batches, masks and losses of the Megatron-LM train steps, against values derived by hand.
#include <ATen/ATen.h>

#include <QTest>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "accrue/comm/rendezvous.h"
#include "accrue/megatron/data_parallel_groups.h"
#include "accrue/megatron/sequence_masks.h"
#include "accrue/megatron/train_step.h"
#include "support/refusals.h"
#include "support/reset_documents.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_megatron_steps {

using namespace accrue;
using namespace accrue::megatron;
using namespace accrue::test;
using accrue::megatron::Batch;

namespace {

at::Tensor ids(std::vector<std::int64_t> row) {
  return at::tensor(row, at::kLong).unsqueeze(0);
}
at::Tensor flags(std::vector<double> row) {
  return at::tensor(row, at::kFloat).unsqueeze(0);
}

Batch taken(AbstractTrainStep& step, const Batch& raw) {
  DataIter data({raw});
  return step.get_batch(data);
}

bool near(double a, double b, double tolerance = 1e-12) {
  return std::abs(a - b) <= tolerance;
}

double value(const LossReport& report, const std::string& name) {
  for (const auto& each : report)
    if (each.first == name) return each.second.item<double>();
  throw std::out_of_range("no loss of that name is reported");
}

}  // namespace

class TestMegatronSteps : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// Each switch acts on its own tensor alone; all rows of a batch are treated alike.
  void positions_and_masks_start_anew_after_a_document_data() {
    const Rows<int> row;
    for (int i = 0; i < static_cast<int>(std::size(reset_documents)); ++i) row(reset_documents[i].name, i);
  }
  void positions_and_masks_start_anew_after_a_document() {
    const auto [which] = current_row<int>();
    const ResetDocuments& original = reset_documents[which];
    const std::int64_t places = std::ssize(original.tokens);
    const at::Tensor tokens = ids(original.tokens).expand({2, places}).contiguous();
    const at::Tensor place = at::arange(places, at::kLong);
    for (const bool positions : {false, true})
      for (const bool attention : {false, true})
        for (const bool masks : {false, true}) {
          const auto made = get_ltor_masks_and_position_ids(tokens, {.eod_token = 0,
                                                                     .reset_position_ids = positions,
                                                                     .reset_attention_mask = attention,
                                                                     .eod_mask_loss = masks});
          const at::Tensor first = attention ? ids(original.first_seen)[0] : at::zeros({places}, at::kLong);
          const at::Tensor hidden = (place.unsqueeze(0) > place.unsqueeze(1)).logical_or(place < first.unsqueeze(1));
          const at::Tensor counted = masks ? ids(original.loss_mask)[0] : at::ones({places}, at::kLong);
          QCOMPARE(made.attention_mask.size(0), attention ? 2 : 1);
          for (std::int64_t row = 0; row < 2; ++row) {
            QVERIFY(at::equal(made.position_ids[row], positions ? ids(original.positions)[0] : place));
            QVERIFY(at::equal(made.loss_mask[row], counted.to(at::kFloat)));
            QVERIFY(at::equal(made.attention_mask.expand({2, 1, places, places})[row][0], hidden));
          }
          QCOMPARE(made.document_starts.defined(), attention);
          if (attention) QVERIFY(at::equal(made.document_starts[1], first));
        }
  }

  /// Token 0 is a token like others, and the last has no next one.
  void without_an_end_of_documents_none_is_masked() {
    GPTTrainStep step({});
    const Batch batch = taken(step, {{"input_ids", ids({1, 0, 3, 4})}});
    QVERIFY(at::equal(batch.at("labels"), ids({0, 3, 4, -100})));
    QVERIFY(at::equal(batch.at("loss_mask"), flags({1, 1, 1, 0})));
  }

  void a_loaders_labels_and_padding_are_used() {
    GPTTrainStep step({.eod_token = 9});
    Batch batch = taken(step, {{"input_ids", ids({1, 9, 3, 4})}});
    QVERIFY(at::equal(batch["labels"], ids({9, 3, 4, 9})));
    QVERIFY(at::equal(batch["loss_mask"], flags({1, 0, 1, 1})));  // 0 at the end of a document

    batch = taken(step, {{"input_ids", ids({1, 2, 3, 4})}, {"labels", ids({-100, 2, -100, 4})}});
    QVERIFY(at::equal(batch["labels"], ids({2, -100, 4, -100})));
    QVERIFY(at::equal(batch["loss_mask"], flags({1, 0, 1, 0})));

    batch = taken(step, {{"input_ids", ids({1, 2, 3, 0})}, {"attention_mask", ids({1, 1, 1, 0})}});
    QVERIFY(at::equal(batch["loss_mask"], flags({1, 1, 0, 0})));  // token 3 has no next one, and 0 is padding
    QVERIFY(batch["attention_mask"][0][0][3][3].item<bool>());
    QVERIFY(!batch["attention_mask"][0][0][2][1].item<bool>());

    batch = taken(step, {{"input_ids", ids({1, 2})}, {"row_mask", at::zeros({1}, at::kLong)}});
    QVERIFY(at::equal(batch["loss_mask"], flags({0, 0})));
    QVERIFY(thrown_by<std::exception>([&] { taken(step, {{"tokens", ids({1})}}); }).contains("input_ids"));
  }

  void an_indexed_text_has_one_token_more() {
    GPTTrainStep step({.megatron_dataset_flag = true, .eod_token = 0, .eod_mask_loss = false});
    const Batch batch = taken(step, {{"text", ids({4, 0, 5, 6})}});
    QVERIFY(at::equal(batch.at("tokens"), ids({4, 0, 5})));
    QVERIFY(at::equal(batch.at("labels"), ids({0, 5, 6})));
    QVERIFY(at::equal(batch.at("loss_mask"), flags({1, 1, 1})));
  }

  /// (1 + 3 + 4) / 3, and the same as a sum and a count.
  void a_gpts_loss_is_the_mean_over_the_mask() {
    const at::Tensor losses = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble).view({2, 2}).requires_grad_();
    const Batch batch{{"loss_mask", at::tensor({1.0, 0.0, 1.0, 1.0}).view({2, 2})}};
    GPTTrainStep mean({});
    const LossOut out = mean.loss_func(batch, {losses});
    QVERIFY(near(out.loss.item<double>(), 8.0 / 3.0));
    QVERIFY(!out.num_tokens);
    QVERIFY(near(value(out.report, "lm loss"), 8.0 / 3.0));
    out.loss.backward();
    QVERIFY(at::allclose(losses.grad(), at::tensor({1.0, 0.0, 1.0, 1.0}, at::kDouble).view({2, 2}) / 3.0));

    GPTTrainStep sums({.calculate_per_token_loss = true});
    const LossOut both = sums.loss_func(batch, {losses});
    QCOMPARE(both.loss.item<double>(), 8.0);
    QCOMPARE(*both.num_tokens, std::int64_t{3});
    QVERIFY(at::equal(both.report.at(0).second, at::tensor({8.0, 3.0}, at::kDouble)));
    // Nothing counts: no division by 0.
    const Batch none{{"loss_mask", at::zeros({2, 2})}};
    QCOMPARE(mean.loss_func(none, {losses}).loss.item<double>(), 0.0);
  }

  void berts_losses() {
    BertTrainStep step({});
    const at::Tensor losses = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble).view({2, 2});
    const Batch batch{{"loss_mask", at::tensor({1.0, 0.0, 1.0, 1.0}).view({2, 2})},
                      {"is_random", at::tensor({0, -1}, at::kLong)}};
    const at::Tensor order = at::tensor({0.0, std::log(3.0), 5.0, -5.0}, at::kDouble).view({2, 2});
    const LossOut out = step.loss_func(batch, {losses, order});
    QVERIFY(near(value(out.report, "lm loss"), 8.0 / 3.0));
    QVERIFY(near(value(out.report, "sop loss"), std::log(4.0)));  // -log(1 / 4); the second row has no answer
    QVERIFY(near(out.loss.item<double>(), 8.0 / 3.0 + std::log(4.0)));
    QVERIFY(thrown_by<std::exception>([&] { step.loss_func(batch, {losses}); }).contains("number 2"));
    BertTrainStep lm_only({.binary_head = false});
    QCOMPARE(lm_only.loss_func(batch, {losses}).report.size(), std::size_t{1});
  }

  void a_berts_batch() {
    BertTrainStep step({});
    const Batch batch = taken(step, {{"input_ids", ids({1, 2, 3})},
                                     {"attention_mask", ids({1, 1, 0})},
                                     {"labels", ids({-100, 7, -100})},
                                     {"token_type_ids", ids({0, 0, 1})},
                                     {"next_sentence_label", at::tensor({1}, at::kLong)}});
    QVERIFY(at::equal(batch.at("loss_mask"), flags({0, 1, 0})));
    const at::Tensor masked = batch.at("attention_mask")[0][0];
    QVERIFY(at::equal(masked, at::tensor({0, 0, 1, 0, 0, 1, 1, 1, 1}).view({3, 3}).to(at::kBool)));
    QVERIFY(batch.contains("types"));
    BertTrainStep lm_only({.binary_head = false});
    QVERIFY(!taken(lm_only, {{"input_ids", ids({1})}, {"attention_mask", ids({1})}, {"token_type_ids", ids({0})}})
                 .contains("types"));
    BertTrainStep indexed({.megatron_dataset_flag = true});
    QVERIFY(thrown_by<std::exception>([&] { taken(indexed, {{"text", ids({1})}}); }).contains("types"));
  }

  void classifiers() {
    BertTrainStep one({.pretraining = false, .num_labels = 1});
    const at::Tensor scores = at::tensor({1.0, 3.0}, at::kDouble).view({2, 1});
    QVERIFY(near(one.loss_func({{"labels", at::tensor({0.0, 1.0})}}, {scores}).loss.item<double>(), 2.5));
    BertTrainStep three({.pretraining = false, .num_labels = 3});
    const at::Tensor zeros = at::zeros({2, 3}, at::kDouble);
    QVERIFY(
        near(three.loss_func({{"labels", at::tensor({0, 2}, at::kLong)}}, {zeros}).loss.item<double>(), std::log(3.0)));
    QVERIFY(near(three.loss_func({{"labels", at::ones({2, 3})}}, {zeros}).loss.item<double>(), std::log(2.0)));
    // A row that only fills up the batch is left out.
    const Batch padded{{"labels", at::tensor({0.0, 1.0})}, {"row_mask", at::tensor({1, 0}, at::kLong)}};
    QVERIFY(near(one.loss_func(padded, {scores}).loss.item<double>(), 1.0));
  }

  void a_t5s_batch() {
    T5TrainStep step({});
    const Batch batch =
        taken(step, {{"input_ids", ids({8, 9})}, {"attention_mask", ids({1, 0})}, {"labels", ids({5, -100, 7})}});
    QVERIFY(at::equal(batch.at("text_dec"), ids({0, 5, 0})));
    QVERIFY(at::equal(batch.at("loss_mask"), flags({1, 0, 1})));
    QVERIFY(at::equal(batch.at("enc_mask"), at::tensor({0, 1, 1, 1}).view({1, 2, 2}).to(at::kBool)));
    QVERIFY(at::equal(batch.at("dec_mask"), at::ones({1, 3, 3}, at::kBool).triu(1)));
    QVERIFY(at::equal(batch.at("enc_dec_mask"), at::tensor({0, 1, 0, 1, 0, 1}).view({1, 3, 2}).to(at::kBool)));
    const Batch given = taken(step, {{"input_ids", ids({8})},
                                     {"attention_mask", ids({1})},
                                     {"labels", ids({5, 6})},
                                     {"decoder_input_ids", ids({2, 5})}});
    QVERIFY(at::equal(given.at("text_dec"), ids({2, 5})));
  }

  void one_replicas_losses_and_trees() {
    const auto alone = single_communicator();
    const at::Tensor mean = avg_losses_across_data_parallel_group({at::full({}, 2.0), at::full({1}, 3.0)}, *alone);
    QVERIFY(at::equal(mean, at::tensor({2.0, 3.0})));
    QVERIFY(thrown_by<std::exception>([&] {
              avg_losses_across_data_parallel_group({at::zeros({2})}, *alone);
            }).contains("one element"));
    const TensorTree tree(TensorTree::Table{{"list", TensorTree::List{at::full({}, 5.0), at::ones({2, 3})}}});
    const TensorTree all = gather_across_data_parallel_groups(tree, *alone);
    QVERIFY(at::equal(all.at("list").at(0).tensor(), at::tensor({5.0})));
    QVERIFY((all.at("list").at(1).tensor().sizes() == at::IntArrayRef{2, 3}));
  }
};

ACCRUE_TEST_MAIN(TestMegatronSteps)

}  // namespace test_megatron_steps
#include "test_megatron_steps.moc"

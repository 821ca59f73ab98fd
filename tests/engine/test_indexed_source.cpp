// SPDX-License-Identifier: Apache-2.0
// Items of a GPT as batches, and what it means to a model that documents begin again: a row of two documents is two
// rows.
#include "data/indexed_source.h"

#include <ATen/ops/tensor.h>

#include <QTest>

#include "accrue/models/model_part.h"
#include "accrue/run/data/data_split.h"
#include "support/reset_documents.h"
#include "support/test_program.h"

namespace test_indexed_source {

using namespace accrue;

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers longs(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {plain.const_data_ptr<std::int64_t>(), plain.const_data_ptr<std::int64_t>() + plain.numel()};
}

/// Two documents that end with 9, and their labels; the last label is padding.
GptItem two_documents() {
  return {.tokens = {1, 2, 9, 3, 4, 9}, .labels = {2, 9, 3, 4, 9, 0}, .loss_mask = {1, 1, 1, 1, 1, 0}};
}

DataSpec resetting() {
  DataSpec data;
  data.end_of_document = 9;
  data.mask_end_of_document = data.reset_positions = data.reset_attention = true;
  return data;
}

ModelSpec small_gpt() {
  ModelSpec model;
  model.layers = 2;
  model.width = 16;
  model.heads = 2;
  model.context = 6;
  model.vocabulary = 12;
  model.dtype = Dtype::float64;
  return model;
}

}  // namespace

class TestIndexedSource : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_item_becomes_a_row() {
    const std::vector<GptItem> items{two_documents(), two_documents()};
    const Batch plain = gpt_batch(items, DataSpec(), 6);
    QCOMPARE(plain.samples, 2);
    QCOMPARE(plain.items, 10);
    QCOMPARE(longs(plain.inputs[1]), (Numbers{1, 2, 9, 3, 4, 9}));
    QCOMPARE(longs(plain.targets[0]), (Numbers{2, 9, 3, 4, 9, ignored_label}));
    QVERIFY(!plain.positions.defined() && !plain.document_starts.defined());
    const Batch resets = gpt_batch(items, resetting(), 6);
    QCOMPARE(longs(resets.targets[0]), (Numbers{2, 9, ignored_label, 4, 9, ignored_label}));
    QCOMPARE(resets.items, 8);
    QCOMPARE(longs(resets.positions[1]), (Numbers{0, 1, 2, 0, 1, 2}));
    QCOMPARE(longs(resets.document_starts[0]), (Numbers{0, 0, 0, 3, 3, 3}));
    QCOMPARE(gpt_batch({}, resetting(), 6).items, 0);
  }

  void documents_begin_again_as_in_the_original() {
    for (const test::ResetDocuments& original : test::reset_documents) {
      GptItem item{.tokens = original.tokens};
      item.labels.assign(item.tokens.size(), 7);
      item.loss_mask.assign(item.tokens.size(), 1);
      DataSpec data = resetting();
      data.end_of_document = 0;
      const Batch batch = gpt_batch(std::vector{item}, data, std::ssize(item.tokens));
      QCOMPARE(longs(batch.positions[0]), original.positions);
      QCOMPARE(longs(batch.document_starts[0]), original.first_seen);
      Numbers counted;
      for (const std::int64_t target : longs(batch.targets[0])) counted.push_back(target == ignored_label ? 0 : 1);
      QCOMPARE(counted, original.loss_mask);
    }
  }

  void documents_of_a_row_are_rows_of_their_own() {
    const auto model = make_model(small_gpt(), 3);
    model->eval();
    const std::vector<GptItem> items{two_documents()};
    const Batch row = gpt_batch(items, resetting(), 6);
    const Batch apart{.inputs = row.inputs.view({2, 3}), .targets = row.targets.view({2, 3}), .samples = 2, .items = 4};
    const double together = model->whole_loss(row).sum.item<double>();
    const double alone = model->whole_loss(apart).sum.item<double>();
    QVERIFY2(std::abs(together - alone) < 1e-12, qPrintable(QString::number(together - alone)));
    // Each reset by itself is another model.
    for (const bool positions : {true, false}) {
      DataSpec half = resetting();
      half.reset_positions = positions;
      half.reset_attention = !positions;
      QVERIFY(std::abs(model->whole_loss(gpt_batch(items, half, 6)).sum.item<double>() - alone) > 1e-6);
    }
  }
};

ACCRUE_TEST_MAIN(TestIndexedSource)

}  // namespace test_indexed_source
#include "test_indexed_source.moc"

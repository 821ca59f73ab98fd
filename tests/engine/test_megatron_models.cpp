// SPDX-License-Identifier: Apache-2.0
// A BERT, a T5 and a classifier under the Megatron-LM plug-in in one process: both ways to give batches train to the
// losses of a loop that is written out on the model of a run.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "accrue/models/bert_classifier.h"
#include "support/licence_corpus.h"
#include "support/megatron_cases.h"
#include "support/places.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_megatron_models {

using namespace accrue;
using namespace accrue::test;
using accrue::megatron::Accelerator;
using accrue::megatron::AcceleratorOptions;

namespace {

constexpr int updates = 4;

AcceleratorOptions two_micro_batches() {
  AcceleratorOptions options;
  options.environment = empty_environment();
  options.megatron_lm_plugin.num_micro_batches = 2;
  options.megatron_lm_plugin.gradient_clipping = 0.0;
  options.megatron_lm_plugin.lr_decay_style = "constant";
  return options;
}

std::vector<double> under_the_plugin(const ModelSpec& model, bool indexed) {
  Mesh mesh;
  AcceleratorOptions options = two_micro_batches();
  options.megatron_lm_plugin.megatron_dataset_flag = indexed;
  Accelerator accelerator(std::move(options), mesh);
  auto& prepared =
      accelerator.prepare(model, adamw(0.01, 0.0), {.total_num_steps = 8}, {sentence_loader(model, indexed, 2)});
  std::vector<double> losses;
  for (const auto& batch : prepared.loaders[0]) {
    losses.push_back(prepared.model(batch).loss.item<double>());
    if (std::ssize(losses) == updates) break;
  }
  return losses;
}

/// The loss of a run: sums over items, and over samples if there are two losses.
at::Tensor mean_of(const LossSum& loss) {
  at::Tensor mean = loss.sum / static_cast<double>(loss.count);
  return loss.second.defined() ? mean + loss.second / static_cast<double>(loss.second_count) : mean;
}

std::vector<double> written_out(const ModelSpec& spec) {
  const auto model = make_model(spec, 1234);
  const auto source = made_sentences(spec);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(0.01).weight_decay(0.0));
  std::vector<double> losses;
  for (std::int64_t update = 0; update < updates; ++update) {
    optimizer.zero_grad();
    double mean = 0.0;
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::vector<std::int64_t> rows{4 * update + 2 * half, 4 * update + 2 * half + 1};
      const at::Tensor loss = mean_of(model->whole_loss(source->batch(Split::train, rows))) / 2.0;
      loss.backward();
      mean += loss.item<double>();
    }
    optimizer.step();
    losses.push_back(mean);
  }
  return losses;
}

}  // namespace

class TestMegatronModels : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  static void initTestCase() { at::set_num_threads(1); }

  void losses_are_those_of_a_run_data() {
    const Rows<int, bool> row;
    row("BERT, loader", 0, false);
    row("BERT, indexed", 0, true);
    row("BERT without a binary head", 1, true);
    row("T5, loader", 2, false);
    row("T5, indexed", 2, true);
  }
  void losses_are_those_of_a_run() {
    const auto [which, indexed] = current_row<int, bool>();
    ModelSpec model = which == 2 ? tiny_t5() : tiny_bert();
    model.binary_head = which != 1;
    const auto got = under_the_plugin(model, indexed);
    const auto expected = written_out(model);
    QCOMPARE(got.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      QVERIFY2(std::abs(got[i] - expected[i]) < 1e-10,
               qPrintable(QStringLiteral("%1: %2, %3").arg(i).arg(got[i]).arg(expected[i])));
  }

  /// The indexed data set of Megatron-LM in place of a loader: the losses of its samples fall.
  void indexed_sentences_train() {
    const QTemporaryDir folder;
    const std::filesystem::path prefix = std::filesystem::path(folder.path().toStdString()) / "licence";
    write_licence_corpus(sourcePath("LICENSE-Apache-2.0.txt").toStdString(), prefix);
    for (ModelSpec model : {tiny_bert(), tiny_t5()}) {
      model.vocabulary = licence_vocabulary;
      model.context = 64;
      Mesh mesh;
      AcceleratorOptions options = two_micro_batches();
      options.megatron_lm_plugin.seq_length = 64;
      options.megatron_lm_plugin.decoder_seq_length = 64;
      options.megatron_lm_plugin.train_iters = 12;
      Accelerator accelerator(std::move(options), mesh);
      const megatron::MegatronLMDummyDataLoader data{
          .data_path = {prefix.string()}, .split = "100,0,0", .micro_batch_size = 2};
      auto& prepared = accelerator.prepare(model, adamw(0.01, 0.0), {}, {data});
      std::vector<double> losses;
      for (const auto& batch : prepared.loaders[0]) {
        losses.push_back(prepared.model(batch).loss.item<double>());
        if (std::ssize(losses) == 12) break;
      }
      QCOMPARE(std::ssize(losses), std::ptrdiff_t{12});
      QVERIFY2(losses.back() < losses.front(), qPrintable(QString::number(losses.back())));
    }
  }

  void a_classifier_has_the_loss_of_its_labels() {
    const ModelSpec model = tiny_bert();
    const auto source = made_sentences(model);
    const auto rows = [&](const std::vector<std::int64_t>& which) {
      const Batch batch = source->batch(Split::train, which);
      return megatron::Batch{{"input_ids", batch.inputs},
                             {"attention_mask", at::ones_like(batch.inputs)},
                             {"token_type_ids", batch.types},
                             {"labels", batch.order}};
    };
    Mesh mesh;
    AcceleratorOptions options = two_micro_batches();
    options.num_labels = 3;
    Accelerator accelerator(std::move(options), mesh);
    auto& prepared = accelerator.prepare(model, adamw(0.01, 0.0), {.total_num_steps = 8},
                                         {accelerate::map_loader(24, rows, {.batch_size = 2})});
    const double got = prepared.model(*prepared.loaders[0].next()).loss.item<double>();
    const BertClassifier classifier(model, 3, 1234);
    double expected = 0.0;
    for (const std::vector<std::int64_t>& which : {std::vector<std::int64_t>{0, 1}, {2, 3}}) {
      Batch batch = source->batch(Split::train, which);
      batch.padding = at::ones_like(batch.inputs);
      expected +=
          classifier.loss(const_cast<BertClassifier&>(classifier).forward(batch), batch.order).item<double>() / 2;
    }
    QVERIFY2(std::abs(got - expected) < 1e-10, qPrintable(QStringLiteral("%1, %2").arg(got).arg(expected)));
  }

  void what_a_model_cannot_have_is_refused() {
    const auto refused = [](const ModelSpec& model, const auto& change) {
      return thrown_by<std::exception>([&] {
        Mesh mesh;
        AcceleratorOptions options = two_micro_batches();
        change(options);
        Accelerator accelerator(std::move(options), mesh);
        accelerator.prepare(model, adamw(0.01), {.total_num_steps = 8}, {sentence_loader(tiny_t5(), false, 2)});
      });
    };
    QVERIFY(refused(tiny_t5(), [](auto& o) { o.num_labels = 2; }).contains("num_labels is for a BERT"));
    QVERIFY(refused(tiny_t5(), [](auto& o) { o.megatron_lm_plugin.return_logits = true; }).contains("GPT alone"));
    ModelSpec linear;
    linear.kind = ModelKind::linear;
    QVERIFY(refused(linear, [](auto&) {}).contains("a GPT, a BERT or a T5"));
  }
};

ACCRUE_TEST_MAIN(TestMegatronModels)

}  // namespace test_megatron_models
#include "test_megatron_models.moc"

// SPDX-License-Identifier: Apache-2.0
// A BERT, a T5 and a Llama whose heads share keys and values learn the licence text, from an indexed dataset, on every
// kind of layout: 30 updates have the losses of one rank, the weights do not depend on the layout, and a checkpoint
// continues in any other.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <map>

#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/run/cost/shard_layout.h"
#include "support/layout.h"
#include "support/licence_corpus.h"
#include "support/places.h"
#include "support/trained_losses.h"
#include "support/training_body.h"

namespace test_transformer_layouts {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr int updates = 30;

/// Written once for all ranks of all tests.
const std::string& corpus() {
  static const QTemporaryDir folder;
  static const std::string path = [] {
    const std::filesystem::path at = folder.path().toStdString();
    write_licence_corpus(sourcePath("LICENSE-Apache-2.0.txt").toStdString(), at / "licence");
    return at.string();
  }();
  return path;
}

/// An update has 8 samples in every layout.
TrainingScript script_of(const std::string& kind, const Layout& layout, const std::string& dtype,
                         std::vector<std::string> more = {}) {
  TrainingScript script{
      .spec =
          "accrue = 1\n[model]\nkind = \"" + kind + "\"\nlayers = " + (kind == "t5" ? "2" : "4") +
          "\nwidth = 32\nheads = 4\ncontext = 64\nvocabulary = 288\n" + (kind == "t5" ? "decoder_context = 48\n" : "") +
          (kind == "llama" ? "kv_heads = 2\n" : "") +
          "[data]\nkind = \"indexed\"\npaths = [\"licence\"]\nsplit = \"1\"\n[optimizer]\nkind = \"adamw\"\n"
          "lr = 3e-3\nclip_norm = 1.0\n[accumulation]\nsteps = 4\n[launch]\nthreads_per_rank = 1\n[run]\nseed = 3\n",
      .set = settings_of(layout, {"model.dtype=" + dtype, setting("accumulation.micro_batch", 2 / layout.data),
                                  setting("run.updates", updates)}),
      .base_dir = corpus()};
  script.set.insert(script.set.end(), more.begin(), more.end());
  return script;
}

std::vector<double> losses_of(const TrainingScript& script, const Layout& layout) {
  return losses_of(train(script, layout.world()));
}

/// Of one rank alone, trained once for each model and number type.
const std::vector<double>& losses_alone(const std::string& kind, const std::string& dtype) {
  static std::map<std::string, std::vector<double>> known;
  std::vector<double>& losses = known[kind + dtype];
  if (losses.empty()) losses = losses_of(script_of(kind, {}, dtype), {});
  return losses;
}

}  // namespace

class TestTransformerLayouts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void updates_have_the_losses_of_one_rank_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<Layout>("layout");
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<double>("tolerance");
    const auto rows = [](const char* kind, const char* name, const Layout& layout) {
      QTest::addRow("%s, %s, float64", kind, name) << QString(kind) << layout << "float64" << 1e-10;
      const bool two = layout.world() == 2 && !layout.sequence;
      if (two) QTest::addRow("%s, %s, float32", kind, name) << QString(kind) << layout << "float32" << 1e-5;
    };
    for (const char* kind : {"bert", "t5", "llama"}) {
      rows(kind, "two ranks", {.tensor = 2});
      rows(kind, "two ranks by rows", {.tensor = 2, .sequence = true});
      rows(kind, "two stages", {.pipeline = 2});
      rows(kind, "two stages of two ranks by rows", {.tensor = 2, .pipeline = 2, .sequence = true});
      rows(kind, "four stages", {.pipeline = 4});
      rows(kind, "two sharded replicas of two stages", {.data = 2, .pipeline = 2, .zero = 1});
    }
    rows("llama", "two stages of two chunks", {.pipeline = 2, .chunks = 2});
    rows("bert", "two stages of two chunks", {.pipeline = 2, .chunks = 2});
    rows("t5", "three stages, two of the decoder", {.pipeline = 3, .split = 1});
  }
  void updates_have_the_losses_of_one_rank() {
    QFETCH(QString, kind);
    QFETCH(Layout, layout);
    QFETCH(QString, dtype);
    QFETCH(double, tolerance);
    const auto& expected = losses_alone(kind.toStdString(), dtype.toStdString());
    QCOMPARE(expected.size(), std::size_t{updates});
    const auto found = losses_of(script_of(kind.toStdString(), layout, dtype.toStdString()), layout);
    const double apart = largest_difference(found, expected);
    QVERIFY2(apart <= tolerance, qPrintable(QString::number(apart)));
    QVERIFY(found.back() < 0.8 * found.front());  // it learns
  }

  void a_checkpoint_goes_on_in_any_layout_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<Layout>("layout");
    for (const char* kind : {"bert", "t5", "llama"}) {
      QTest::addRow("%s, two sharded replicas", kind) << QString(kind) << Layout{.data = 2, .zero = 1};
      QTest::addRow("%s, one rank", kind) << QString(kind) << Layout{};
    }
  }
  void a_checkpoint_goes_on_in_any_layout() {
    QFETCH(QString, kind);
    QFETCH(Layout, layout);
    const auto& expected = losses_alone(kind.toStdString(), "float64");
    const Layout four{.tensor = 2, .pipeline = 2};
    const RunFolder folder;
    TrainingScript begin = script_of(kind.toStdString(), four, "float64");
    TrainingScript rest = script_of(kind.toStdString(), layout, "float64");
    begin.run_dir = rest.run_dir = folder;
    begin.stop_request = 10;
    const auto begun = train(begin, 4);
    QVERIFY2(begun[0].outcome == "stopped", begun[0].text().c_str());
    rest.resume_from = "newest";
    const auto found = losses_of(rest, layout);
    QCOMPARE(found.size(), std::size_t{updates - 10});
    const double apart = largest_difference(found, expected, 10);
    QVERIFY2(apart <= 1e-10, qPrintable(QString::number(apart)));
    // The final weights are whole tensors.
    const auto planned = parameter_shapes(order_for(rest).plan.spec.model);
    const auto read = read_archive(folder / "final" / "model.safetensors");
    QVERIFY(read.has_value());
    QCOMPARE(read->tensors.size(), planned.size());
    for (const ParameterShape& each : planned) {
      const at::Tensor* at = read->find(each.name);
      QVERIFY2(at != nullptr, each.name.c_str());
      QCOMPARE(at->sizes().vec(), each.shape);
    }
  }

  /// Under dropout the masks of the second run of a block are those of the first.
  void what_is_computed_again_changes_no_loss_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("how");
    for (const char* kind : {"bert", "t5"})
      for (const char* how : {"selective", "full"}) QTest::addRow("%s, %s", kind, how) << QString(kind) << QString(how);
  }
  void what_is_computed_again_changes_no_loss() {
    QFETCH(QString, kind);
    QFETCH(QString, how);
    const Layout four{.tensor = 2, .pipeline = 2};
    const auto losses = [&](const char* recompute) {
      return losses_of(
          script_of(kind.toStdString(), four, "float64",
                    {"model.dropout=0.1", "run.updates=3", std::string("parallel.recompute=") + recompute}),
          four);
    };
    static std::map<QString, std::vector<double>> kept;  // nothing computed again: once for each model
    std::vector<double>& expected = kept[kind];
    if (expected.empty()) expected = losses("none");
    QCOMPARE(expected.size(), std::size_t{3});
    QVERIFY(largest_difference(losses(qPrintable(how)), expected) < 1e-12);
  }
};

ACCRUE_RANK_TEST_MAIN(TestTransformerLayouts, {{"train", train_body}})

}  // namespace test_transformer_layouts
#include "test_transformer_layouts.moc"

// SPDX-License-Identifier: Apache-2.0
// Counts of ranks while they train, compared with the plan: state and sent bytes must be equal, activations within 5 %.
#include <QDir>
#include <QTest>

#include "accrue/run/cost/rank_cost.h"
#include "support/training_body.h"

namespace test_measured {

using namespace accrue;
using namespace accrue::test;

namespace {

std::string spec_text(const std::string& parallel, const std::string& model, const std::string& rest,
                      const std::string& kind = "gpt") {
  return "accrue = 1\n[model]\nkind = \"" + kind +
         "\"\nlayers = 4\nwidth = 64\nheads = 4\ncontext = 64\nvocabulary = 96\n" + model +
         "[data]\nkind = \"synthetic\"\nsamples = 200\n[optimizer]\nkind = \"adamw\"\nlr = 1e-3\n" +
         "[accumulation]\nsteps = 4\nmicro_batch = 4\n[run]\nupdates = 3\n" + rest + "[parallel]\n" + parallel;
}

bool within(double share, std::int64_t measured, std::int64_t planned) {
  return std::abs(static_cast<double>(measured - planned)) <= share * static_cast<double>(planned);
}

QByteArray figures(std::int64_t measured, std::int64_t planned) {
  return QString("measured %1, planned %2: %3 %")
      .arg(measured)
      .arg(planned)
      .arg(100.0 * static_cast<double>(measured - planned) / static_cast<double>(std::max<std::int64_t>(planned, 1)))
      .toUtf8();
}

}  // namespace

class TestMeasured : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ranks_hold_and_send_what_the_plan_said_data() {
    QTest::addColumn<QString>("parallel");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("rest");
    QTest::addColumn<QString>("kind");
    const auto row = [](const QByteArray& name, int ranks, const char* parallel, const char* model = "",
                        const char* rest = "") {
      QTest::newRow(name.constData()) << QString(parallel) << ranks << QString(model) << QString(rest) << "gpt";
    };
    const auto sentences = [](const char* kind, const char* name, int ranks, const char* parallel,
                              const char* model = "") {
      const QString decoder = QString(kind) == "t5" ? "decoder_context = 48\n" : "";
      QTest::addRow("%s, %s", kind, name)
          << QString(parallel) << ranks << decoder + model << QString() << QString(kind);
    };
    for (const char* kind : {"bert", "t5"}) {
      sentences(kind, "one rank", 1, "");
      sentences(kind, "one rank, dropout", 1, "", "dropout = 0.1\n");
      sentences(kind, "two ranks", 2, "tensor = 2\n");
      sentences(kind, "two ranks, dropout", 2, "tensor = 2\n", "dropout = 0.1\n");
      sentences(kind, "two ranks by rows", 2, "tensor = 2\nsequence = true\n");
      sentences(kind, "two stages", 2, "pipeline = 2\n");
      sentences(kind, "four stages", 4, "pipeline = 4\n");
      sentences(kind, "two sharded replicas of two stages", 4, "data = 2\nzero = 1\npipeline = 2\n");
      sentences(kind, "blocks again on two ranks", 2, "tensor = 2\nrecompute = \"full\"\n");
    }
    const char* groups = "kv_heads = 2\n";
    sentences("llama", "one rank", 1, "");
    sentences("llama", "one rank, groups", 1, "", groups);
    sentences("llama", "one rank, groups, learned positions", 1, "", "kv_heads = 2\npositions = \"learned\"\n");
    sentences("llama", "one rank, groups, dropout", 1, "", "kv_heads = 2\ndropout = 0.1\n");
    sentences("llama", "one rank, bfloat16", 1, "", "dtype = \"bfloat16\"\n");
    sentences("llama", "one rank, tied head", 1, "", "tied_head = true\n");
    sentences("llama", "two ranks", 2, "tensor = 2\n", groups);
    sentences("llama", "two ranks by rows", 2, "tensor = 2\nsequence = true\n", groups);
    sentences("llama", "two stages", 2, "pipeline = 2\n", groups);
    sentences("llama", "two stages of two chunks", 2, "pipeline = 2\nvirtual_pipeline = 2\n", groups);
    sentences("llama", "two sharded replicas of two stages", 4, "data = 2\nzero = 1\npipeline = 2\n", groups);
    sentences("llama", "attention again", 1, "recompute = \"selective\"\n", groups);
    sentences("llama", "blocks again on two ranks", 2, "tensor = 2\nrecompute = \"full\"\n", groups);
    sentences("bert", "no second loss", 1, "", "binary_head = false\n");
    sentences("bert", "two replicas", 2, "data = 2\n");
    sentences("t5", "three stages, two of the decoder", 3, "pipeline = 3\nsplit_stage = 1\n");
    row("one rank", 1, "");
    row("one rank, float64", 1, "", "dtype = \"float64\"\n");
    row("one rank, bfloat16", 1, "", "dtype = \"bfloat16\"\n");
    row("one rank, dropout", 1, "", "dropout = 0.1\n");
    row("one rank, dropout, bfloat16", 1, "", "dropout = 0.1\ndtype = \"bfloat16\"\n");
    row("two replicas", 2, "data = 2\n");
    row("two replicas that evaluate", 2, "data = 2\n", "", "[evaluate]\nevery_updates = 1\nbatches = 2\n");
    row("two sharded replicas", 2, "data = 2\nzero = 1\n");
    row("two sharded replicas, bfloat16", 2, "data = 2\nzero = 1\n", "dtype = \"bfloat16\"\n");
    row("two replicas whose gathers overlap", 2, "data = 2\nzero = 1\noverlap_param_gather = true\n", "",
        "[evaluate]\nevery_updates = 2\nbatches = 2\n");
    row("two ranks", 2, "tensor = 2\n");
    row("two ranks, padded vocabulary", 2, "tensor = 2\n", "vocabulary_multiple = 128\n");
    row("two ranks, bfloat16", 2, "tensor = 2\n", "dtype = \"bfloat16\"\n");
    row("two ranks, dropout", 2, "tensor = 2\n", "dropout = 0.1\n");
    row("two ranks by rows", 2, "tensor = 2\nsequence = true\n");
    row("two ranks by rows, bfloat16", 2, "tensor = 2\nsequence = true\n", "dtype = \"bfloat16\"\n");
    row("four ranks by rows", 4, "tensor = 4\nsequence = true\n");
    for (const char* model : {"", "dropout = 0.1\n"}) {
      const QByteArray with = *model != 0 ? ", dropout" : "";
      row("attention again" + with, 1, "recompute = \"selective\"\n", model);
      row("every second block's input" + with, 1, "recompute = \"full\"\nrecompute_layers = 2\n", model);
      row("the first three blocks again" + with, 1,
          "recompute = \"full\"\nrecompute_method = \"block\"\nrecompute_layers = 3\n", model);
      row("every block again on two ranks, shared" + with, 2,
          "tensor = 2\nrecompute = \"full\"\ndistribute_saved_activations = true\n", model);
    }
    row("one rank, smoothed losses", 1, "", "label_smoothing = 0.1\n");
    row("two ranks, smoothed losses", 2, "tensor = 2\n", "label_smoothing = 0.1\n");
    sentences("bert", "one rank, smoothed losses", 1, "", "label_smoothing = 0.1\n");
    const char* measures = "update_norm = true\nparameter_norm = true\n";
    row("two ranks that measure their updates", 2, "tensor = 2\n", "", measures);
    row("two sharded replicas that measure their updates", 2, "data = 2\nzero = 1\n", "", measures);
    row("two stages", 2, "pipeline = 2\n");
    row("two stages, bfloat16", 2, "pipeline = 2\n", "dtype = \"bfloat16\"\n");
    row("two stages of two chunks", 2, "pipeline = 2\nvirtual_pipeline = 2\n");
    row("four stages", 4, "pipeline = 4\n");
    row("two sharded replicas of two stages", 4, "data = 2\nzero = 1\npipeline = 2\n");
    row("two replicas of two stages of two ranks", 8, "data = 2\ntensor = 2\npipeline = 2\n");
  }
  void ranks_hold_and_send_what_the_plan_said() {
    QFETCH(QString, parallel);
    QFETCH(int, ranks);
    QFETCH(QString, model);
    QFETCH(QString, rest);
    QFETCH(QString, kind);
    hold_and_send_the_plan(
        {.spec = spec_text(parallel.toStdString(), model.toStdString(), rest.toStdString(), kind.toStdString())},
        ranks);
  }

  /// Ranks that hold parts of parameters send their norms too, and states in files take no memory.
  void ranks_of_other_optimizers_hold_and_send_what_the_plan_said_data() {
    QTest::addColumn<QString>("parallel");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QStringList>("set");
    const QString tensor = "tensor = 2\n", zero = "data = 2\nzero = 1\n";
    for (const char* kind : {"FusedAdam", "FusedLAMB", "FusedSGD", "Lars"}) {
      const QString name = QStringLiteral("optimizer.kind=%1").arg(kind);
      QTest::addRow("%s, two ranks", kind) << tensor << 2 << QStringList{name, "optimizer.momentum=0.9"};
      QTest::addRow("%s, two sharded replicas", kind) << zero << 2 << QStringList{name};
    }
    QTest::newRow("Lamb, two sharded replicas of two ranks")
        << zero + tensor << 4 << QStringList{"optimizer.kind=Lamb"};
    QTest::newRow("Lamb, two sharded replicas of two stages, bfloat16")
        << zero + "pipeline = 2\n"
        << 4 << QStringList{"optimizer.kind=Lamb", "model.dtype=bfloat16"};
    const QStringList files{"optimizer.kind=HybridAdam", "optimizer.nvme_offload_fraction=0.3",
                            "optimizer.nvme_offload_dir=\"" + QDir::tempPath() + "\""};
    QTest::newRow("HybridAdam, states in files") << QString() << 1 << files;
    QTest::newRow("HybridAdam, states in files, two sharded replicas, bfloat16")
        << zero << 2 << files + QStringList{"model.dtype=bfloat16"};
  }
  void ranks_of_other_optimizers_hold_and_send_what_the_plan_said() {
    QFETCH(QString, parallel);
    QFETCH(int, ranks);
    QFETCH(QStringList, set);
    TrainingScript script{.spec = spec_text(parallel.toStdString(), "", "")};
    for (const QString& each : set) script.set.push_back(each.toStdString());
    hold_and_send_the_plan(script, ranks);
  }

  void a_run_without_a_full_window_measures_nothing() {
    std::string text = spec_text("", "", "");
    text.replace(text.find("steps = 4"), 9, "steps = 4\nrampup = [4, 4, 1000]");  // 16 samples only after 1000 others
    const TrainingScript script{.spec = text};
    const auto trained = train(script, 1);
    VERIFY_FINISHED(trained);
    QVERIFY(trained[0].all<Measured>().empty());
  }

  void models_without_blocks_hold_what_the_plan_said() {
    const TrainingScript script{
        .spec =
            "accrue = 1\n[model]\nkind = \"mlp\"\ninputs = 8\noutputs = 4\nhidden = [64, 32]\n"
            "[data]\nkind = \"synthetic\"\nsamples = 200\n[optimizer]\nkind = \"sgd\"\nmomentum = 0.9\n"
            "[accumulation]\nsteps = 2\nmicro_batch = 16\n[run]\nupdates = 2\n"};
    const auto trained = train(script, 1);
    VERIFY_FINISHED(trained);
    const RankCost cost = rank_costs(order_for(script).plan.spec).front();
    const Measured measured = trained[0].all<Measured>().back();
    QCOMPARE(measured.parameter_bytes, cost.parameters);
    QCOMPARE(measured.optimizer_bytes, cost.optimizer);
    QVERIFY2(within(0.05, measured.activation_bytes, cost.activations),
             figures(measured.activation_bytes, cost.activations));
    QVERIFY(measured.axis.empty());
  }

 private:
  static void hold_and_send_the_plan(const TrainingScript& script, int ranks) {
    const auto trained = train(script, ranks);
    VERIFY_FINISHED(trained);
    const auto planned = rank_costs(order_for(script).plan.spec);
    QCOMPARE(std::ssize(planned), std::ptrdiff_t{ranks});
    for (std::size_t rank = 0; rank < trained.size(); ++rank) {
      const auto counted = trained[rank].all<Measured>();
      QCOMPARE(counted.size(), std::size_t{2});
      QCOMPARE(counted.front().updates, 2);
      const Measured& measured = counted.back();
      const RankCost& cost = planned[rank];
      QCOMPARE(measured.updates, 3);
      QCOMPARE(measured.parameter_bytes, cost.parameters);
      QCOMPARE(measured.gradient_bytes, cost.gradients);
      QCOMPARE(measured.optimizer_bytes, cost.optimizer);

      QVERIFY2(within(0.05, measured.activation_bytes, cost.activations),
               figures(measured.activation_bytes, cost.activations));
      std::array<std::int64_t, 8> sent = {};
      for (std::size_t i = 0; i < measured.axis.size(); ++i)
        for (std::size_t axis = 0; axis < sent.size(); ++axis)
          if (measured.axis[i] == to_string(static_cast<Axis>(axis))) sent[axis] = measured.sent_bytes[i];
      for (std::size_t axis = 0; axis < sent.size(); ++axis)
        QVERIFY2(sent[axis] == 3 * cost.wire[axis],
                 to_string(static_cast<Axis>(axis)).data() + (": " + figures(sent[axis], 3 * cost.wire[axis])));
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestMeasured, {{"train", train_body}})

}  // namespace test_measured
#include "test_measured.moc"

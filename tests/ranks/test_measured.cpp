// SPDX-License-Identifier: Apache-2.0
// What ranks count while they train against what the plan said before: state and bytes sent to the byte, activations
// within a twentieth.
#include <QtTest>

#include "accrue/run/rank_cost.h"
#include "support/training_body.h"

namespace test_measured {

using namespace accrue;
using namespace accrue::test;

namespace {

std::string spec_text(const std::string& parallel, const std::string& model, const std::string& rest) {
  return "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 4\nwidth = 64\nheads = 4\ncontext = 64\nvocabulary = 96\n" +
         model + "[data]\nkind = \"synthetic\"\nsamples = 200\n[optimizer]\nkind = \"adamw\"\nlr = 1e-3\n" +
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
    const auto row = [](const char* name, int ranks, const char* parallel, const char* model = "",
                        const char* rest = "") {
      QTest::addRow("%s", name) << QString(parallel) << ranks << QString(model) << QString(rest);
    };
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
    const TrainingScript script{.spec = spec_text(parallel.toStdString(), model.toStdString(), rest.toStdString())};
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
};

ACCRUE_RANK_TEST_MAIN(TestMeasured, {{"train", train_body}})

}  // namespace test_measured
#include "test_measured.moc"

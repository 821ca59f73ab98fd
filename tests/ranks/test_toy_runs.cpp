// SPDX-License-Identifier: Apache-2.0
// Runs small enough to be checked by hand: the documented samples of Hugging Face Accelerate's gradient-accumulation
// guide. Every figure follows from arithmetic on paper.
#include <QTest>
#include <cmath>

#include "support/inline_data.h"
#include "support/training_body.h"

namespace test_toy_runs {

using namespace accrue;
using namespace accrue::test;

namespace {

/// One weight, points x = 1..count, y = 2x, squared error, plain SGD.
std::string line_spec(int count, double lr, const std::string& rest) {
  return "accrue = 1\n"
         "[model]\nkind = \"linear\"\ninputs = 1\noutputs = 1\nbias = false\ninit = \"zeros\"\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nshuffle = false\nx = " +
         column(count, [](int i) { return i; }) + "\ny = " + column(count, [](int i) { return 2 * i; }) +
         "\n[optimizer]\nkind = \"sgd\"\nlr = " + std::to_string(lr) + "\n[run]\nepochs = 1\nrecord_weights = true\n" +
         rest;
}

/// Linear(1, 2) over ragged sequences: sample i holds the numbers 1..i+1, labels are their parity.
std::string ragged_spec(int samples, const std::string& rest) {
  const auto length = [](int i) { return i + 1; };
  return "accrue = 1\n"
         "[model]\nkind = \"linear\"\ninputs = 1\noutputs = 2\nbias = false\ninit = \"values\"\n"
         "values = [-0.0074868202, 0.5364435911]\nloss = \"cross_entropy\"\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nshuffle = false\nsequences = " +
         lists(samples, length, [](int, int t) { return t + 1; }) +
         "\nlabels = " + lists(samples, length, [](int, int t) { return (t + 1) % 2; }) +
         "\n[optimizer]\nkind = \"sgd\"\nlr = 0.08\n[run]\nepochs = 1\nrecord_weights = true\n" + rest;
}

std::string accumulation(const std::string& dialect, int steps, int micro_batch, const std::string& rest = {}) {
  return "[accumulation]\ndialect = \"" + dialect + "\"\nsteps = " + std::to_string(steps) +
         "\nmicro_batch = " + std::to_string(micro_batch) + "\n" + rest;
}

std::string ranks(int count, const std::string& backend = "auto") {
  return "[parallel]\ndata = " + std::to_string(count) + "\nbackend = \"" + backend + "\"\n";
}

}  // namespace

class TestToyRuns : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ends_at_the_weights_arithmetic_says_data() {
    QTest::addColumn<QString>("spec");
    QTest::addColumn<int>("world");
    QTest::addColumn<QVector<double>>("weights");
    QTest::addColumn<double>("tolerance");
    QTest::addColumn<QVector<double>>("losses");
    const auto row = [](const char* name, const std::string& spec, int world, QVector<double> weights, double tolerance,
                        QVector<double> losses = {}) {
      QTest::newRow(name) << QString::fromStdString(spec) << world << weights << tolerance << losses;
    };
    // Mean squared error at w = 0 is 4 * mean(x^2) = 102; tests/scenarios has the same eight points in other layouts.
    row("every micro-step reduced, two ranks",
        line_spec(8, 0.02, accumulation("accrue", 4, 1, "reduce_when = \"every_micro_step\"\n") + ranks(2)), 2, {2.04},
        1e-12, {102.0});
    row("accelerate, sync_each_batch, two ranks",
        line_spec(8, 0.02, accumulation("accelerate", 4, 1, "sync_each_batch = true\n") + ranks(2)), 2, {2.04}, 1e-12);
    row("eager token counts, two ranks",
        line_spec(8, 0.02, accumulation("accrue", 4, 1, "normalize_when = \"eager\"\n") + ranks(2)), 2, {2.04}, 1e-12,
        {102.0});
    row("eager token counts, reduced every micro-step",
        line_spec(8, 0.02,
                  accumulation("accrue", 4, 1, "normalize_when = \"eager\"\nreduce_when = \"every_micro_step\"\n") +
                      ranks(2)),
        2, {2.04}, 1e-12, {102.0});
    row("counted per rank, two ranks",
        line_spec(8, 0.02,
                  accumulation("accrue", 4, 1, "normalizer_scope = \"rank\"\nreduce_op = \"mean\"\n") + ranks(2)),
        2, {2.04}, 1e-12, {102.0});

    row("ragged, 8 at once", ragged_spec(8, accumulation("accrue", 1, 8)), 1, {0.0952785681, 0.4336782027}, 1e-8,
        {1.1212300119});
    row("ragged, 2 x 4", ragged_spec(8, accumulation("accrue", 2, 4)), 1, {0.0952785681, 0.4336782027}, 1e-8,
        {1.1212300119});
    row("ragged, 16 on two ranks", ragged_spec(16, accumulation("accrue", 2, 4) + ranks(2)), 2,
        {0.2117169063, 0.3172398646}, 1e-8, {1.7583316437});
    row("ragged, 16 on two ranks over Gloo", ragged_spec(16, accumulation("accrue", 2, 4) + ranks(2, "gloo")), 2,
        {0.2117169063, 0.3172398646}, 1e-8, {1.7583316437});
    row("ragged, eager token counts",
        ragged_spec(16, accumulation("accrue", 2, 4, "normalize_when = \"eager\"\n") + ranks(2)), 2,
        {0.2117169063, 0.3172398646}, 1e-8, {1.7583316437});
    // The signature of a mean of means: what a dialect that divides by steps gets.
    row("ragged, divided by steps", ragged_spec(8, accumulation("accelerate", 2, 4)), 1, {0.0775155772, 0.4514411937},
        1e-8, {1.0410395});
    row("ragged, divided by steps, two ranks", ragged_spec(16, accumulation("accelerate", 2, 4) + ranks(2)), 2,
        {0.1621893636, 0.3667674073}, 1e-8);
  }

  void ends_at_the_weights_arithmetic_says() {
    QFETCH(QString, spec);
    QFETCH(int, world);
    QFETCH(QVector<double>, weights);
    QFETCH(double, tolerance);
    QFETCH(QVector<double>, losses);
    const auto trained = train({.spec = spec.toStdString()}, world);
    VERIFY_FINISHED(trained);
    for (const TrainedRank& rank : trained) QCOMPARE(rank.weights_sha256, trained[0].weights_sha256);
    const auto updates = trained[0].all<Update>();
    QVERIFY(!updates.empty());
    QCOMPARE(updates.back().weights.size(), static_cast<std::size_t>(weights.size()));
    for (int i = 0; i < weights.size(); ++i) {
      const double weight = updates.back().weights[static_cast<std::size_t>(i)];
      QVERIFY2(std::abs(weight - weights[i]) <= tolerance, qPrintable(QString::number(weight, 'g', 15)));
    }
    for (int i = 0; i < losses.size(); ++i) {
      const double loss = updates[static_cast<std::size_t>(i)].loss;
      QVERIFY2(std::abs(loss - losses[i]) <= 1e-7 * losses[i], qPrintable(QString::number(loss, 'g', 15)));
    }
  }

  void counts_what_it_trained_on() {
    const auto trained = train({.spec = ragged_spec(16, accumulation("accrue", 2, 4) + ranks(2))}, 2);
    QVERIFY2(trained[0].outcome == "finished", trained[0].text().c_str());
    const auto updates = trained[0].all<Update>();
    QCOMPARE(updates.size(), std::size_t{1});
    QCOMPARE(updates[0].samples, 16);
    QCOMPARE(updates[0].tokens, 136);
    QCOMPARE(updates[0].micro_step, 2);
    QCOMPARE(updates[0].epoch, 1.0);
    QVERIFY(trained[1].all<Update>().empty());  // told once
    std::int64_t tokens = 0;
    for (const TrainedRank& rank : trained)
      for (const MicroSteps& micro : rank.all<MicroSteps>())
        for (const std::int64_t count : micro.tokens) tokens += count;
    QCOMPARE(tokens, 136);
  }
};

ACCRUE_RANK_TEST_MAIN(TestToyRuns, {{"train", train_body}})

}  // namespace test_toy_runs
#include "test_toy_runs.moc"

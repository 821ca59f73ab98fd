// SPDX-License-Identifier: Apache-2.0
// Runs small enough to be checked by hand: the documented samples of Hugging Face Accelerate's gradient-accumulation
// guide, and ten batches whose tail tells the dialects apart. Every figure follows from arithmetic on paper.
#include <QtTest>
#include <cmath>

#include "support/training_body.h"

namespace test_toy_runs {

using namespace accrue;
using namespace accrue::test;

namespace {

std::string rows(int first, int last, double factor) {
  std::string text = "[";
  for (int i = first; i <= last; ++i) text += (i > first ? ", [" : "[") + std::to_string(i * factor) + "]";
  return text + "]";
}

/// One weight, points x = 1..count, y = 2x, squared error, plain SGD.
std::string line_spec(int count, double lr, const std::string& rest) {
  return "accrue = 1\n"
         "[model]\nkind = \"linear\"\ninputs = 1\noutputs = 1\nbias = false\ninit = \"zeros\"\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nshuffle = false\nx = " +
         rows(1, count, 1.0) + "\ny = " + rows(1, count, 2.0) +
         "\n[optimizer]\nkind = \"sgd\"\nlr = " + std::to_string(lr) + "\n[run]\nepochs = 1\nrecord_weights = true\n" +
         rest;
}

/// Linear(1, 2) over ragged sequences: sample i holds the numbers 1..i+1, labels are their parity.
std::string ragged_spec(int samples, const std::string& rest) {
  std::string sequences;
  std::string labels;
  for (int i = 0; i < samples; ++i) {
    std::string values;
    std::string parities;
    for (int v = 1; v <= i + 1; ++v) {
      values += (v > 1 ? ", " : "") + std::to_string(v) + ".0";
      parities += (v > 1 ? ", " : "") + std::to_string(v % 2);
    }
    sequences += (i ? ", [" : "[") + values + "]";
    labels += (i ? ", [" : "[") + parities + "]";
  }
  return "accrue = 1\n"
         "[model]\nkind = \"linear\"\ninputs = 1\noutputs = 2\nbias = false\ninit = \"values\"\n"
         "values = [-0.0074868202, 0.5364435911]\nloss = \"cross_entropy\"\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nshuffle = false\nsequences = [" +
         sequences + "]\nlabels = [" + labels +
         "]\n[optimizer]\nkind = \"sgd\"\nlr = 0.08\n[run]\nepochs = 1\nrecord_weights = true\n" + rest;
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
    for (const std::string dialect : {"accrue", "accelerate"}) {
      const auto named = [&](const char* what) { return dialect + what; };
      // Mean squared error at w = 0 is 4 * mean(x^2) = 102.
      row(named(": eight points, 4 x 2").c_str(), line_spec(8, 0.02, accumulation(dialect, 4, 2)), 1, {2.04}, 1e-12,
          {102.0});
      row(named(": eight points, 4 x 1 on two ranks").c_str(),
          line_spec(8, 0.02, accumulation(dialect, 4, 1) + ranks(2)), 2, {2.04}, 1e-12, {102.0});
      row(named(": eight points at once").c_str(), line_spec(8, 0.02, accumulation(dialect, 1, 8)), 1, {2.04}, 1e-12,
          {102.0});
      row(named(": eight points over Gloo").c_str(), line_spec(8, 0.02, accumulation(dialect, 4, 1) + ranks(2, "gloo")),
          2, {2.04}, 1e-12, {102.0});
    }
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

    // w - 2 is multiplied by 0.925, 0.565 and 0.5475 (tail divided by 4) or 0.095 (by its true 2).
    row("ten batches, accelerate", line_spec(10, 0.005, accumulation("accelerate", 4, 1)), 1, {1.427725625}, 1e-12);
    row("ten batches, accrue", line_spec(10, 0.005, accumulation("accrue", 4, 1)), 1, {1.90070125}, 1e-12);
    row("ten batches, accelerate without flush",
        line_spec(10, 0.005, accumulation("accelerate", 4, 1, "sync_with_dataloader = false\n")), 1, {0.95475}, 1e-12);
  }

  void ends_at_the_weights_arithmetic_says() {
    QFETCH(QString, spec);
    QFETCH(int, world);
    QFETCH(QVector<double>, weights);
    QFETCH(double, tolerance);
    QFETCH(QVector<double>, losses);
    const auto trained = train({.spec = spec.toStdString()}, world);
    for (const TrainedRank& rank : trained) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      QCOMPARE(rank.weights_sha256, trained[0].weights_sha256);
    }
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

  void finishes_with_ranks_of_uneven_data() {
    // 21 samples in batches of 3 on two ranks: seven batches, four for rank 0 and three for rank 1.
    const auto trained = train({.spec = line_spec(21, 0.0005, accumulation("accrue", 2, 3) + ranks(2))}, 2);
    const auto alone = train({.spec = line_spec(21, 0.0005, accumulation("accrue", 2, 6))}, 1);
    for (const TrainedRank& rank : trained) QVERIFY2(rank.outcome == "finished", rank.text().c_str());
    QCOMPARE(trained[0].updates, 2);
    QCOMPARE(trained[1].updates, 2);
    const auto updates = trained[0].all<Update>();
    QCOMPARE(updates.back().samples, 21);  // nothing was trained on twice
    QVERIFY(std::abs(updates.back().weights[0] - alone[0].all<Update>().back().weights[0]) < 1e-12);
  }

  void moves_accelerates_schedule_once_per_rank_and_update() {
    const std::string schedule = "[schedule]\nkind = \"exponential\"\ngamma = 0.9\n";
    const auto trained =
        train({.spec = line_spec(16, 0.001, accumulation("accelerate", 4, 1) + ranks(2) + schedule)}, 2);
    QVERIFY2(trained[0].outcome == "finished", trained[0].text().c_str());
    const auto updates = trained[0].all<Update>();
    QCOMPARE(updates.size(), std::size_t{2});
    QVERIFY(std::abs(updates[0].lr - 0.001) < 1e-15);
    QVERIFY(std::abs(updates[1].lr - 0.001 * 0.81) < 1e-15);
  }

  void reduces_once_a_window_and_at_the_minimum() {
    const auto trained = train({.spec = line_spec(16, 0.001, accumulation("accrue", 4, 1) + ranks(2))}, 2);
    QVERIFY2(trained[0].outcome == "finished", trained[0].text().c_str());
    for (const TrainedRank& rank : trained) {
      std::int64_t reductions = 0;
      for (const Sync& sync : rank.all<Sync>())
        for (std::size_t i = 0; i < sync.op.size(); ++i) {
          if (sync.op[i] != "all_reduce") continue;
          ++reductions;
          QCOMPARE(sync.micro_step[i] % 4, 0);  // nothing before the window's last backward
        }
      QCOMPARE(reductions, 2);
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestToyRuns, {{"train", train_body}})

}  // namespace test_toy_runs
#include "test_toy_runs.moc"

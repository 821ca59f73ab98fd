// SPDX-License-Identifier: Apache-2.0
// Clocks that count samples in a run of real ranks: the schedule, growing windows, a changing weight decay and the loss
// scale, with overflows on one rank and a resume.
#include <QTest>

#include <cmath>

#include "support/inline_data.h"
#include "support/training_body.h"

namespace test_sample_clock {

using namespace accrue;
using namespace accrue::test;

namespace {

/// y = 2x on sixteen x, one weight, two ranks with windows of eight samples.
std::string line_spec(const std::string& optimizer, const std::string& rest) {
  return "accrue = 1\n[model]\nkind = \"linear\"\nbias = false\ninit = \"zeros\"\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nshuffle = false\nx = " +
         column(16, [](int i) { return 0.1 * i; }) + "\ny = " + column(16, [](int i) { return 0.2 * i; }) +
         "\n[optimizer]\nkind = \"sgd\"\nlr = 0.01\n" + optimizer +
         "[schedule]\nkind = \"linear\"\nclock = \"samples\"\n[accumulation]\nsteps = 2\nmicro_batch = 2\n"
         "[parallel]\ndata = 2\n[run]\nepochs = 4\nrecord_weights = true\n" +
         rest;
}

/// A GPT whose loss scale overflows until it is small enough, and again whenever it has grown.
std::string scaled_spec(const std::string& rest = {}) {
  return "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 8\nvocabulary = 32\ndtype "
         "= \"float16\"\n"
         "[data]\nkind = \"synthetic\"\nsamples = 60\n"
         "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\nweight_decay_style = \"linear\"\nstart_weight_decay = 0.0\n"
         "end_weight_decay = 0.5\nscaled_lr = [\"*.mlp.*\"]\nlr_mult = 0.5\ndecoupled_lr = 1e-3\nloss_scale = "
         "1048576.0\n"
         "loss_scale_window = 4\nloss_scale_hysteresis = 2\n"
         "[schedule]\nkind = \"WSD\"\ndecay_tail = \"exponential\"\nclock = \"samples\"\nwarmup_fraction = 0.1\n"
         "[accumulation]\nsteps = 4\nmicro_batch = 2\nrampup = [4, 4, 90]\n[parallel]\ndata = 2\n[run]\nupdates = "
         "30\n" +
         rest;
}

int skipped(const std::vector<Update>& updates) {
  return static_cast<int>(
      std::ranges::count(updates, StepOutcome::skipped_overflow, [](const Update& each) { return each.outcome; }));
}

}  // namespace

class TestSampleClock : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    whole_ = train({.spec = scaled_spec(), .run_dir = whole_dir_}, 2);
    VERIFY_FINISHED(whole_);
  }

  void rates_follow_the_samples_of_the_updates_before() {
    const auto trained = train({.spec = line_spec("", "")}, 2);
    VERIFY_FINISHED(trained);
    const auto updates = trained[0].all<Update>();
    QCOMPARE(updates.size(), std::size_t{8});
    for (std::size_t i = 0; i < updates.size(); ++i) {
      QCOMPARE(updates[i].samples, static_cast<std::int64_t>(8 * (i + 1)));
      QCOMPARE(updates[i].lr.value(), 0.01 * (1.0 - static_cast<double>(8 * i) / 64.0));
    }
  }

  /// In every dialect a skipped update counts no samples.
  void an_overflow_of_one_rank_skips_on_both_and_leaves_the_clock_data() {
    QTest::addColumn<QString>("policy");
    QTest::newRow("hold") << "hold";
    QTest::newRow("advance") << "advance";
  }
  void an_overflow_of_one_rank_skips_on_both_and_leaves_the_clock() {
    QFETCH(QString, policy);
    const auto trained = train({.spec = line_spec("weight_decay_style = \"linear\"\nstart_weight_decay = 0.0\n"
                                                  "end_weight_decay = 1.0\n",
                                                  "[teaching]\noverflow_at = [3]\noverflow_rank = 1\n"),
                                .set = {"accumulation.overflow=" + policy.toStdString()}},
                               2);
    VERIFY_FINISHED(trained);
    QCOMPARE(trained[1].weights_sha256, trained[0].weights_sha256);
    const auto updates = trained[0].all<Update>();
    QVERIFY(updates[1].outcome == StepOutcome::skipped_overflow);
    QCOMPARE(updates[1].weights, updates[0].weights);
    QCOMPARE(skipped(updates), 1);
    // By hand: the mean of (w x - 2 x)^2 over eight samples, and decay that the skipped update did not move.
    double w = 0.0, n = 0.0;
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const double lr = 0.01 * (1.0 - n / 64.0), decay = n / 64.0;
      QVERIFY(std::abs(updates[i].lr.value() - lr) <= 1e-15);
      if (i == 1) continue;
      double gradient = decay * w;
      for (int sample = 1; sample <= 8; ++sample) {
        const double x = 0.1 * (sample + (i % 2 == 0 ? 0 : 8));
        gradient += 2.0 * x * (w * x - 2.0 * x) / 8.0;
      }
      w -= lr * gradient;
      n += 8.0;
      QVERIFY2(std::abs(updates[i].weights[0] - w) <= 1e-12, qPrintable(QString::number(updates[i].weights[0] - w)));
    }
  }

  void a_power_of_two_as_loss_scale_changes_no_bit() {
    const std::string single = "model.dtype=float32";
    const auto plain = train({.spec = scaled_spec(), .set = {single, "optimizer.loss_scale=0"}}, 2);
    const auto scaled = train({.spec = scaled_spec(), .set = {single, "optimizer.loss_scale=1024"}}, 2);
    VERIFY_FINISHED(plain);
    VERIFY_FINISHED(scaled);
    QCOMPARE(skipped(scaled[0].all<Update>()), 0);
    QCOMPARE(scaled[0].weights_sha256, plain[0].weights_sha256);
  }

  void a_scale_that_overflows_falls_after_two_and_then_each_time() {
    const auto updates = whole_[0].all<Update>();
    QVERIFY(skipped(updates) > 4);
    QVERIFY(updates[0].outcome == StepOutcome::skipped_overflow && updates[1].outcome == updates[0].outcome);
    QVERIFY(updates.back().steps == 4 && updates.front().steps == 1);
    // The clock stands while the scale is looked for, and N does not: it follows what was trained on.
    const auto first = std::ranges::find(updates, StepOutcome::updated, &Update::outcome);
    QCOMPARE(first->lr, updates[0].lr);
  }

  void a_killed_run_ends_at_the_same_bits_data() {
    QTest::addColumn<QString>("checkpoint");
    QTest::addColumn<int>("update");
    for (const int update : {1, 2, 5, 9, 14, 22}) QTest::addRow("update %d", update) << "every_updates = 1" << update;
    QTest::newRow("inside windows") << "every_micro_steps = 5" << 17;
  }
  void a_killed_run_ends_at_the_same_bits() {
    QFETCH(QString, checkpoint);
    QFETCH(int, update);
    const RunFolder dir;
    const std::string spec = scaled_spec("[checkpoint]\nkeep = 3\n" + checkpoint.toStdString() + "\n");
    const auto killed = train({.spec = spec, .run_dir = dir, .die_at_update = update}, 2);
    QCOMPARE(killed[0].process.exit_status, 9);
    const auto resumed = train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, 2);
    VERIFY_FINISHED(resumed);
    QCOMPARE(resumed[0].weights_sha256, whole_[0].weights_sha256);
    const auto expected = whole_[0].all<Update>();
    const auto found = resumed[0].all<Update>();
    QVERIFY(!found.empty() && found.front().update > 1);
    for (const Update& each : found) {
      const Update& same = expected[static_cast<std::size_t>(each.update - 1)];
      QVERIFY(each.outcome == same.outcome);
      QCOMPARE(each.lr, same.lr);
      QCOMPARE(each.steps, same.steps);
      QCOMPARE(each.samples, same.samples);
    }
  }

 private:
  RunFolder whole_dir_;
  std::vector<TrainedRank> whole_;
};

ACCRUE_RANK_TEST_MAIN(TestSampleClock, {{"train", train_body}})

}  // namespace test_sample_clock
#include "test_sample_clock.moc"

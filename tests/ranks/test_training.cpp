// SPDX-License-Identifier: Apache-2.0
// Properties of every training run: layouts and backends agree, runs repeat to the bit, evaluation leaves no trace,
// values that are not finite are handled by the rule, and all ranks obey commands at the same place.
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "support/inline_data.h"
#include "support/table.h"
#include "support/training_body.h"

namespace test_training {

using namespace accrue;
using namespace accrue::test;

namespace {

std::string gpt_spec(int world, int steps, const std::string& rest = {}) {
  return "accrue = 1\n"
         "[model]\nkind = \"gpt\"\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 16\nvocabulary = 48\n"
         "[data]\nkind = \"synthetic\"\nsamples = 512\nvalidation_fraction = 0.125\n"
         "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\nweight_decay = 0.1\nclip_norm = 1.0\n"
         "[accumulation]\nsteps = " +
         std::to_string(steps) + "\nmicro_batch = 2\n[parallel]\ndata = " + std::to_string(world) +
         "\n[run]\nupdates = 50\nseed = 7\n" + rest;
}

/// One weight; the sample at `poison` (from 1) overflows when it is squared.
std::string poisoned_spec(int world, int poison, const std::string& rule, const std::string& accumulation = "") {
  const auto x = [poison](int i) { return i == poison ? 1e200 : i; };
  return "accrue = 1\n"
         "[model]\nkind = \"linear\"\nbias = false\ninit = \"values\"\nvalues = [1.0]\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nshuffle = false\nx = " +
         column(16, x) + "\ny = " + column(16, [](int i) { return 2 * i; }) +
         "\n[optimizer]\nkind = \"sgd\"\nlr = 0.001\n[schedule]\nkind = \"exponential\"\n"
         "[accumulation]\nsteps = 2\nmicro_batch = 2\n" +
         accumulation + "[parallel]\ndata = " + std::to_string(world) +
         "\n[run]\nepochs = 1\nrecord_weights = true\non_non_finite = \"" + rule + "\"\n";
}

std::vector<double> losses(const TrainedRank& rank) {
  std::vector<double> values;
  for (const Update& update : rank.all<Update>()) values.push_back(update.loss);
  return values;
}

}  // namespace

class TestTraining : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    reference_ = train({.spec = gpt_spec(1, 8)}, 1);
    QVERIFY2(reference_[0].outcome == "finished", reference_[0].text().c_str());
    wide_ = train({.spec = gpt_spec(1, 8), .set = {"model.dtype=float64"}}, 1);
    QVERIFY2(wide_[0].outcome == "finished", wide_[0].text().c_str());
  }

  void learns_the_synthetic_language() {
    const auto curve = losses(reference_[0]);
    QCOMPARE(curve.size(), std::size_t{50});
    QVERIFY2(curve.front() > 3.5, qPrintable(QString::number(curve.front())));
    QVERIFY2(curve.back() < curve.front() - 0.5, qPrintable(QString::number(curve.back())));
  }

  void agrees_over_layouts_and_backends_data() {
    const Rows<int, int, std::string> row;
    row("2 ranks x 4", 2, 4, "parallel.backend=auto");
    row("4 ranks x 2", 4, 2, "parallel.backend=auto");
    row("2 ranks x 4 over Gloo", 2, 4, "parallel.backend=gloo");
    row("2 ranks x 4, small buckets", 2, 4, "parallel.bucket_mb=0.02");
    row("1 rank, 16 samples at once", 1, 1, "accumulation.micro_batch=16");
  }
  void agrees_over_layouts_and_backends() {
    const auto [world, steps, setting] = current_row<int, int, std::string>();
    for (const bool wide : {false, true}) {
      const std::string type = wide ? "model.dtype=float64" : "model.dtype=float32";
      const auto trained = train({.spec = gpt_spec(world, steps), .set = {setting, type}}, world);
      VERIFY_FINISHED(trained);
      for (const TrainedRank& rank : trained) QCOMPARE(rank.weights_sha256, trained[0].weights_sha256);
      const auto expected = losses(wide ? wide_[0] : reference_[0]);
      const auto found = losses(trained[0]);
      QCOMPARE(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        QVERIFY2(std::abs(found[i] - expected[i]) <= (wide ? 1e-12 : 1e-6) * expected[i],
                 qPrintable(QString("%1, update %2: %3 and %4")
                                .arg(QString::fromStdString(type))
                                .arg(i + 1)
                                .arg(found[i], 0, 'g', 17)
                                .arg(expected[i], 0, 'g', 17)));
    }
  }

  void repeats_to_the_bit() {
    const auto again = train({.spec = gpt_spec(1, 8)}, 1);
    QCOMPARE(again[0].weights_sha256, reference_[0].weights_sha256);
    QCOMPARE(losses(again[0]), losses(reference_[0]));
  }

  void another_seed_is_another_run() {
    QVERIFY(train({.spec = gpt_spec(1, 8), .set = {"run.seed=8"}}, 1)[0].weights_sha256 !=
            reference_[0].weights_sha256);
  }

  void evaluation_leaves_no_trace() {
    TrainingScript script{.spec = gpt_spec(2, 4), .set = {"model.dropout=0.1"}};
    const auto plain = train(script, 2);
    script.spec += "[evaluate]\nevery_updates = 5\nbatches = 3\n";
    const auto evaluated = train(script, 2);
    QVERIFY2(evaluated[0].outcome == "finished", evaluated[0].text().c_str());
    QCOMPARE(evaluated[0].weights_sha256, plain[0].weights_sha256);
    const auto evaluations = evaluated[0].all<Evaluation>();
    QCOMPARE(evaluations.size(), std::size_t{10});
    QCOMPARE(evaluations[0].update, 5);
    QCOMPARE(evaluations[0].tokens, 2 * 3 * 2 * 16);  // ranks x batches x samples x context
    QVERIFY(evaluations.back().loss < evaluations.front().loss);
    QVERIFY(evaluated[1].all<Evaluation>().empty());
    QVERIFY(plain[0].weights_sha256 != reference_[0].weights_sha256);  // dropout was on
  }

  /// If all samples are equal, replicas that draw the same masks have the same gradient as one replica.
  void replicas_draw_the_same_masks_unless_they_are_told_to_draw_their_own() {
    const QTemporaryDir folder;
    QFile file(folder.filePath("alike.txt"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(QByteArray(4096, 'a'));
    file.close();
    const auto trained = [&](int replicas, const char* own) {
      return train({.spec = gpt_spec(replicas, 1),
                    .set = {"data.kind=text", "data.path=alike.txt", "model.vocabulary=256", "model.dropout=0.2",
                            "run.updates=3", "launch.threads_per_rank=1",
                            std::string("parallel.data_parallel_random_init=") + own},
                    .base_dir = folder.path().toStdString()},
                   replicas);
    };
    const auto one = trained(1, "false"), same = trained(2, "false"), own = trained(2, "true");
    VERIFY_FINISHED(one);
    VERIFY_FINISHED(same);
    VERIFY_FINISHED(own);
    QCOMPARE(losses(same[0]), losses(one[0]));
    QCOMPARE(same[0].weights_sha256, one[0].weights_sha256);
    QVERIFY(losses(own[0]).front() != losses(one[0]).front());
    QCOMPARE(own[1].weights_sha256, own[0].weights_sha256);
  }

  void evaluates_the_same_on_any_number_of_ranks() {
    const std::string evaluate = "[evaluate]\nevery_updates = 50\nbatches = ";
    const auto one = train({.spec = gpt_spec(1, 8, evaluate + "8\n")}, 1);
    const auto two = train({.spec = gpt_spec(2, 4, evaluate + "4\n")}, 2);
    const auto a = one[0].all<Evaluation>();
    const auto b = two[0].all<Evaluation>();
    QVERIFY2(a.size() == 1 && b.size() == 1, (one[0].text() + two[0].text()).c_str());
    QCOMPARE(a[0].tokens, b[0].tokens);
    QVERIFY(std::abs(a[0].loss - b[0].loss) <= 1e-6 * a[0].loss);
  }

  void leaves_out_an_update_that_is_not_finite() {
    // Window 2 of 2 ranks holds samples 9 to 16; 13 and 14 are rank 0's second micro-step.
    const auto trained = train({.spec = poisoned_spec(2, 13, "skip")}, 2);
    for (const TrainedRank& rank : trained) QVERIFY2(rank.outcome == "finished", rank.text().c_str());
    const auto updates = trained[0].all<Update>();
    QCOMPARE(updates.size(), std::size_t{2});
    QVERIFY(updates[0].outcome == StepOutcome::updated);
    QVERIFY(updates[1].outcome == StepOutcome::skipped_overflow);
    QVERIFY(!std::isfinite(updates[1].loss));
    QCOMPARE(updates[1].weights, updates[0].weights);
    QCOMPARE(trained[1].weights_sha256, trained[0].weights_sha256);
    QVERIFY(trained[0].warned("micro-step 4 on rank 0"));
    QVERIFY(trained[0].warned("update 2"));
    QVERIFY(trained[0].warned("weight"));
  }

  void names_the_rank_whose_loss_is_not_finite() {
    const auto trained = train({.spec = poisoned_spec(2, 3, "skip")}, 2);
    QVERIFY2(trained[0].outcome == "finished", trained[0].text().c_str());
    QVERIFY(trained[0].warned("micro-step 1 on rank 1"));
    const auto updates = trained[0].all<Update>();
    QVERIFY(updates[0].outcome == StepOutcome::skipped_overflow);
    QCOMPARE(updates[0].lr, updates[1].lr);  // an update that was left out holds the schedule
  }

  void ends_the_run_where_the_rule_says_stop_data() {
    const Rows<QString, bool> row;
    row("stop", "stop", false);
    row("pause, but nobody can answer", "pause", false);
    row("skip, but an overflow raises", "skip", true);
  }
  void ends_the_run_where_the_rule_says_stop() {
    const auto [rule, raises] = current_row<QString, bool>();
    const std::string policy = raises ? "overflow = \"raise\"\n" : "";
    const auto trained = train({.spec = poisoned_spec(2, 13, rule.toStdString(), policy)}, 2);
    for (const TrainedRank& rank : trained) {
      QCOMPARE(rank.outcome, std::string("error numerics"));
      QVERIFY2(rank.message.find("micro-step 4 on rank 0") != std::string::npos, rank.text().c_str());
      QCOMPARE(rank.holds, 0);
    }
    QVERIFY(trained[0].warned("not finite"));
  }

  void pauses_all_ranks_where_somebody_can_answer() {
    const auto trained = train({.spec = poisoned_spec(2, 3, "pause"), .interactive = true}, 2);
    for (const TrainedRank& rank : trained) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      QCOMPARE(rank.holds, 1);
    }
    QVERIFY(trained[0].warned("micro-step 1 on rank 1"));
    QVERIFY(trained[0].all<Update>()[0].outcome == StepOutcome::skipped_overflow);
  }

  void drops_the_open_window_when_told_to_stop() {
    const auto trained = train({.spec = gpt_spec(2, 4), .stop_before = 11}, 2);
    for (const TrainedRank& rank : trained) {
      QVERIFY2(rank.outcome == "stopped", rank.text().c_str());
      QCOMPARE(rank.updates, 2);
    }
    const auto finished = trained[0].all<RunFinished>();
    QCOMPARE(finished.size(), std::size_t{1});
    QCOMPARE(finished[0].outcome, std::string("stopped"));
  }

  void keeps_a_clip_norm() {
    const auto trained = train({.spec = gpt_spec(1, 8), .set = {"optimizer.clip_norm=0.05"}}, 1);
    QVERIFY2(trained[0].outcome == "finished", trained[0].text().c_str());
    QVERIFY(trained[0].all<Update>()[0].grad_norm > 0.05);  // as it was before clipping
    QVERIFY(trained[0].weights_sha256 != reference_[0].weights_sha256);
  }

 private:
  std::vector<TrainedRank> reference_, wide_;
};

ACCRUE_RANK_TEST_MAIN(TestTraining, {{"train", train_body}})

}  // namespace test_training
#include "test_training.moc"

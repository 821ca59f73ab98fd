// SPDX-License-Identifier: Apache-2.0
// Windows in runs of real ranks: every tail and every way of sharing uneven data ends, half precision skips overflows,
// and there are as many exchanges as the dialect makes.
#include <QTest>

#include <cmath>
#include <iomanip>
#include <sstream>

#include "support/inline_data.h"
#include "support/table.h"
#include "support/training_body.h"

namespace test_windows {

using namespace accrue;
using namespace accrue::test;

namespace {

/// y = 2x on x = 1..samples, one weight, no shuffle: what each update does can be worked out by hand.
std::string line_spec(int samples, int micro_batch, int steps, int world, const std::string& accumulation,
                      const std::string& rest = {}) {
  return "accrue = 1\n[model]\nkind = \"linear\"\nbias = false\ninit = \"zeros\"\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nshuffle = false\nx = " +
         column(samples, [](int i) { return i; }) + "\ny = " + column(samples, [](int i) { return 2 * i; }) +
         "\n[optimizer]\nkind = \"sgd\"\nlr = 0.005\n[accumulation]\nsteps = " + std::to_string(steps) +
         "\nmicro_batch = " + std::to_string(micro_batch) + "\n" + accumulation +
         "\n[parallel]\ndata = " + std::to_string(world) + "\n" + rest;
}

const std::string one_epoch = "[run]\nepochs = 1\nrecord_weights = true\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

double last_weight(const TrainedRank& rank) {
  for (auto updates = rank.all<Update>(); !updates.empty(); updates.pop_back())
    if (!updates.back().weights.empty()) return updates.back().weights.front();
  return 0.0;
}

/// The norm of the gradient of one window of 64 samples on y = slope x: one x as given, the others 1.
double norm_of_64(double first, double slope, const char* dtype, const char* sum, const char* when = "boundary") {
  const auto x = [first](int i) { return i == 1 ? first : 1.0; };
  const std::string spec =
      "accrue = 1\n[model]\nkind = \"linear\"\nbias = false\ninit = \"zeros\"\n[data]\nkind = \"inline\"\n"
      "shuffle = false\nx = " +
      column(64, x) + "\ny = " + column(64, [&](int i) { return slope * x(i); }) +
      "\n[optimizer]\nkind = \"sgd\"\nlr = 1e-9\n[accumulation]\nsteps = 64\nmicro_batch = 1\n" + one_epoch;
  const std::vector<std::string> set{std::string("model.dtype=") + dtype,
                                     std::string("accumulation.accumulation_dtype=") + sum,
                                     std::string("accumulation.reduce_when=") + when};
  return train({.spec = spec, .set = set}, 1)[0].all<Update>()[0].grad_norm.value();
}

std::int64_t gradient_reductions(const TrainedRank& rank) {
  std::int64_t count = 0;
  for (const Sync& sync : rank.all<Sync>())
    for (std::size_t i = 0; i < sync.op.size(); ++i)
      count += reduces_gradients(sync.purpose[i], sync.axis[i], sync.op[i]) ? 1 : 0;
  return count;
}

std::int64_t gradient_bytes(const TrainedRank& rank) {
  std::int64_t bytes = 0;
  for (const Sync& sync : rank.all<Sync>())
    for (std::size_t i = 0; i < sync.op.size(); ++i)
      bytes += reduces_gradients(sync.purpose[i], sync.axis[i], sync.op[i]) ? sync.bytes[i] : 0;
  return bytes;
}

}  // namespace

class TestWindows : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void when_it_is_divided_changes_no_weight_data() {
    QTest::addColumn<QString>("normalizer");
    for (const char* name : {"none", "steps", "true_size", "run_remainder"}) QTest::newRow(name) << name;
  }
  void when_it_is_divided_changes_no_weight() {
    QFETCH(QString, normalizer);
    const auto at = [&](const char* when, const char* dialect) {
      const std::string accumulation = std::string("dialect = \"") + dialect + "\"\nnormalizer = \"" +
                                       normalizer.toStdString() + "\"\nnormalize_when = \"" + when + "\"";
      const std::string run = "[run]\nepochs = 2\nrecord_weights = true\n";
      return last_weight(
          train({.spec = replaced(line_spec(10, 1, 4, 1, accumulation, run), "0.005", "0.001")}, 1).front());
    };
    for (const char* dialect : {"accelerate", "mmengine", "accrue"}) {
      const double eager = at("eager", dialect);
      QVERIFY(std::isfinite(eager) && eager != 0.0);
      QVERIFY2(std::abs(at("deferred", dialect) - eager) < 1e-12, dialect);
    }
  }

  void ranks_that_never_reduce_train_as_if_alone() {
    const std::string spec = line_spec(8, 1, 2, 2, "reduce_when = \"never\"", one_epoch);
    const auto ranks = train({.spec = spec}, 2);
    QVERIFY2(ranks[0].outcome == "finished", ranks[0].text().c_str());
    // Rank 0 has x = 1, 3 and 5, 7: w - 2 is multiplied by 1 - 0.005 * (2 + 18) / 2 and 1 - 0.005 * (50 + 98) / 2.
    QVERIFY2(std::abs(last_weight(ranks[0]) - (2.0 - 2.0 * 0.95 * 0.63)) < 1e-12, ranks[0].text().c_str());
  }

  /// Losses are finite everywhere, and one rank's sum of gradients is not.
  void one_ranks_non_finite_gradient_skips_the_update_on_all() {
    const std::string spec =
        "accrue = 1\n[model]\nkind = \"linear\"\nbias = false\ninit = \"zeros\"\noutputs = 2\n"
        "loss = \"cross_entropy\"\ndtype = \"float64\"\n[data]\nkind = \"inline\"\nshuffle = false\n"
        "sequences = [[1.0], [1.7e308], [1.0], [1.7e308], [1.0], [1.7e308]]\n"
        "labels = [[1], [1], [1], [1], [1], [1]]\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n"
        "[accumulation]\nsteps = 3\nmicro_batch = 1\nreduce_when = \"never\"\n[parallel]\ndata = 2\n"
        "[evaluate]\nexactness_every = 1\n[run]\nepochs = 1\nrecord_weights = true\non_non_finite = \"skip\"\n";
    const auto ranks = train({.spec = spec}, 2);
    for (const TrainedRank& rank : ranks) QVERIFY2(rank.outcome == "finished", rank.text().c_str());
    const auto updates = ranks[0].all<Update>();
    QCOMPARE(updates.size(), std::size_t{1});
    QCOMPARE(updates[0].outcome, StepOutcome::skipped_overflow);
    QCOMPARE(updates[0].weights, (std::vector<double>{0.0, 0.0}));
  }

  void equal_shards_counted_by_each_rank_train_as_counted_over_all() {
    const auto at = [](const std::string& accumulation) {
      return last_weight(train({.spec = line_spec(8, 1, 2, 2, accumulation, one_epoch)}, 2).front());
    };
    QVERIFY(std::abs(at("normalizer_scope = \"rank\"") - at("")) < 1e-12);
    QVERIFY(std::abs(at("normalizer_scope = \"rank\"\nnormalizer = \"samples\"") - at("")) < 1e-12);
  }

  void uneven_data_end_alike_on_all_ranks_data() {
    Rows<int, QString, int>();
    for (const int samples : {21, 15}) {  // batches of 3: 4 and 3, or 3 and 2, on two ranks
      const int full = (samples + 2) / 3 / 2;
      QTest::addRow("%d repeat", samples) << samples << "repeat" << 2;
      QTest::addRow("%d empty", samples) << samples << "empty_micro_steps" << 2;
      QTest::addRow("%d drop", samples) << samples << "drop" << (full + 1) / 2;
    }
  }
  void uneven_data_end_alike_on_all_ranks() {
    const auto [samples, uneven, updates] = current_row<int, QString, int>();
    for (const char* dialect : {"accrue", "accelerate"}) {
      const std::string accumulation =
          std::string("dialect = \"") + dialect + "\"\nuneven_ranks = \"" + uneven.toStdString() + "\"";
      const std::string spec = replaced(line_spec(samples, 3, 2, 2, accumulation, one_epoch), "0.005", "0.0005");
      const auto ranks = train({.spec = spec}, 2, std::chrono::seconds(30));
      for (const TrainedRank& rank : ranks) {
        QVERIFY2(rank.outcome == "finished", rank.text().c_str());
        QCOMPARE(rank.updates, std::int64_t(updates));
        QCOMPARE(rank.weights_sha256, ranks[0].weights_sha256);
      }
    }
  }

  void empty_micro_steps_weigh_nothing() {
    // 21 samples by mean over each window's samples: what one rank with the same windows computes.
    const std::string two = replaced(line_spec(21, 3, 2, 2, "", one_epoch), "0.005", "0.0005");
    const std::string one = replaced(line_spec(21, 6, 2, 1, "", one_epoch), "0.005", "0.0005");
    const auto ranks = train({.spec = two}, 2);
    QCOMPARE(ranks[0].all<Update>().back().samples, 21);  // nothing was trained on twice
    const double together = last_weight(ranks[0]);
    const double alone = last_weight(train({.spec = one}, 1).front());
    QVERIFY2(std::abs(together - alone) < 1e-12, QByteArray::number(together - alone));
  }

  void two_ranks_exchange_as_often_as_each_system_means_to_data() {
    const Rows<QString, int> row;
    row("llm", "dialect = \"llm\"", 2);
    row("llm as it was", "dialect = \"llm\"\nreplay = [\"narrow_no_sync\"]", 10);
    row("colossalai", "dialect = \"colossalai\"", 2);
    row("colossalai as it was", "dialect = \"colossalai\"\nreplay = [\"narrow_no_sync\"]", 8);
    row("colossalai by handlers, as it was",
        "dialect = \"colossalai\"\nreduce_mechanism = \"handlers\"\nreplay = [\"narrow_no_sync\"]", 2);
    row("accelerate", "dialect = \"accelerate\"", 3);
    row("accelerate, each batch", "dialect = \"accelerate\"\nsync_each_batch = true", 10);
    row("accelerate without flush", "dialect = \"accelerate\"\nsync_with_dataloader = false", 2);
    row("mmengine", "dialect = \"mmengine\"", 3);
    row("mmengine under ZeRO-1", "dialect = \"mmengine\"\nreplay = [\"narrow_no_sync\"]", 10);
    row("accrue", "", 3);
  }
  void two_ranks_exchange_as_often_as_each_system_means_to() {
    const auto [accumulation, reductions] = current_row<QString, int>();
    const auto ranks = train({.spec = line_spec(20, 1, 4, 2, accumulation.toStdString(), one_epoch)}, 2);
    for (const TrainedRank& rank : ranks) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      QCOMPARE(gradient_reductions(rank), std::int64_t(reductions));
    }
    // The replayed exchanges change no number.
    const int at = accumulation.indexOf("\nreplay");
    const std::string meant = (at < 0 ? accumulation : accumulation.left(at)).toStdString();
    const auto expected = train({.spec = line_spec(20, 1, 4, 2, meant, one_epoch)}, 2);
    QVERIFY(std::abs(last_weight(ranks[0]) - last_weight(expected[0])) <= 1e-12 * std::abs(last_weight(expected[0])));
  }

  void bytes_an_update_are_flat_in_n_or_n_times_that() {
    const auto bytes = [](int steps, const char* when) {
      const std::string accumulation = std::string("reduce_when = \"") + when + "\"";
      const std::string spec =
          replaced(line_spec(64, 1, steps, 2, accumulation, "[run]\nupdates = 2\n"), "0.005", "0.00001");
      return gradient_bytes(train({.spec = spec}, 2).front());
    };
    const std::int64_t once = bytes(1, "boundary");
    QVERIFY(once > 0);
    for (const int steps : {4, 16}) {
      QCOMPARE(bytes(steps, "boundary"), once);
      QCOMPARE(bytes(steps, "every_micro_step"), steps * once);
    }
  }

  void micro_steps_tell_their_window_whether_or_not_it_is_skipped() {
    // The first three windows overflow, as at the start of a float16 run.
    const std::string rest = "[run]\nepochs = 2\non_non_finite = \"skip\"\n[teaching]\noverflow_at = [1, 4, 5]\n";
    const auto ranks = train({.spec = line_spec(18, 1, 2, 2, "", rest)}, 2);
    const WindowShape shape = order_for({.spec = line_spec(18, 1, 2, 2, "", rest)}).plan.window;
    for (const TrainedRank& rank : ranks) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      AccumulationWindow planned(shape);
      for (const MicroSteps& steps : rank.all<MicroSteps>())
        for (std::size_t i = 0; i < steps.micro_step.size(); ++i) {
          const MicroPlan micro = planned.next().value();
          QCOMPARE(steps.micro_step[i], micro.micro_step);
          QCOMPARE(steps.update[i], micro.window + 1);
          QCOMPARE(steps.position[i], micro.position + 1);
          QCOMPARE(steps.size[i], micro.window_size);
          QCOMPARE(steps.epoch[i], micro.epoch);
          QCOMPARE(steps.batch[i], micro.batch);
        }
      QVERIFY(!planned.next());
    }
    std::int64_t number = 0;
    for (const Update& update : ranks[0].all<Update>()) {
      QCOMPARE(update.update, ++number);
      QCOMPARE(update.outcome, number <= 3 ? StepOutcome::skipped_overflow : StepOutcome::updated);
    }
  }

  void an_overflow_skips_its_window_alone_data() {
    Rows<QString, QString, int>();
    for (const char* dtype : {"float16", "bfloat16", "float32"})
      for (const char* policy : {"hold", "advance"})
        for (int position = 0; position < 3; ++position)
          QTest::addRow("%s, %s, at %d", dtype, policy, position) << dtype << policy << position;
  }
  void an_overflow_skips_its_window_alone() {
    const auto [dtype, policy, position] = current_row<QString, QString, int>();
    const std::string rest =
        "[schedule]\nkind = \"exponential\"\ngamma = 0.5\n[run]\nepochs = 1\nrecord_weights = true\n"
        "on_non_finite = \"skip\"\n[teaching]\noverflow_rank = 1\noverflow_at = [" +
        std::to_string(4 + position) + "]\n";
    std::string spec = line_spec(18, 1, 3, 2, "overflow = \"" + policy.toStdString() + "\"", rest);
    spec = replaced(spec, "float64", dtype.toStdString());
    spec = replaced(spec, "kind = \"sgd\"\nlr = 0.005", "kind = \"adamw\"\nlr = 0.25\nloss_scale = 4.0");
    const auto ranks = train({.spec = spec}, 2);
    QVERIFY2(ranks[0].outcome == "finished", ranks[0].text().c_str());
    QCOMPARE(ranks[1].weights_sha256, ranks[0].weights_sha256);
    const auto updates = ranks[0].all<Update>();
    QCOMPARE(updates.size(), std::size_t{3});
    QVERIFY(updates[0].outcome == StepOutcome::updated);
    QVERIFY(updates[1].outcome == StepOutcome::skipped_overflow);
    QVERIFY(updates[2].outcome == StepOutcome::updated);
    QCOMPARE(updates[1].weights, updates[0].weights);
    QCOMPARE(updates[2].lr.value(), policy == "hold" ? 0.125 : 0.0625);
    // Adam's second step after one other: its moments and its step count did not see the skipped window. Gradients of
    // the two windows have the same sign, so a step is nearly the rate; a moment that saw infinity would give NaN.
    const double moved = std::abs(updates[2].weights[0] - updates[1].weights[0]);
    QVERIFY2(moved > 0.5 * updates[2].lr.value() && moved < 1.5 * updates[2].lr.value(), QByteArray::number(moved));
  }

  void an_overflow_rule_that_is_asked_for_needs_no_other() {
    const std::string rest = "[run]\nepochs = 1\n[teaching]\noverflow_at = [2]\n";
    const auto ranks = train({.spec = line_spec(12, 1, 3, 2, "overflow = \"hold\"", rest)}, 2);
    QVERIFY2(ranks[0].outcome == "finished", ranks[0].text().c_str());
    const auto updates = ranks[0].all<Update>();
    QCOMPARE(updates.size(), std::size_t{2});
    QVERIFY(updates[0].outcome == StepOutcome::skipped_overflow);
    QVERIFY(updates[1].outcome == StepOutcome::updated);
    QVERIFY(ranks[0].warned("is not finite"));
    const auto plain = train({.spec = line_spec(12, 1, 3, 2, "", rest)}, 2);
    QCOMPARE(plain[0].outcome, std::string("error numerics"));
  }

  void ranks_that_never_reduce_report_the_mean_of_what_each_descends_data() {
    QTest::addColumn<QString>("accumulation");
    for (const char* each : {"dialect = \"llm\"", "dialect = \"accelerate\"", "", "normalizer = \"true_size\"",
                             "normalizer = \"samples\"\nnormalize_when = \"eager\""})
      QTest::newRow(each) << each;
  }
  void ranks_that_never_reduce_report_the_mean_of_what_each_descends() {
    QFETCH(QString, accumulation);
    for (const int world : {2, 4}) {
      const auto first = [&](const char* when) {
        const std::string both = accumulation.toStdString() + "\nreduce_when = \"" + when + "\"";
        return train({.spec = line_spec(16, 1, 2, world, both, one_epoch)}, world)[0].all<Update>().front().loss;
      };
      const double wanted = first("boundary");
      QVERIFY2(std::abs(first("never") / wanted - 1.0) < 1e-12, QByteArray::number(first("never") / wanted));
    }
  }

  void a_bound_on_partial_sums_bounds_what_is_divided() {
    // One micro-step a window: clipping partial sums is clipping in the update.
    const auto weight = [](const char* stage) {
      const std::string knobs = std::string("clip_stage = \"") + stage + "\"";
      const std::string spec = line_spec(4, 4, 1, 1, knobs, one_epoch);
      return last_weight(train({.spec = replaced(spec, "lr = 0.005", "lr = 0.01\nclip_norm = 1.0")}, 1)[0]);
    };
    QVERIFY(std::abs(weight("in_update") - 0.01) < 1e-8);
    QVERIFY2(std::abs(weight("every_micro_step") - 0.01) < 1e-8, QByteArray::number(weight("every_micro_step")));
  }

  void float16_finds_its_scale() {
    std::string spec = line_spec(64, 1, 2, 2, "", "[run]\nepochs = 2\n");
    spec = replaced(replaced(spec, "float64", "float16"), "0.005", "0.00001");
    const auto ranks = train({.spec = spec}, 2);
    QVERIFY2(ranks[0].outcome == "finished", ranks[0].text().c_str());
    const auto updates = ranks[0].all<Update>();
    QVERIFY(updates.front().outcome == StepOutcome::skipped_overflow);  // 65536 times what float16 can hold
    QVERIFY(updates.back().outcome == StepOutcome::updated);
    QVERIFY(std::isfinite(updates.back().loss));
    QVERIFY(ranks[0].all<Warning>().empty());
  }

  void bfloat16_keeps_small_gradients_in_a_float32_sum() {
    // The first sample's gradient is 2^10 times that of each of the others: in bfloat16 they vanish from the sum.
    const double exact = norm_of_64(32.0, 1.0, "float64", "parameter");
    QCOMPARE(norm_of_64(32.0, 1.0, "bfloat16", "float32"), exact);
    QCOMPARE(norm_of_64(32.0, 1.0, "bfloat16", "float32_compensated"), exact);
    const double narrow = norm_of_64(32.0, 1.0, "bfloat16", "parameter");
    QVERIFY2(narrow < 0.97 * exact, QByteArray::number(narrow / exact));
  }

  void compensation_keeps_what_float32_rounds_off() {
    // 2^26 and then sixty-three times 1: each addition alone is lost in float32.
    const double exact = norm_of_64(8192.0, 0.5, "float64", "float32");
    QCOMPARE(exact, (67108864.0 + 63.0) / 64.0);
    QCOMPARE(norm_of_64(8192.0, 0.5, "float32", "float32"), 67108864.0 / 64.0);
    for (const char* when : {"boundary", "every_micro_step"})
      QVERIFY(std::abs(norm_of_64(8192.0, 0.5, "float32", "float32_compensated", when) - exact) <= 4.0 / 64.0);
  }

  void memory_search_keeps_the_samples_of_an_update() {
    const auto weight = [](const std::string& more) {
      const auto ranks = train({.spec = line_spec(48, 6, 2, 1, more, one_epoch)}, 1);
      if (ranks[0].all<MicroSteps>().empty()) qFatal("%s", ranks[0].text().c_str());
      return std::pair{last_weight(ranks[0]), ranks[0].all<MicroSteps>().front().samples.front()};
    };
    const auto [plain, six] = weight("");
    const auto mebibytes = [](int micro_batch) {
      const RunOrder order = order_for({.spec = line_spec(48, micro_batch, 12 / micro_batch, 1, "", one_epoch)});
      return static_cast<double>(order.plan.memory.total()) / 1048576.0;
    };
    QVERIFY(mebibytes(1) < mebibytes(2));
    std::ostringstream limit;
    limit << std::setprecision(17) << "group_length = \"memory_search\"\nmemory_limit = " << mebibytes(1);
    const auto [searched, fewer] = weight(limit.str());
    QCOMPARE(six, 6);
    QCOMPARE(fewer, 1);
    QVERIFY(std::abs(plain - searched) < 1e-9 * std::abs(plain));
  }

  void a_run_with_a_bug_says_so() {
    const auto ranks = train({.spec = line_spec(8, 1, 2, 1, "", one_epoch + "[teaching]\nbug = \"no_division\"\n")}, 1);
    QVERIFY(ranks[0].warned("this run goes wrong on purpose: teaching.bug = no_division"));
  }
};

ACCRUE_RANK_TEST_MAIN(TestWindows, {{"train", train_body}})

}  // namespace test_windows
#include "test_windows.moc"

// SPDX-License-Identifier: Apache-2.0
// Figures of an update's event besides loss and norm: the parts of the loss, the norms of the change and of the
// weights, zeros in the gradient, the loss scale. Compared with values by hand, by LibTorch, and of one rank in every
// layout.
#include <QTest>
#include <cmath>

#include "accrue/data/data_source.h"
#include "accrue/models/model_part.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/fields/spec_io.h"
#include "support/training_body.h"

namespace test_update_measures {

using namespace accrue;
using namespace accrue::test;

namespace {

using Settings = QStringList;

const std::string measures = "[run]\nupdate_norm = true\nparameter_norm = true\ngradient_zeros = true\n";

/// x = (1, 0), ..., (8, 0) and y = 3 x1: the second weight's gradient is exactly 0.
std::string points(const std::string& rest) {
  return "accrue = 1\n[model]\nkind = \"linear\"\ninputs = 2\noutputs = 1\nbias = false\ndtype = \"float64\"\n"
         "init = \"values\"\nvalues = [0.0, 0.0]\n[data]\nkind = \"inline\"\nshuffle = false\n"
         "x = [[1, 0], [2, 0], [3, 0], [4, 0], [5, 0], [6, 0], [7, 0], [8, 0]]\n"
         "y = [[3], [6], [9], [12], [15], [18], [21], [24]]\n[optimizer]\nkind = \"sgd\"\nlr = 0.02\n" +
         rest + measures + "record_weights = true\nupdates = 3\n";
}

std::string gpt(const std::string& rest = "") {
  return "accrue = 1\n[data]\nkind = \"synthetic\"\nsamples = 64\n[optimizer]\nkind = \"adamw\"\nlr = 3e-3\n"
         "weight_decay = 0.1\n[accumulation]\nsteps = 4\nmicro_batch = 2\n" +
         measures +
         "updates = 4\n[model]\nkind = \"gpt\"\nlayers = 4\nwidth = 16\nheads = 4\ncontext = 8\nvocabulary = 44\n"
         "vocabulary_multiple = 16\ndtype = \"float64\"\n" +
         rest;
}

const std::string bert =
    "accrue = 1\n[data]\nkind = \"synthetic\"\nsamples = 32\nshuffle = false\nvalidation_fraction = 0.25\n"
    "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\n[run]\nupdates = 3\n[evaluate]\nevery_updates = 1\nbatches = 2\n"
    "[accumulation]\nsteps = 4\nmicro_batch = 2\n"
    "[model]\nkind = \"bert\"\nlayers = 2\nwidth = 16\nheads = 4\ncontext = 16\nvocabulary = 44\n"
    "vocabulary_multiple = 16\ndtype = \"float64\"\n";

TrainingScript script_of(const std::string& spec, const Settings& settings) {
  TrainingScript script{.spec = spec};
  for (const QString& each : settings) script.set.push_back(each.toStdString());
  return script;
}

std::vector<TrainedRank> trained(const std::string& spec, const Settings& settings) {
  const TrainingScript script = script_of(spec, settings);
  return train(script, static_cast<int>(order_for(script).plan.grid.world()));
}

bool near(double value, double expected, double relative) {
  return std::abs(value - expected) <= relative * std::max(std::abs(expected), 1e-300);
}

#define VERIFY_NEAR(value, expected, relative) \
  QVERIFY2(                                    \
      near((value), (expected), relative),     \
      qPrintable(QStringLiteral("%1, expected %2").arg(double(value), 0, 'g', 17).arg(double(expected), 0, 'g', 17)))

}  // namespace

class TestUpdateMeasures : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// The gradient of the mean square is -2 * 25.5 * 3 = -153 at the first update; the rate is 0.02.
  void norms_follow_by_hand_data() {
    QTest::addColumn<Settings>("layout");
    QTest::newRow("one rank") << Settings{"accumulation.steps=4", "accumulation.micro_batch=2"};
    QTest::newRow("two replicas") << Settings{"accumulation.steps=2", "accumulation.micro_batch=2", "parallel.data=2"};
    QTest::newRow("two sharded replicas")
        << Settings{"accumulation.steps=2", "accumulation.micro_batch=2", "parallel.data=2", "parallel.zero=1"};
    QTest::newRow("four sharded replicas")
        << Settings{"accumulation.steps=1", "accumulation.micro_batch=2", "parallel.data=4", "parallel.zero=1"};
  }
  void norms_follow_by_hand() {
    QFETCH(Settings, layout);
    const auto ranks = trained(points(""), layout);
    VERIFY_FINISHED(ranks);
    const auto updates = ranks.front().all<Update>();
    QCOMPARE(updates.size(), std::size_t{3});
    VERIFY_NEAR(updates[0].update_norm.value_or(0.0), 3.06, 1e-12);
    std::vector<double> before{0.0, 0.0};
    for (const Update& update : updates) {
      QCOMPARE(update.weights.size(), std::size_t{2});
      const double moved = std::hypot(update.weights[0] - before[0], update.weights[1] - before[1]);
      VERIFY_NEAR(update.update_norm.value_or(0.0), moved, 1e-9);
      VERIFY_NEAR(update.parameter_norm.value_or(0.0), std::hypot(update.weights[0], update.weights[1]), 1e-12);
      QCOMPARE(update.gradient_zeros.value_or(-1), 1);
      before = update.weights;
    }
  }

  void what_is_not_asked_for_is_not_measured() {
    const auto ranks =
        trained(gpt(), {"run.update_norm=false", "run.parameter_norm=false", "run.gradient_zeros=false"});
    VERIFY_FINISHED(ranks);
    const Update update = ranks.front().all<Update>().back();
    QVERIFY(!update.update_norm && !update.parameter_norm && !update.gradient_zeros && !update.loss_scale);
    QVERIFY(update.losses.empty());
  }

  /// 44 tokens are padded to 48 rows, which belong to no model.
  void every_layout_has_the_norms_of_one_rank_data() {
    QTest::addColumn<Settings>("layout");
    QTest::newRow("two tensor ranks") << Settings{"parallel.tensor=2"};
    QTest::newRow("two stages") << Settings{"parallel.pipeline=2"};
    QTest::newRow("two sharded replicas") << Settings{"parallel.data=2", "accumulation.steps=2", "parallel.zero=1"};
    QTest::newRow("two stages of two tensor ranks") << Settings{"parallel.tensor=2", "parallel.pipeline=2"};
    QTest::newRow("two sharded replicas of two stages")
        << Settings{"parallel.data=2", "accumulation.steps=2", "parallel.zero=1", "parallel.pipeline=2"};
    QTest::newRow("two sharded replicas of two tensor ranks by rows")
        << Settings{"parallel.data=2",   "accumulation.steps=2",   "parallel.zero=1",
                    "parallel.tensor=2", "parallel.sequence=true", "parallel.overlap_param_gather=true"};
  }
  void every_layout_has_the_norms_of_one_rank() {
    QFETCH(Settings, layout);
    const auto one = trained(gpt(), {});
    VERIFY_FINISHED(one);
    const auto ranks = trained(gpt(), layout);
    VERIFY_FINISHED(ranks);
    const auto expected = one.front().all<Update>(), updates = ranks.front().all<Update>();
    QCOMPARE(updates.size(), expected.size());
    for (std::size_t i = 0; i < updates.size(); ++i) {
      QVERIFY(expected[i].update_norm.value_or(0.0) > 0.0);
      VERIFY_NEAR(updates[i].update_norm.value_or(0.0), *expected[i].update_norm, 1e-8);
      VERIFY_NEAR(updates[i].parameter_norm.value_or(0.0), *expected[i].parameter_norm, 1e-10);
    }
    // A model of zeros has a gradient of zeros: as many as it has elements.
    std::int64_t elements = 0;
    for (const ParameterShape& shape : parameter_shapes(order_for(script_of(gpt(), {})).plan.spec.model))
      elements += shape.numel();
    for (const Settings& each : {Settings{}, layout}) {
      const auto zeros = trained(gpt("init = \"zeros\"\n"), each);
      VERIFY_FINISHED(zeros);
      QCOMPARE(zeros.front().all<Update>().front().gradient_zeros.value_or(-1), elements);
    }
  }

  /// A BERT of zeros has logits of 0: nothing but the biases behind its two heads, one for each of 44 tokens and of 2
  /// orders, has a gradient that is not 0. Tensor ranks hold parts of the first, and stages before the last none.
  void zeros_beside_other_numbers_are_counted_in_every_layout_data() {
    QTest::addColumn<Settings>("layout");
    QTest::newRow("one rank") << Settings{};
    QTest::newRow("two tensor ranks") << Settings{"parallel.tensor=2"};
    QTest::newRow("two stages") << Settings{"parallel.pipeline=2"};
    QTest::newRow("two stages of two tensor ranks") << Settings{"parallel.tensor=2", "parallel.pipeline=2"};
    QTest::newRow("two sharded replicas") << Settings{"parallel.data=2", "accumulation.steps=2", "parallel.zero=1"};
  }
  void zeros_beside_other_numbers_are_counted_in_every_layout() {
    QFETCH(Settings, layout);
    const Settings settings = layout + Settings{"model.init=zeros", "run.gradient_zeros=true", "run.updates=1"};
    const auto ranks = trained(bert, settings);
    VERIFY_FINISHED(ranks);
    std::int64_t elements = 0;
    for (const ParameterShape& shape : parameter_shapes(order_for(script_of(bert, settings)).plan.spec.model))
      elements += shape.numel();
    QCOMPARE(ranks.front().all<Update>().front().gradient_zeros.value_or(-1), elements - 44 - 2);
  }

  /// Of the float32 copies, which move where bfloat16 weights may stand still.
  void half_precision_is_measured_in_float32() {
    const Settings half{"model.dtype=bfloat16", "optimizer.lr=1e-6"};
    const auto one = trained(gpt(), half);
    VERIFY_FINISHED(one);
    const auto ranks = trained(gpt(), half + Settings{"parallel.data=2", "accumulation.steps=2", "parallel.zero=1"});
    VERIFY_FINISHED(ranks);
    const auto expected = one.front().all<Update>(), updates = ranks.front().all<Update>();
    for (std::size_t i = 0; i < updates.size(); ++i) {
      QVERIFY(updates[i].update_norm.value_or(0.0) > 1e-6);
      VERIFY_NEAR(*updates[i].update_norm, expected[i].update_norm.value_or(0.0), 0.05);
      VERIFY_NEAR(updates[i].parameter_norm.value_or(0.0), expected[i].parameter_norm.value_or(0.0), 1e-6);
    }
  }

  /// Halved by the overflow of the first update, doubled after two without one.
  void the_loss_scale_is_told_with_each_update_data() {
    QTest::addColumn<Settings>("layout");
    QTest::newRow("one rank") << Settings{};
    QTest::newRow("two replicas") << Settings{"parallel.data=2"};
    QTest::newRow("two stages") << Settings{"parallel.pipeline=2"};
  }
  void the_loss_scale_is_told_with_each_update() {
    QFETCH(Settings, layout);
    const auto ranks = trained(gpt(), layout + Settings{"model.dtype=float16", "optimizer.loss_scale=1024",
                                                        "optimizer.loss_scale_window=2", "teaching.overflow_at=[2]"});
    VERIFY_FINISHED(ranks);
    const auto updates = ranks.front().all<Update>();
    const std::vector<double> scales{512.0, 512.0, 1024.0, 1024.0};
    QCOMPARE(updates.size(), scales.size());
    for (std::size_t i = 0; i < scales.size(); ++i) QCOMPARE(updates[i].loss_scale.value_or(0.0), scales[i]);
    QVERIFY(updates[0].outcome == StepOutcome::skipped_overflow);
    QCOMPARE(updates[0].update_norm.value_or(-1.0), 0.0);
    QVERIFY(updates[1].update_norm.value_or(0.0) > 0.0);
  }

  /// Each loss of a BERT is a mean of its own: over the masked tokens, and over the samples.
  void both_losses_of_a_bert_are_those_of_the_model() {
    const Settings one_batch{"accumulation.steps=1", "accumulation.micro_batch=8", "run.updates=1"};
    const auto ranks = trained(bert, one_batch);
    VERIFY_FINISHED(ranks);
    const Update update = ranks.front().all<Update>().front();
    const RunSpec spec = order_for(script_of(bert, one_batch)).plan.spec;
    const auto source = open_data(spec, scan_data(spec, ".").value(), ".").value();
    const std::vector<std::int64_t> rows{0, 1, 2, 3, 4, 5, 6, 7};
    const auto model = make_model(spec.model, static_cast<std::uint64_t>(spec.run.seed));
    const LossSum loss = model->whole_loss(source->batch(Split::train, rows));
    QCOMPARE(update.losses.size(), std::size_t{2});
    VERIFY_NEAR(update.losses.at("lm loss"), loss.sum.item<double>() / static_cast<double>(loss.count), 1e-12);
    VERIFY_NEAR(update.losses.at("sop loss"), loss.second.item<double>() / static_cast<double>(loss.second_count),
                1e-12);
    VERIFY_NEAR(update.losses.at("lm loss") + update.losses.at("sop loss"), update.loss, 1e-12);
  }

  void every_layout_has_the_parts_of_one_rank_data() {
    QTest::addColumn<Settings>("layout");
    QTest::newRow("two replicas") << Settings{"parallel.data=2", "accumulation.steps=2"};
    QTest::newRow("two tensor ranks") << Settings{"parallel.tensor=2"};
    QTest::newRow("two stages") << Settings{"parallel.pipeline=2"};
    QTest::newRow("two replicas of two stages")
        << Settings{"parallel.data=2", "accumulation.steps=2", "parallel.pipeline=2"};
  }
  void every_layout_has_the_parts_of_one_rank() {
    QFETCH(Settings, layout);
    const auto one = trained(bert, {});
    VERIFY_FINISHED(one);
    const auto ranks = trained(bert, layout);
    VERIFY_FINISHED(ranks);
    const auto expected = one.front().all<Update>(), updates = ranks.front().all<Update>();
    QCOMPARE(updates.size(), expected.size());
    for (std::size_t i = 0; i < updates.size(); ++i)
      for (const char* name : {"lm loss", "sop loss"})
        VERIFY_NEAR(updates[i].losses.at(name), expected[i].losses.at(name), 1e-9);
    // Replicas evaluate twice as many samples.
    const auto evaluations = ranks.front().all<Evaluation>();
    QCOMPARE(evaluations.size(), std::size_t{3});
    for (const Evaluation& each : evaluations) {
      QCOMPARE(each.losses.size(), std::size_t{2});
      VERIFY_NEAR(each.losses.at("lm loss") + each.losses.at("sop loss"), each.loss, 1e-12);
    }
    if (layout.contains("parallel.data=2")) return;
    const auto alone = one.front().all<Evaluation>();
    for (std::size_t i = 0; i < evaluations.size(); ++i)
      for (const char* name : {"lm loss", "sop loss"})
        VERIFY_NEAR(evaluations[i].losses.at(name), alone[i].losses.at(name), 1e-9);
  }

  /// However a dialect reports a window's loss, its parts add up to it.
  void parts_add_up_under_every_dialect() {
    for (const char* dialect : {"accrue", "llm", "colossalai", "accelerate", "mmengine"}) {
      const auto ranks = trained(bert, {QString("accumulation.dialect=%1").arg(dialect)});
      VERIFY_FINISHED(ranks);
      for (const Update& update : ranks.front().all<Update>()) {
        QCOMPARE(update.losses.size(), std::size_t{2});
        VERIFY_NEAR(update.losses.at("lm loss") + update.losses.at("sop loss"), update.loss, 1e-12);
        QVERIFY(update.losses.at("sop loss") > 0.0);
      }
    }
  }

  void a_window_that_is_resumed_inside_keeps_its_parts() {
    const RunFolder folder;
    const Settings inside{"checkpoint.every_micro_steps=3", "accumulation.checkpoint_scope=anywhere"};
    const auto whole = trained(bert, inside);
    VERIFY_FINISHED(whole);
    TrainingScript script = script_of(bert, inside);
    script.run_dir = folder;
    script.stop_before = 8;
    const auto stopped = train(script, 1);
    QVERIFY2(stopped.front().outcome == "stopped", stopped.front().text().c_str());
    script.stop_before = 0;
    script.resume_from = "newest";
    const auto rest = train(script, 1);
    VERIFY_FINISHED(rest);
    const auto expected = whole.front().all<Update>(), updates = rest.front().all<Update>();
    QCOMPARE(updates.front().update, 2);
    for (const Update& update : updates)
      QCOMPARE(update.losses, expected[static_cast<std::size_t>(update.update - 1)].losses);
  }
};

ACCRUE_RANK_TEST_MAIN(TestUpdateMeasures, {{"train", train_body}})

}  // namespace test_update_measures
#include "test_update_measures.moc"

// SPDX-License-Identifier: Apache-2.0
// Training a GPT whose layers and blocks ranks share: the same losses, norms and weights as one rank alone, checkpoints
// that every layout reads, and resumed runs that end at the same bits.
#include <ATen/ATen.h>

#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/models/model_part.h"
#include "support/training_body.h"

namespace test_divided_training {

using namespace accrue;
using namespace accrue::test;

namespace {

namespace fs = std::filesystem;

struct Layout {
  int data = 1;
  int tensor = 1;
  bool sequence = false;
  int pipeline = 1;
  int chunks = 1;
  int zero = 0;
  int world() const { return data * tensor * pipeline; }
};

std::string spec_text(const Layout& layout, const std::string& model = {}, const std::string& rest = {}) {
  return "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 4\nwidth = 32\nheads = 4\ncontext = 16\nvocabulary = 48\n" +
         (model.empty() ? "dtype = \"float64\"\n" : model) +
         "[data]\nkind = \"synthetic\"\nsamples = 200\n"
         "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\nweight_decay = 0.1\nclip_norm = 0.5\n"
         "[schedule]\nkind = \"cosine\"\nwarmup = 2\n[accumulation]\nsteps = 4\nmicro_batch = 4\n[parallel]\ndata = " +
         std::to_string(layout.data) + "\ntensor = " + std::to_string(layout.tensor) +
         "\nsequence = " + (layout.sequence ? "true" : "false") + "\npipeline = " + std::to_string(layout.pipeline) +
         "\nvirtual_pipeline = " + std::to_string(layout.chunks) + "\nzero = " + std::to_string(layout.zero) +
         "\n[run]\nupdates = 12\n" + rest;
}

NamedTensors weights_in(const fs::path& final_folder) {
  const auto read = read_archive(final_folder / "model.safetensors");
  return read ? read->tensors : NamedTensors();
}
NamedTensors weights_in(const QTemporaryDir& folder) {
  return weights_in(fs::path(folder.path().toStdString()) / "final");
}

/// A run in which no rank shares a layer or a block, to compare with.
struct WholeRun {
  std::vector<TrainedRank> ranks;
  NamedTensors weights;
};

/// Trained once for all layouts of as many replicas.
const WholeRun& whole_run(int replicas, const std::string& model, const std::vector<std::string>& set = {}) {
  static std::map<std::tuple<int, std::string, std::vector<std::string>>, WholeRun> runs;
  const auto [found, fresh] = runs.try_emplace({replicas, model, set});
  if (fresh) {
    QTemporaryDir folder;
    found->second.ranks = train(
        {.spec = spec_text({.data = replicas}, model), .set = set, .run_dir = folder.path().toStdString()}, replicas);
    found->second.weights = weights_in(folder);
  }
  return found->second;
}

/// Largest difference of a tensor relative to its norm; infinite where names or shapes differ.
double difference(const NamedTensors& a, const NamedTensors& b) {
  double most = a.size() == b.size() && !a.empty() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && most < INFINITY; ++i) {
    const bool alike = a[i].first == b[i].first && a[i].second.sizes() == b[i].second.sizes();
    most = alike ? std::max(most, ((a[i].second - b[i].second).norm() / b[i].second.norm()).item<double>()) : INFINITY;
  }
  return most;
}

bool near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::abs(b);
}

}  // namespace

class TestDividedTraining : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_ranks_of_a_model_train_as_one_data() {
    QTest::addColumn<Layout>("layout");
    QTest::addColumn<QString>("model");
    QTest::addColumn<double>("tolerance");
    QTest::addColumn<double>("weights");
    for (const auto& [name, layout] : std::initializer_list<std::pair<const char*, Layout>>{
             {"two ranks", {1, 2, false}},
             {"two ranks by rows", {1, 2, true}},
             {"four ranks", {1, 4, false}},
             {"four ranks by rows", {1, 4, true}},
             {"two replicas of two ranks", {2, 2, false}},
             {"two replicas of two ranks by rows", {2, 2, true}},
             {"two stages", {1, 1, false, 2}},
             {"four stages", {1, 1, false, 4}},
             {"two stages of two chunks", {1, 1, false, 2, 2}},
             {"two replicas of two stages", {2, 1, false, 2}},
             {"two stages of two ranks by rows", {1, 2, true, 2}},
             {"two replicas of two stages of two ranks", {2, 2, false, 2}},
             {"two sharded replicas", {2, 1, false, 1, 1, 1}},
             {"four sharded replicas", {4, 1, false, 1, 1, 1}},
             {"two sharded replicas of two ranks by rows", {2, 2, true, 1, 1, 1}},
             {"two sharded replicas of two stages", {2, 1, false, 2, 1, 1}},
             {"two sharded replicas of two stages of two ranks", {2, 2, true, 2, 1, 1}}}) {
      QTest::addRow("%s, float64", name) << layout << "" << 1e-10 << 1e-10;
      // If Adam's second moment is nearly 0, the last bit of a gradient changes a leading digit of the weight.
      QTest::addRow("%s, float32", name) << layout << "dtype = \"float32\"\n" << 1e-6 << 1e-4;
    }
  }
  void the_ranks_of_a_model_train_as_one() {
    QFETCH(Layout, layout);
    QFETCH(QString, model);
    QFETCH(double, tolerance);
    QFETCH(double, weights);
    QTemporaryDir divided_dir;
    const auto& [alone, alone_weights] = whole_run(layout.data, model.toStdString());
    const auto divided = train(
        {.spec = spec_text(layout, model.toStdString()), .run_dir = divided_dir.path().toStdString()}, layout.world());
    QVERIFY2(alone[0].outcome == "finished", alone[0].text().c_str());
    for (const TrainedRank& rank : divided) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      QCOMPARE(rank.weights_sha256, divided[0].weights_sha256);
    }
    const auto expected = alone[0].all<Update>(), found = divided[0].all<Update>();
    QCOMPARE(found.size(), std::size_t{12});
    for (std::size_t i = 0; i < found.size(); ++i) {
      QVERIFY2(near(found[i].loss, expected[i].loss, tolerance),
               qPrintable(QString("update %1: %2, %3").arg(i).arg(found[i].loss, 0, 'g', 17).arg(expected[i].loss)));
      // Of the first update the weights are still the same bits; after it those of float32 have come apart.
      const bool wide = model.isEmpty();
      const double apart = i == 0 ? (wide ? 1e-12 : 1e-6) : wide ? tolerance : 10 * tolerance;
      QVERIFY2(
          near(found[i].grad_norm.value(), expected[i].grad_norm.value(), apart),
          qPrintable(
              QString("norm %1: %2").arg(i).arg(found[i].grad_norm.value() / expected[i].grad_norm.value() - 1.0)));
      QCOMPARE(found[i].samples, expected[i].samples);
      QCOMPARE(found[i].tokens, expected[i].tokens);
    }
    const double apart = difference(weights_in(divided_dir), alone_weights);
    QVERIFY2(apart <= weights, qPrintable(QString::number(apart)));
  }

  /// One update of plain SGD at a rate of 1: a bias, which begins at 0, is then minus its gradient, to the bit.
  void tensor_ranks_have_the_same_gradients_of_what_all_hold_data() {
    QTest::addColumn<Layout>("layout");
    for (const int ranks : {2, 4})
      for (const bool rows : {false, true})
        QTest::addRow("%d ranks%s", ranks, rows ? " by rows" : "") << Layout{1, ranks, rows};
  }
  void tensor_ranks_have_the_same_gradients_of_what_all_hold() {
    QFETCH(Layout, layout);
    QTemporaryDir alone_dir, divided_dir;
    const auto one_update = [](const Layout& of, const QTemporaryDir& folder) {
      return train({.spec = spec_text(of),
                    .set = {"optimizer.kind=sgd", "optimizer.lr=1", "optimizer.weight_decay=0", "optimizer.clip_norm=0",
                            "schedule.kind=constant", "schedule.warmup=0", "run.updates=1"},
                    .run_dir = folder.path().toStdString()},
                   of.world());
    };
    const auto alone = one_update({}, alone_dir), divided = one_update(layout, divided_dir);
    VERIFY_FINISHED(alone);
    VERIFY_FINISHED(divided);
    // Each rank's hash is of its own copies.
    for (const TrainedRank& rank : divided) QCOMPARE(rank.weights_sha256, divided[0].weights_sha256);
    const NamedTensors expected = weights_in(alone_dir), found = weights_in(divided_dir);
    QCOMPARE(found.size(), expected.size());
    int compared = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string& name = found[i].first;
      const bool on_all = name.ends_with("norm_1.bias") || name.ends_with("norm_2.bias") ||
                          name.ends_with("final_norm.bias") || name.ends_with("output.bias") ||
                          name.ends_with("down.bias");
      if (!on_all) continue;
      ++compared;
      QVERIFY2(expected[i].second.norm().item<double>() > 0, name.c_str());
      const double apart = difference({found[i]}, {expected[i]});
      QVERIFY2(apart < 1e-10, qPrintable(QString("%1: %2").arg(name.c_str()).arg(apart)));
    }
    QCOMPARE(compared, 4 * 4 + 1);
  }

  /// Plain SGD at a rate of 1 moves each parameter by minus its gradient. So how far the weights, each counted once,
  /// have moved from where they began is the gradient's norm; and where that is clipped to 0.05, they go
  /// 0.05 / (norm + 1e-6) of the way. That is at a rate of 1024, so that their own rounding is none of the difference.
  void the_norm_is_that_of_the_gathered_gradient_data() {
    QTest::addColumn<Layout>("layout");
    QTest::addColumn<QString>("model");
    QTest::addColumn<double>("tolerance");
    for (const auto& [name, layout] : std::initializer_list<std::pair<const char*, Layout>>{
             {"one rank", {}},
             {"two ranks", {1, 2}},
             {"two ranks by rows", {1, 2, true}},
             {"four ranks", {1, 4}},
             {"four ranks by rows", {1, 4, true}},
             {"two stages", {1, 1, false, 2}},
             {"four stages", {1, 1, false, 4}},
             {"two stages of two chunks", {1, 1, false, 2, 2}},
             {"two replicas", {2}},
             {"four replicas", {4}},
             {"two sharded replicas", {2, 1, false, 1, 1, 1}},
             {"four sharded replicas", {4, 1, false, 1, 1, 1}},
             {"two stages of two ranks", {1, 2, false, 2}},
             {"two replicas of two ranks by rows", {2, 2, true}},
             {"two sharded replicas of two ranks by rows", {2, 2, true, 1, 1, 1}},
             {"two replicas of two stages", {2, 1, false, 2}},
             {"two sharded replicas of two stages", {2, 1, false, 2, 1, 1}},
             {"two by two by two", {2, 2, false, 2}},
             {"two by two by two, sharded, by rows", {2, 2, true, 2, 1, 1}}}) {
      QTest::addRow("%s, float64", name) << layout << "" << 1e-12;
      QTest::addRow("%s, float32", name) << layout << "dtype = \"float32\"\n" << 1e-6;
    }
  }
  void the_norm_is_that_of_the_gathered_gradient() {
    QFETCH(Layout, layout);
    QFETCH(QString, model);
    QFETCH(double, tolerance);
    const std::string text = spec_text(layout, model.toStdString());
    const auto gradient = [&](const char* clip, int rate, double& norm) {
      const RunFolder folder;
      const TrainingScript script{.spec = text,
                                  .set = {"optimizer.kind=sgd", "optimizer.lr=" + std::to_string(rate),
                                          "optimizer.weight_decay=0", std::string("optimizer.clip_norm=") + clip,
                                          "schedule.kind=constant", "schedule.warmup=0", "run.updates=1"},
                                  .run_dir = folder};
      const auto ranks = train(script, layout.world());
      if (ranks[0].outcome != "finished") qWarning("%s", ranks[0].text().c_str());
      for (const Update& update : ranks[0].all<Update>()) norm = update.grad_norm.value();
      const RunSpec spec = order_for(script).plan.spec;
      const auto before = make_model(spec.model, static_cast<std::uint64_t>(spec.run.seed));
      std::map<std::string, at::Tensor> moved;
      for (const auto& [name, after] : weights_in(folder / "final"))
        moved[name] = (before->named_parameters()[name].detach().to(at::kDouble) - after.to(at::kDouble)) / rate;
      return moved;
    };
    double norm = 0.0, norm_before = 0.0, squares = 0.0;
    const auto whole = gradient("0", 1, norm), clipped = gradient("0.05", 1024, norm_before);
    QCOMPARE(whole.size(), std::size_t{4 * 12 + 4});
    for (const auto& each : whole) squares += each.second.square().sum().item<double>();
    QVERIFY2(near(norm, std::sqrt(squares), tolerance),
             qPrintable(QString("%1, %2").arg(norm, 0, 'g', 17).arg(std::sqrt(squares), 0, 'g', 17)));
    QVERIFY(norm > 0.05);
    QVERIFY(near(norm_before, norm, tolerance));
    const double factor = 0.05 / (norm + 1e-6);
    double apart = 0.0;
    for (const auto& [name, moved] : whole) apart += (clipped.at(name) - factor * moved).square().sum().item<double>();
    QVERIFY2(std::sqrt(apart) <= tolerance * 0.05, qPrintable(QString::number(std::sqrt(apart) / 0.05)));
  }

  /// Groups with factors and rates of their own, a weight decay that moves, windows that grow, and smoothed losses.
  void every_layout_obeys_groups_and_clocks_data() {
    QTest::addColumn<Layout>("layout");
    QTest::newRow("two ranks by rows") << Layout{1, 2, true};
    QTest::newRow("four stages") << Layout{1, 1, false, 4};
    QTest::newRow("two stages of two chunks") << Layout{1, 1, false, 2, 2};
    QTest::newRow("two sharded replicas") << Layout{2, 1, false, 1, 1, 1};
    QTest::newRow("two sharded replicas of two ranks") << Layout{2, 2, false, 1, 1, 1};
  }
  void every_layout_obeys_groups_and_clocks() {
    QFETCH(Layout, layout);
    const int micro = 4 * layout.data;
    const std::string first = std::to_string(2 * micro);
    const std::vector<std::string> set{"schedule.clock=samples",
                                       "schedule.warmup=20",
                                       "optimizer.no_decay=[\"*.bias\", \"position*\"]",
                                       "optimizer.scaled_lr=[\"*.mlp.*\"]",
                                       "optimizer.lr_mult=0.5",
                                       "optimizer.decoupled_lr=1e-3",
                                       "optimizer.weight_decay_style=cosine",
                                       "optimizer.start_weight_decay=0.01",
                                       "optimizer.end_weight_decay=0.5",
                                       "model.label_smoothing=0.1",
                                       "accumulation.rampup=[" + first + ", " + first + ", 60]"};
    QTemporaryDir divided_dir;
    const auto& [alone, alone_weights] = whole_run(layout.data, {}, set);
    const auto divided =
        train({.spec = spec_text(layout), .set = set, .run_dir = divided_dir.path().toStdString()}, layout.world());
    VERIFY_FINISHED(alone);
    VERIFY_FINISHED(divided);
    const auto expected = alone[0].all<Update>(), found = divided[0].all<Update>();
    QCOMPARE(found.size(), expected.size());
    QCOMPARE(found[0].steps, 2);
    QCOMPARE(found.back().steps, 4);
    for (std::size_t i = 0; i < found.size(); ++i) {
      QVERIFY(near(found[i].loss, expected[i].loss, 1e-10));
      QCOMPARE(found[i].lr, expected[i].lr);
    }
    const double apart = difference(weights_in(divided_dir), alone_weights);
    QVERIFY2(apart <= 1e-10, qPrintable(QString::number(apart)));
  }

  /// Ten micro-batches, windows of four: what becomes of the two that are left is the dialect's, and stages change
  /// nothing of it.
  void every_dialect_keeps_its_meaning_on_two_stages_data() {
    QTest::addColumn<QString>("dialect");
    QTest::addColumn<int>("updates");
    QTest::newRow("accrue") << "accrue" << 6;
    QTest::newRow("llm") << "llm" << 5;
    QTest::newRow("colossalai") << "colossalai" << 4;
    QTest::newRow("accelerate") << "accelerate" << 6;
    QTest::newRow("mmengine") << "mmengine" << 5;
  }
  void every_dialect_keeps_its_meaning_on_two_stages() {
    QFETCH(QString, dialect);
    QFETCH(int, updates);
    std::vector<std::vector<Update>> found;
    std::vector<NamedTensors> weights;
    for (const int stages : {1, 2}) {
      const QTemporaryDir folder;
      const auto ranks = train({.spec = spec_text({.pipeline = stages}),
                                .set = {"accumulation.dialect=" + dialect.toStdString(), "data.samples=40",
                                        "run.updates=", "run.epochs=2", "schedule.warmup=0"},
                                .run_dir = folder.path().toStdString()},
                               stages);
      VERIFY_FINISHED(ranks);
      found.push_back(ranks[0].all<Update>());
      weights.push_back(weights_in(folder));
    }
    QCOMPARE(found[0].size(), static_cast<std::size_t>(updates));
    QCOMPARE(found[1].size(), found[0].size());
    for (std::size_t i = 0; i < found[0].size(); ++i) {
      const Update &one = found[0][i], &two = found[1][i];
      QVERIFY2(near(two.loss, one.loss, 1e-10), qPrintable(QString("%1, %2").arg(two.loss).arg(one.loss)));
      QCOMPARE(two.lr, one.lr);
      QCOMPARE(two.micro_step, one.micro_step);
      QCOMPARE(two.samples, one.samples);
    }
    const double apart = difference(weights[1], weights[0]);
    QVERIFY2(apart <= 1e-10, qPrintable(QString::number(apart)));
  }

  /// Between the first update and the third, groups whose rate is next to nothing move by next to nothing.
  void a_group_without_a_rate_stays_where_it_was() {
    const Layout layout{2, 2, false, 1, 1, 1};
    QTemporaryDir early, late;
    for (const auto& [dir, updates] : {std::pair(&early, "run.updates=1"), std::pair(&late, "run.updates=3")})
      VERIFY_FINISHED(train({.spec = spec_text(layout),
                             .set = {updates, "optimizer.scaled_lr=[\"*.mlp.*\"]", "optimizer.lr_mult=1e-300",
                                     "optimizer.decoupled_lr=1e-300"},
                             .run_dir = dir->path().toStdString()},
                            layout.world()));
    const NamedTensors before = weights_in(early), after = weights_in(late);
    QVERIFY(!before.empty());
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::string& name = before[i].first;
      const bool stays = name.find(".mlp.") != std::string::npos || name == "token_embedding.weight";
      const double moved = (after[i].second - before[i].second).abs().max().item<double>();
      QVERIFY2(stays ? moved < 1e-290 : moved > 1e-6, (name + " " + std::to_string(moved)).c_str());
    }
  }

  /// A stage has several micro-steps in flight: their operations alternate.
  void operations_are_reported_in_the_order_in_which_they_ran() {
    QTemporaryDir folder;
    const auto ranks =
        train({.spec = spec_text({.pipeline = 2, .chunks = 2}), .run_dir = folder.path().toStdString()}, 2);
    for (const TrainedRank& rank : ranks) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      std::map<std::int64_t, std::int64_t> computed;
      std::int64_t last = 0, before = 0, turns = 0;
      for (const Operations& spans : rank.all<Operations>())
        for (std::size_t i = 0; i < spans.kind.size(); ++i) {
          QVERIFY(spans.begin_ns[i] >= last);
          QVERIFY(spans.end_ns[i] >= spans.begin_ns[i]);
          last = spans.end_ns[i];
          turns += spans.micro_step[i] < std::exchange(before, spans.micro_step[i]);
          if (spans.kind[i] != ComputeKind::step) computed[spans.micro_step[i]] += spans.end_ns[i] - spans.begin_ns[i];
        }
      QCOMPARE(computed.size(), std::size_t{12 * 4});
      QVERIFY(turns >= 12);
      for (const MicroSteps& steps : rank.all<MicroSteps>())
        for (std::size_t i = 0; i < steps.micro_step.size(); ++i)
          QCOMPARE(steps.compute_ns[i], computed.at(steps.micro_step[i]));
    }
  }

  void a_resumed_run_ends_at_the_same_bits_data() {
    QTest::addColumn<Layout>("layout");
    QTest::addColumn<QString>("checkpoint");
    const Layout whole{2, 2}, by_rows{2, 2, true};
    QTest::newRow("at an update") << whole << "every_updates = 5\n";
    QTest::newRow("at an update, by rows") << by_rows << "every_updates = 5\n";
    QTest::newRow("inside a window") << whole << "every_micro_steps = 7\n";
    QTest::newRow("inside a window, by rows") << by_rows << "every_micro_steps = 7\n";
    QTest::newRow("two stages of two ranks") << Layout{1, 2, true, 2} << "every_updates = 5\n";
    QTest::newRow("four sharded replicas") << Layout{4, 1, false, 1, 1, 1} << "every_updates = 5\n";
    QTest::newRow("two replicas of two stages of two chunks") << Layout{2, 1, false, 2, 2} << "every_updates = 5\n";
  }
  void a_resumed_run_ends_at_the_same_bits() {
    QFETCH(Layout, layout);
    QFETCH(QString, checkpoint);
    const std::string spec = spec_text(layout, "dropout = 0.1\n", "[checkpoint]\n" + checkpoint.toStdString());
    QTemporaryDir whole_dir, folder;
    const auto whole = train({.spec = spec, .run_dir = whole_dir.path().toStdString()}, 4);
    QVERIFY2(whole[0].outcome == "finished", whole[0].text().c_str());
    const std::string dir = folder.path().toStdString();
    // On a pipeline nothing happens inside a window.
    const bool pipelined = layout.pipeline > 1;
    const auto killed =
        train({.spec = spec, .run_dir = dir, .die_at_update = pipelined ? 8 : 0, .kill_before = pipelined ? 0 : 33}, 4);
    QVERIFY(killed[0].outcome != "finished");
    const auto resumed = train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, 4);
    for (const TrainedRank& rank : resumed) {
      QVERIFY2(rank.outcome == "finished", rank.text().c_str());
      QCOMPARE(rank.weights_sha256, whole[0].weights_sha256);
    }
    QVERIFY(resumed[0].all<Update>().front().update > 1);
  }

  /// 50 tokens in 64 rows, of which the last of four ranks holds padding alone, or in 52: files hold 50.
  void a_padded_vocabulary_changes_no_number_data() {
    QTest::addColumn<Layout>("layout");
    QTest::addColumn<int>("multiple");
    QTest::newRow("one rank") << Layout{} << 64;
    QTest::newRow("four ranks") << Layout{1, 4, false} << 64;
    QTest::newRow("four ranks by rows") << Layout{1, 4, true} << 4;
    QTest::newRow("two stages of two ranks") << Layout{1, 2, false, 2} << 64;
    QTest::newRow("two sharded replicas of two ranks") << Layout{2, 2, false, 1, 1, 1} << 64;
  }
  void a_padded_vocabulary_changes_no_number() {
    QFETCH(Layout, layout);
    QFETCH(int, multiple);
    QTemporaryDir divided_dir;
    const std::vector<std::string> tokens{"model.vocabulary=50", "launch.threads_per_rank=1"};
    const auto& [alone, alone_weights] = whole_run(layout.data, {}, tokens);
    VERIFY_FINISHED(alone);
    TrainingScript script{.spec = spec_text(layout),
                          .set = {tokens[0], tokens[1], "model.vocabulary_multiple=" + std::to_string(multiple)},
                          .run_dir = divided_dir.path().toStdString(),
                          .stop_request = 4};
    const auto begun = train(script, layout.world());
    QVERIFY2(begun[0].outcome == "stopped", begun[0].text().c_str());
    script.stop_request = 8;
    script.resume_from = "newest";
    const auto resumed = train(script, layout.world());
    QVERIFY2(resumed[0].outcome == "stopped", resumed[0].text().c_str());
    // The rest without padding, on one rank a replica.
    script.stop_request = 0;
    script.spec = spec_text({.data = layout.data});
    script.set = tokens;
    const auto ended = train(script, layout.data);
    VERIFY_FINISHED(ended);
    const auto expected = alone[0].all<Update>();
    std::vector<Update> found = begun[0].all<Update>();
    for (const auto& part : {resumed, ended})
      for (const Update& update : part[0].all<Update>()) found.push_back(update);
    QCOMPARE(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) QVERIFY(near(found[i].loss, expected[i].loss, 1e-10));
    const double apart = difference(weights_in(divided_dir), alone_weights);
    QVERIFY2(apart <= 1e-10, qPrintable(QString::number(apart)));
  }

  /// Under Megatron-LM's rule the rows are trained; the final weights end at the vocabulary all the same.
  void final_weights_have_the_rows_of_the_vocabulary_data() {
    QTest::addColumn<Layout>("layout");
    QTest::newRow("one rank") << Layout{};
    QTest::newRow("two ranks") << Layout{1, 2};
    QTest::newRow("two stages of two ranks") << Layout{1, 2, true, 2};
  }
  void final_weights_have_the_rows_of_the_vocabulary() {
    QFETCH(Layout, layout);
    for (const char* padding : {"fixed", "megatron"}) {
      QTemporaryDir folder;
      const auto ranks =
          train({.spec = spec_text(layout),
                 .set = {"model.vocabulary=50", "model.vocabulary_multiple=8", "launch.threads_per_rank=1",
                         std::string("model.vocabulary_padding=") + padding},
                 .run_dir = folder.path().toStdString()},
                layout.world());
      VERIFY_FINISHED(ranks);
      const NamedTensors weights = weights_in(folder);
      QVERIFY(!weights.empty() && weights.front().first == "token_embedding.weight");
      QVERIFY(weights.front().second.sizes() == at::IntArrayRef({50, 32}));
    }
  }

  /// Ranks that own nothing but padding read what the others wrote.
  void a_model_smaller_than_its_shards_is_resumed() {
    const std::string spec =
        "accrue = 1\n[model]\nkind = \"linear\"\ninputs = 2\noutputs = 1\n[data]\nkind = \"inline\"\n"
        "x = [[1.0, 2.0], [2.0, 1.0], [3.0, 0.0], [0.0, 1.0]]\ny = [[1.0], [2.0], [3.0], [4.0]]\n"
        "[accumulation]\nsteps = 1\nmicro_batch = 1\n[parallel]\ndata = 4\nzero = 1\n[run]\nupdates = 6\n"
        "[checkpoint]\nevery_updates = 2\n";
    QTemporaryDir whole_dir, folder;
    const auto whole = train({.spec = spec, .run_dir = whole_dir.path().toStdString()}, 4);
    QVERIFY2(whole[0].outcome == "finished", whole[0].text().c_str());
    const std::string dir = folder.path().toStdString();
    const auto begun = train({.spec = spec, .run_dir = dir, .stop_request = 3}, 4);
    QVERIFY2(begun[0].outcome == "stopped", begun[0].text().c_str());
    const auto ended = train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, 4);
    QVERIFY2(ended[0].outcome == "finished", ended[0].text().c_str());
    QCOMPARE(ended[0].all<Update>().front().update, 4);
    QCOMPARE(ended[0].weights_sha256, whole[0].weights_sha256);
  }

  /// A rank's sum of an open window belongs to its layout.
  void a_checkpoint_inside_a_window_is_read_in_its_layout_only() {
    QTemporaryDir folder;
    const std::string dir = folder.path().toStdString();
    const std::string every = "[checkpoint]\nevery_micro_steps = 1\n";
    const Layout four{1, 4, true}, two{1, 2, true};
    const auto killed = train({.spec = spec_text(four, {}, every), .run_dir = dir, .kill_before = 7}, 4);
    QVERIFY(killed[0].outcome != "finished");
    const auto other = train({.spec = spec_text(two, {}, every), .run_dir = dir, .resume_from = "newest"}, 2);
    QVERIFY2(other[0].outcome == "error config", other[0].text().c_str());
    QVERIFY2(other[0].message.find("inside a window by 4 ranks in another layout") != std::string::npos,
             other[0].message.c_str());
  }

  /// Half of the run in one layout, half in another: the numbers are those of one layout throughout.
  void a_checkpoint_is_read_in_any_layout_data() {
    QTest::addColumn<Layout>("first");
    QTest::addColumn<Layout>("second");
    QTest::newRow("one rank, then two") << Layout{1, 1} << Layout{1, 2};
    QTest::newRow("two ranks, then one") << Layout{1, 2} << Layout{1, 1};
    QTest::newRow("two ranks, then four by rows") << Layout{1, 2} << Layout{1, 4, true};
    QTest::newRow("four ranks by rows, then two") << Layout{1, 4, true} << Layout{1, 2};
    QTest::newRow("two stages of two ranks, then one rank") << Layout{1, 2, false, 2} << Layout{};
    QTest::newRow("one rank, then four stages") << Layout{} << Layout{1, 1, false, 4};
    QTest::newRow("two sharded replicas, then two whole ones") << Layout{2, 1, false, 1, 1, 1} << Layout{2};
    QTest::newRow("two whole replicas, then two sharded ones of two stages")
        << Layout{2} << Layout{2, 1, false, 2, 1, 1};
    QTest::newRow("two stages of two chunks, then two stages of two ranks")
        << Layout{1, 1, false, 2, 2} << Layout{1, 2, true, 2};
  }
  void a_checkpoint_is_read_in_any_layout() {
    QFETCH(Layout, first);
    QFETCH(Layout, second);
    QTemporaryDir folder;
    const auto& [whole, whole_weights] = whole_run(first.data, {});
    const std::string dir = folder.path().toStdString();
    const auto begun = train({.spec = spec_text(first), .run_dir = dir, .stop_request = 6}, first.world());
    QVERIFY2(begun[0].outcome == "stopped", begun[0].text().c_str());
    const auto ended = train({.spec = spec_text(second), .run_dir = dir, .resume_from = "newest"}, second.world());
    QVERIFY2(ended[0].outcome == "finished", ended[0].text().c_str());
    const auto expected = whole[0].all<Update>(), found = ended[0].all<Update>();
    QCOMPARE(found.size(), std::size_t{6});
    for (std::size_t i = 0; i < found.size(); ++i) QVERIFY(near(found[i].loss, expected[i + 6].loss, 1e-10));
    const double apart = difference(weights_in(folder), whole_weights);
    QVERIFY2(apart <= 1e-10, qPrintable(QString::number(apart)));
  }
};

ACCRUE_RANK_TEST_MAIN(TestDividedTraining, {{"train", train_body}})

}  // namespace test_divided_training
#include "test_divided_training.moc"

// SPDX-License-Identifier: Apache-2.0
// Settings that must not change a bit of a divided model's weights: the time of exchanging gradients and parameters,
// the order of micro-steps in a pipeline, sharding of the optimizer state, a loss scale that is a power of two.
#include <QTest>
#include <algorithm>
#include <map>

#include "support/gathered_state.h"
#include "support/training_body.h"

namespace test_divided_updates {

using namespace accrue;
using namespace accrue::test;

namespace {

using Settings = QStringList;

/// Small buckets, so that there are many; no clipping, whose factor is summed in another order in every layout.
TrainingScript script_of(const Settings& settings, const Settings& more = {}) {
  TrainingScript script{
      .spec =
          "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 4\nwidth = 16\nheads = 4\ncontext = 8\n"
          "vocabulary = 48\n[data]\nkind = \"synthetic\"\nsamples = 200\n"
          "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\nweight_decay = 0.1\n"
          "[accumulation]\nsteps = 4\nmicro_batch = 2\nreduce_mechanism = \"reducer\"\n[parallel]\nbucket_mb = 0.004\n"
          "[run]\nupdates = 5\n"};
  for (const QString& each : settings + more) script.set.push_back(each.toStdString());
  return script;
}

std::vector<TrainedRank> trained(const TrainingScript& script) {
  return train(script, static_cast<int>(order_for(script).plan.grid.world()));
}

/// The final weights' hash, which all ranks must agree on; what went wrong otherwise.
std::string weights_of(const std::vector<TrainedRank>& ranks) {
  for (const TrainedRank& rank : ranks) {
    if (rank.outcome != "finished") return rank.text();
    if (rank.weights_sha256 != ranks.front().weights_sha256) return "the ranks' weights differ";
  }
  return ranks.front().weights_sha256;
}
std::string weights_of(const TrainingScript& script) {
  return weights_of(trained(script));
}

/// Calls along the data axis that a rank reports for an update.
std::int64_t calls(const TrainedRank& rank, CollectivePurpose purpose, std::int64_t update) {
  std::int64_t count = 0;
  for (const Sync& sync : rank.all<Sync>())
    for (std::size_t i = 0; i < sync.op.size(); ++i)
      count += sync.purpose[i] == purpose && sync.axis[i] == "data" && sync.update[i] == update;
  return count;
}

/// Gradient reductions that a rank began before its last backward of the window had ended.
std::int64_t began_early(const TrainedRank& rank) {
  std::map<std::int64_t, std::int64_t> ends;  // by micro-step
  for (const Operations& operations : rank.all<Operations>())
    for (std::size_t i = 0; i < operations.kind.size(); ++i)
      if (operations.kind[i] == ComputeKind::backward) ends[operations.micro_step[i]] = operations.end_ns[i];
  std::int64_t count = 0;
  for (const Sync& sync : rank.all<Sync>())
    for (std::size_t i = 0; i < sync.op.size(); ++i)
      count += reduces_gradients(sync.purpose[i], sync.axis[i], sync.op[i]) && ends.contains(sync.micro_step[i]) &&
               sync.begin_ns[i] < ends[sync.micro_step[i]];
  return count;
}

const Settings one_stage{"parallel.data=2"};
const Settings sharded{"parallel.data=2", "parallel.zero=1"};
const Settings stages{"parallel.data=2", "parallel.pipeline=2"};
const Settings chunks{"parallel.data=2", "parallel.pipeline=2", "parallel.virtual_pipeline=2"};
const Settings sharded_stages = stages + sharded;
const Settings sharded_chunks = chunks + sharded;

}  // namespace

class TestDividedUpdates : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Gradients that are reduced while the last backward runs, and parameters that are gathered while the next forward
  /// does, in buckets of one layout. Each bucket is reduced once.
  void what_travels_early_arrives_the_same_data() {
    QTest::addColumn<Settings>("layout");
    QTest::addColumn<QString>("backend");
    for (const char* backend : {"shm", "gloo"}) {
      QTest::addRow("sharded replicas, %s", backend) << sharded << backend;
      QTest::addRow("sharded replicas of stages of two chunks, %s", backend) << sharded_chunks << backend;
    }
    QTest::addRow("replicas") << one_stage << "shm";
    QTest::addRow("replicas of stages") << stages << "shm";
    QTest::addRow("replicas of stages of two chunks") << chunks << "gloo";
    QTest::addRow("sharded replicas of two ranks by rows")
        << sharded + Settings{"parallel.tensor=2", "parallel.sequence=true"} << "shm";
  }
  void what_travels_early_arrives_the_same() {
    QFETCH(Settings, layout);
    QFETCH(QString, backend);
    const bool shards = layout.contains("parallel.zero=1");
    layout += "parallel.backend=" + backend;
    const auto with = [&](const char* reduce, const char* gather) {
      return script_of(layout,
                       Settings{QString("parallel.overlap_grad_reduce=%1").arg(reduce)} +
                           (shards ? Settings{QString("parallel.overlap_param_gather=%1").arg(gather)} : Settings()));
    };
    const auto late = trained(with("false", "false"));
    const std::string expected = weights_of(late);
    QCOMPARE(expected.size(), std::size_t{64});
    const auto early = trained(with("true", "true"));
    QCOMPARE(weights_of(early), expected);
    const std::int64_t buckets = order_for(with("true", "true")).plan.gradient_buckets;
    QVERIFY(buckets > 3);
    QCOMPARE(began_early(late.front()), 0);
    QVERIFY(began_early(early.front()) > 0);
    for (const auto* ranks : {&late, &early}) {
      QCOMPARE(calls(ranks->front(), CollectivePurpose::gradients, 2), buckets);
      // Those of the second update are waited for at once: ranks report then what they sent.
      if (shards) QCOMPARE(calls(ranks->front(), CollectivePurpose::parameters, 4), buckets);
    }
  }

  void evaluation_and_checkpoints_wait_for_the_parameters() {
    const Settings both{"model.kind=mlp",
                        "model.hidden=[8]",
                        "parallel.bucket_mb=0.0001",
                        "data.validation_fraction=0.2",
                        "evaluate.every_updates=1",
                        "checkpoint.every_updates=2",
                        "run.record_weights=true"};
    std::vector<std::vector<double>> losses;
    std::vector<std::string> weights;
    for (const char* gather : {"false", "true"}) {
      const RunFolder folder;
      TrainingScript script = script_of(sharded + both, {QString("parallel.overlap_param_gather=%1").arg(gather)});
      script.run_dir = folder;
      script.stop_request = 4;
      const auto stopped = trained(script);
      QVERIFY2(stopped.front().outcome == "stopped", stopped.front().text().c_str());
      script.stop_request = 0;
      script.resume_from = "newest";
      const auto ended = trained(script);
      weights.push_back(weights_of(ended));
      losses.emplace_back();
      for (const auto* run : {&stopped, &ended}) {
        for (const auto& each : run->front().all<Evaluation>()) losses.back().push_back(each.loss);
        for (const auto& each : run->front().all<Update>())
          losses.back().insert(losses.back().end(), each.weights.begin(), each.weights.end());
      }
    }
    QCOMPARE(weights[1], weights[0]);
    QCOMPARE(losses[1], losses[0]);
  }

  /// Each parameter's gradient is summed over the micro-steps in their order, whatever a stage does in between.
  void the_order_in_a_pipeline_changes_nothing_data() {
    QTest::addColumn<Settings>("layout");
    QTest::newRow("all forward first") << stages + Settings{"parallel.pipeline_order=all-forward"};
    QTest::newRow("interleaved") << chunks;
    QTest::newRow("interleaved in groups of three")
        << chunks + Settings{"parallel.pipeline_group=3", "accumulation.steps=5"};
    QTest::newRow("chunks, all forward first") << chunks + Settings{"parallel.pipeline_order=all-forward"};
    QTest::newRow("four stages") << Settings{"parallel.data=2", "parallel.pipeline=4"};
  }
  void the_order_in_a_pipeline_changes_nothing() {
    QFETCH(Settings, layout);
    const bool five = layout.contains("accumulation.steps=5");
    const std::string expected = weights_of(script_of(stages, five ? Settings{"accumulation.steps=5"} : Settings()));
    QCOMPARE(expected.size(), std::size_t{64});
    QCOMPARE(weights_of(script_of(layout)), expected);
  }

  /// Shared memory adds in the order of the ranks, in buckets of any size, and a sum of two has one order. Moments and
  /// masters are compared as well, as each run's last checkpoint has them. Where the update is clipped, each owner's
  /// squares are added up first, so the factor has another last bit.
  void sharded_replicas_update_as_whole_ones_data() {
    QTest::addColumn<Settings>("layout");
    QTest::addColumn<double>("tolerance");
    const Settings four{"parallel.data=4"}, gloo{"parallel.backend=gloo"}, wide{"model.dtype=float64"};
    const Settings half{"model.dtype=bfloat16"}, clipped{"optimizer.clip_norm=0.05"};
    QTest::newRow("two") << one_stage << 0.0;
    QTest::newRow("two of two stages") << stages << 0.0;
    QTest::newRow("four") << four << 0.0;
    QTest::newRow("two, float64") << one_stage + wide << 0.0;
    QTest::newRow("four, float64") << four + wide << 0.0;
    QTest::newRow("two over Gloo") << one_stage + gloo << 0.0;
    QTest::newRow("two over Gloo, float64") << one_stage + gloo + wide << 0.0;
    QTest::newRow("two with masters") << one_stage + half << 0.0;
    QTest::newRow("two of two stages with masters") << stages + half << 0.0;
    QTest::newRow("two, clipped") << one_stage + clipped << 1e-6;
    QTest::newRow("two over Gloo, clipped") << one_stage + gloo + clipped << 1e-6;
    QTest::newRow("four, clipped") << four + clipped << 1e-6;
  }
  void sharded_replicas_update_as_whole_ones() {
    QFETCH(Settings, layout);
    QFETCH(double, tolerance);
    const RunFolder whole_dir, sharded_dir;
    TrainingScript whole = script_of(layout), sharded = script_of(layout, {"parallel.zero=1"});
    whole.run_dir = whole_dir;
    sharded.run_dir = sharded_dir;
    const auto expected = trained(whole), found = trained(sharded);
    QCOMPARE(weights_of(expected).size(), std::size_t{64});
    QCOMPARE(weights_of(found).size(), std::size_t{64});
    if (tolerance == 0.0) QCOMPARE(weights_of(found), weights_of(expected));
    for (const Update& update : expected.front().all<Update>())
      QVERIFY(layout.filter("clip_norm").isEmpty() || update.grad_norm > 0.05);
    const auto state = gathered_state(std::string(whole_dir)), other = gathered_state(std::string(sharded_dir));
    QVERIFY(state.contains("optimizer.exp_avg_sq.token_embedding.weight"));
    QCOMPARE(state.contains("optimizer.master.token_embedding.weight"), layout.contains("model.dtype=bfloat16"));
    if (tolerance == 0.0) {
      QCOMPARE(QString::fromStdString(first_difference(state, other)), QString());
      return;
    }
    for (const auto& [name, tensor] : state) {
      const at::Tensor one = tensor.to(at::kDouble), two = other.at(name).to(at::kDouble);
      const double apart = (one - two).norm().item<double>();
      QVERIFY2(apart <= tolerance * one.norm().item<double>(), (name + " " + std::to_string(apart)).c_str());
    }
  }

  void a_loss_scale_of_a_power_of_two_changes_nothing() {
    for (const Settings& layout : {Settings{}, sharded_stages, one_stage + Settings{"parallel.tensor=2"}}) {
      const std::string expected = weights_of(script_of(layout));
      QCOMPARE(expected.size(), std::size_t{64});
      QCOMPARE(weights_of(script_of(layout, {"optimizer.loss_scale=1024"})), expected);
    }
  }

  /// Micro-step 7 of replica 1 overflows, in the second update. Nobody takes that update, and the rate that it would
  /// have used is used by the next one.
  void an_overflow_on_one_replica_is_skipped_by_all_ranks() {
    for (const Settings& layout : {sharded_stages, one_stage + Settings{"parallel.tensor=2"}}) {
      const auto ranks = trained(script_of(layout, {"optimizer.loss_scale=1024", "teaching.overflow_at=[7]",
                                                    "teaching.overflow_rank=1", "schedule.kind=linear"}));
      QCOMPARE(weights_of(ranks).size(), std::size_t{64});
      const auto updates = ranks.front().all<Update>();
      QCOMPARE(updates.size(), std::size_t{5});
      for (std::size_t i = 0; i < updates.size(); ++i)
        QCOMPARE(updates[i].outcome == StepOutcome::skipped_overflow, i == 1);
      QCOMPARE(updates[2].lr, updates[1].lr);
      QVERIFY(updates[3].lr < updates[2].lr);
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestDividedUpdates, {{"train", train_body}})

}  // namespace test_divided_updates
#include "test_divided_updates.moc"

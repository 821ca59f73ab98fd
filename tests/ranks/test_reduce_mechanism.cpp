// SPDX-License-Identifier: Apache-2.0
// K8's mechanisms in a run of real ranks: when and in how many pieces gradients are reduced is theirs, the numbers are
// not.
#include <QTest>
#include <algorithm>
#include <map>

#include "support/table.h"
#include "support/training_body.h"

namespace test_reduce_mechanism {

using namespace accrue;
using namespace accrue::test;

namespace {

/// Some twenty parameters in several buckets; 22 micro-batches an epoch, so that windows of three leave one over.
std::string several_buckets(int world, const std::string& accumulation, const std::string& rest = {}) {
  return "accrue = 1\n"
         "[model]\nkind = \"gpt\"\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 8\nvocabulary = 32\n"
         "[data]\nkind = \"synthetic\"\nsamples = " +
         std::to_string(22 * 2 * world) +
         "\n[optimizer]\nkind = \"adamw\"\nlr = 3e-3\nclip_norm = 1.0\n"
         "[accumulation]\nsteps = 3\nmicro_batch = 2\n" +
         accumulation + "\n[parallel]\nbucket_mb = 0.004\ndata = " + std::to_string(world) +
         "\n[run]\nepochs = 1\nseed = 7\n" + rest;
}

std::string by(const char* mechanism) {
  return "reduce_mechanism = \"" + std::string(mechanism) + "\"\n";
}

/// A reduction of gradients, and the micro-step that it belongs to.
struct Reduction {
  std::int64_t micro_step = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

std::vector<Reduction> reductions(const TrainedRank& rank) {
  std::vector<Reduction> found;
  for (const Sync& sync : rank.all<Sync>())
    for (std::size_t i = 0; i < sync.op.size(); ++i)
      if (reduces_gradients(sync.purpose[i], sync.axis[i], sync.op[i]))
        found.push_back({sync.micro_step[i], sync.begin_ns[i], sync.end_ns[i]});
  return found;
}

/// When each micro-step's backward ended.
std::map<std::int64_t, std::int64_t> backward_ends(const TrainedRank& rank) {
  std::map<std::int64_t, std::int64_t> ends;
  for (const Operations& operations : rank.all<Operations>())
    for (std::size_t i = 0; i < operations.kind.size(); ++i)
      if (operations.kind[i] == ComputeKind::backward) ends[operations.micro_step[i]] = operations.end_ns[i];
  return ends;
}

/// Reductions that began before the backward they belong to ended.
std::ptrdiff_t overlapped(const TrainedRank& rank) {
  const auto ends = backward_ends(rank);
  return std::ranges::count_if(reductions(rank),
                               [&](const Reduction& each) { return each.begin_ns <= ends.at(each.micro_step); });
}

}  // namespace

class TestReduceMechanism : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_mechanism_ends_at_the_same_bits_data() {
    Rows<int, QString>();
    for (const int world : {1, 2, 4}) {
      for (const char* dialect : {"llm", "colossalai", "accelerate", "mmengine", "accrue"})
        QTest::addRow("%s on %d", dialect, world) << world << QStringLiteral("dialect = \"%1\"\n").arg(dialect);
      QTest::addRow("every micro-step on %d", world) << world << "reduce_when = \"every_micro_step\"\n";
      QTest::addRow("compensated on %d", world) << world << "accumulation_dtype = \"float32_compensated\"\n";
      QTest::addRow("compensated, every micro-step on %d", world)
          << world << "accumulation_dtype = \"float32_compensated\"\nreduce_when = \"every_micro_step\"\n";
      QTest::addRow("clipped in every micro-step on %d", world) << world << "clip_stage = \"every_micro_step\"\n";
    }
  }
  void every_mechanism_ends_at_the_same_bits() {
    const auto [world, accumulation] = current_row<int, QString>();
    const auto trained = [&](const char* mechanism) {
      auto ranks = train({.spec = several_buckets(world, accumulation.toStdString() + by(mechanism))}, world);
      for (const TrainedRank& rank : ranks)
        if (rank.outcome != "finished") qFatal("%s", rank.text().c_str());
      return ranks;
    };
    const auto after = trained("post_backward");
    QVERIFY(after[0].updates >= 7);
    for (const char* mechanism : {"reducer", "handlers"})
      for (const TrainedRank& rank : trained(mechanism)) QCOMPARE(rank.weights_sha256, after[0].weights_sha256);
  }

  void a_rank_without_samples_holds_nobody_up_data() {
    QTest::addColumn<QString>("mode");
    for (const char* mode : {"repeat", "empty_micro_steps", "drop"}) QTest::newRow(mode) << mode;
  }
  void a_rank_without_samples_holds_nobody_up() {
    QFETCH(QString, mode);
    const auto hash = [&](const char* mechanism) {
      // 8 micro-batches of 2 for rank 0 and 7 for rank 1: its last window is shorter by one micro-step.
      const auto ranks = train({.spec = several_buckets(2, by(mechanism)),
                                .set = {"accumulation.uneven_ranks=" + mode.toStdString(), "data.samples=30"}},
                               2);
      for (const TrainedRank& rank : ranks)
        if (rank.outcome != "finished") qFatal("%s", rank.text().c_str());
      if (ranks[0].weights_sha256 != ranks[1].weights_sha256) qFatal("the ranks end apart");
      return ranks[0].weights_sha256;
    };
    const std::string after = hash("post_backward");
    QCOMPARE(hash("reducer"), after);
    QCOMPARE(hash("handlers"), after);
  }

  void only_the_reducer_works_during_backward_and_only_handlers_take_all_at_once() {
    const auto one_window = [](const char* mechanism) {
      return train({.spec = several_buckets(2, by(mechanism))}, 2).front();
    };
    const TrainedRank reducer = one_window("reducer");
    const TrainedRank after = one_window("post_backward");
    const TrainedRank handlers = one_window("handlers");
    QCOMPARE(reductions(handlers).size(), static_cast<std::size_t>(handlers.updates));
    QVERIFY(reductions(after).size() >= 3 * reductions(handlers).size());
    QCOMPARE(reductions(reducer).size(), reductions(after).size());
    QCOMPARE(overlapped(reducer), std::ssize(reductions(reducer)));
    QCOMPARE(overlapped(after), 0);
    QCOMPARE(overlapped(handlers), 0);
  }

  void nothing_is_reduced_during_a_backward_where_the_spec_says_so() {
    const auto rank =
        train({.spec = several_buckets(2, by("reducer")), .set = {"parallel.overlap_grad_reduce=false"}}, 2).front();
    QVERIFY2(rank.outcome == "finished", rank.text().c_str());
    QCOMPARE(overlapped(rank), 0);
  }

  void originals_reduce_during_backward_and_accrue_after_it_data() {
    const Rows<QString, bool> row;
    for (const char* dialect : {"llm", "colossalai", "accelerate", "mmengine"}) row(dialect, dialect, true);
    row("accrue", "accrue", false);
  }
  void originals_reduce_during_backward_and_accrue_after_it() {
    const auto [dialect, during] = current_row<QString, bool>();
    const auto rank = train({.spec = several_buckets(2, "dialect = \"" + dialect.toStdString() + "\"\n")}, 2).front();
    QVERIFY2(rank.outcome == "finished", rank.text().c_str());
    QCOMPARE(overlapped(rank), during ? std::ssize(reductions(rank)) : 0);
  }

  void compute_time_is_without_the_wait_for_others() {
    // A rank that is alone computes all the time; where others share its layers a part of each pass is theirs.
    const auto rank =
        train({.spec = several_buckets(2, by("reducer")), .set = {"parallel.data=1", "parallel.tensor=2"}}, 2).front();
    double backward = 0.0;
    for (const MicroSteps& steps : rank.all<MicroSteps>())
      for (std::size_t i = 0; i < steps.micro_step.size(); ++i)
        backward += static_cast<double>(steps.compute_ns[i]) * 1e-9;
    double waiting = 0.0;
    for (const Sync& sync : rank.all<Sync>())
      for (std::size_t i = 0; i < sync.op.size(); ++i)
        if (sync.axis[i] == to_string(Axis::tensor) && sync.op[i] == "all_reduce")
          waiting += static_cast<double>(sync.end_ns[i] - sync.begin_ns[i]) * 1e-9;
    const Update last = rank.all<Update>().back();
    QVERIFY(waiting > 0.0);
    QVERIFY2(last.compute_seconds >= backward - waiting - 1e-6, rank.text().c_str());
    QVERIFY2(last.compute_seconds < last.seconds - waiting, rank.text().c_str());
  }

  void a_bug_of_the_gallery_reduces_after_backward() {
    const std::string bug = "[teaching]\nbug = \"unused_parameters\"\n";
    const auto rank = train({.spec = several_buckets(2, by("reducer"), bug)}, 2).front();
    QVERIFY2(rank.outcome == "finished", rank.text().c_str());
    QCOMPARE(overlapped(rank), 0);
  }

  void the_survivor_of_a_kill_is_told_of_it_inside_its_backward() {
    const auto ranks = train({.spec = several_buckets(2, by("reducer")), .kill_before = 5}, 2);
    const std::string& said = ranks[0].process.errors;
    QVERIFY2(said.find("ended while the others waited for it in all_reduce") != std::string::npos, said.c_str());
  }
};

ACCRUE_RANK_TEST_MAIN(TestReduceMechanism, {{"train", train_body}})

}  // namespace test_reduce_mechanism
#include "test_reduce_mechanism.moc"

// SPDX-License-Identifier: Apache-2.0
// Copies on several ranks are equal to the bit after every update: those of replicas, those on every tensor rank, and
// both copies of a tied embedding. A run compares them at its end and notices a difference of one bit. The batches of
// tensor ranks are equal too; a run compares the first.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <QTest>
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "accrue/data/data_source.h"
#include "accrue/train/trainer.h"
#include "support/joined_rank.h"
#include "support/quiet_channel.h"
#include "support/rank_checks.h"
#include "support/training_body.h"
#include "train/boundary.h"
#include "train/finish.h"
#include "train/model_axis.h"
#include "train/train_window.h"

namespace test_equal_copies {

using namespace accrue;
using namespace accrue::test;

namespace {

RunOrder order_of(const std::vector<std::string>& set) {
  return order_for({.spec =
                        "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 4\nwidth = 16\nheads = 4\ncontext = 8\n"
                        "vocabulary = 48\n[data]\nkind = \"synthetic\"\nsamples = 400\n[optimizer]\nkind = \"adamw\"\n"
                        "lr = 3e-3\nclip_norm = 0.5\n[accumulation]\nsteps = 4\nmicro_batch = 2\n[parallel]\n"
                        "bucket_mb = 0.004\n[launch]\nthreads_per_rank = 1\n[run]\nupdates = 5\n",
                    .set = set});
}

bool same_on(Communicator& axis, const at::Tensor& own) {
  const at::Tensor mine = own.contiguous();
  std::vector<std::int64_t> sizes = mine.sizes().vec();
  sizes.insert(sizes.begin(), axis.size());
  at::Tensor all = at::empty(sizes, mine.options());
  axis.all_gather(all, mine);
  for (std::int64_t rank = 0; rank < axis.size(); ++rank)
    if (!all[rank].equal(mine)) return false;
  return true;
}

void demand_equal_copies(const Training& training) {
  const Mesh& mesh = training.mesh;
  DEMAND(same_on(mesh.data(), training.model.flat()));
  int on_all = 0;
  for (std::size_t i = 0; i < training.model.shares().size(); ++i) {
    if (training.model.shares()[i].divided) continue;
    DEMAND(same_on(mesh.tensor(), training.model.slice(training.model.flat(), i)));
    ++on_all;
  }
  DEMAND(on_all > 0);
  const auto tied = tied_parameter(training);
  DEMAND(tied.has_value() == (mesh.grid().pipeline > 1 && (mesh.first_stage() || mesh.last_stage())));
  if (tied) DEMAND(same_on(mesh.along(Axis::embedding), training.model.slice(training.model.flat(), *tied)));
}

/// The first number of a parameter, up by the least that it can go.
void disturb(const Training& training, std::size_t i) {
  const at::Tensor number = training.model.slice(training.model.flat(), i).view({-1})[0];
  number.fill_(std::nextafter(number.item<float>(), INFINITY));
}

/// Disturbs a parameter of the last rank at the end: the copy of the "tied" embedding, or one that every tensor rank
/// holds ("whole"). Rank 0 reports the warnings. Arguments: one of these or "none", then settings.
int updates_keep_copies_equal(RankContext& rank) {
  at::set_num_threads(1);
  const std::string& disturbed = rank.arguments.at(0);
  const RunOrder order = order_of({rank.arguments.begin() + 1, rank.arguments.end()});
  QuietChannel channel;
  const JoinedRank joined = join_ranks(rank, order.plan.backend);
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, order.plan.grid));
  Training training(order, mesh, channel, at::kCPU, RunHooks(order.plan, mesh, {}),
                    taken(open_data(order.plan.spec, order.plan.data, order.plan.base_dir)));
  for (int update = 0; update < 5; ++update) {
    const WindowPass pass = train_window(training);
    DEMAND(pass.end == WindowEnd::boundary);
    taken(pass_boundary(training, pass));
    training.await_parameters();
    demand_equal_copies(training);
  }
  if (rank.rank + 1 == rank.world && disturbed != "none") {
    const auto& shares = training.model.shares();
    const auto whole = std::ranges::find(shares, false, &ParameterShare::divided) - shares.begin();
    disturb(training, disturbed == "tied" ? tied_parameter(training).value() : static_cast<std::size_t>(whole));
  }
  taken(write_final_weights(training));
  if (mesh.speaks()) rank.report(channel.warnings());
  return 0;
}

/// Rank 1 takes the samples in another order.
int reads_another_batch(RankContext& rank) {
  const RunOrder order = order_of({"parallel.tensor=2", "run.seed=" + std::to_string(rank.rank + 1)});
  QuietChannel channel;
  const JoinedRank joined = join_ranks(rank, order.plan.backend);
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, order.plan.grid));
  try {
    (void)train_run(order, mesh, rank.rank, channel);
  } catch (const std::invalid_argument& error) {
    rank.report(error.what());
  }
  return 0;
}

const char* const of_all = "the ranks do not hold equal parameters at the end of the run";
const char* const of_tied = "the stages do not hold equal copies of the token embedding at the end of the run";

}  // namespace

class TestEqualCopies : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Gloo's sums of three or four ranks depend on where in a bucket a number lies.
  void copies_are_equal_after_every_update_data() {
    QTest::addColumn<QStringList>("settings");
    const QString stages = "parallel.pipeline=2", tensor = "parallel.tensor=2", rows = "parallel.sequence=true";
    const QString zero = "parallel.zero=1", two = "parallel.data=2", three = "parallel.data=3";
    for (const char* backend : {"shm", "gloo"}) {
      const auto row = [&](const char* name, QStringList settings) {
        QTest::addRow("%s, %s", name, backend) << (settings << QString("parallel.backend=%1").arg(backend));
      };
      row("two stages", {stages});
      row("four stages", {"parallel.pipeline=4"});
      row("two stages of two ranks", {stages, tensor});
      row("three sharded replicas of two stages", {stages, three, zero});
      row("three replicas of two ranks by rows", {tensor, rows, three});
      row("four ranks", {"parallel.tensor=4"});
      row("two sharded replicas of two stages of two ranks by rows", {stages, tensor, rows, two, zero});
    }
  }
  void copies_are_equal_after_every_update() {
    QFETCH(QStringList, settings);
    QCOMPARE(warnings("none", settings), QString());
  }

  /// On the last rank, which is neither the first replica's nor the first tensor rank's.
  void a_copy_that_differs_by_one_bit_is_warned_of_data() {
    QTest::addColumn<QString>("disturbed");
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("warning");
    const QString stages = "parallel.pipeline=2", tensor = "parallel.tensor=2", data = "parallel.data=2";
    QTest::newRow("a tied copy") << "tied" << QStringList{stages} << of_tied;
    QTest::newRow("a tied copy of a tensor rank") << "tied" << QStringList{stages, tensor} << of_tied;
    QTest::newRow("a tied copy of a replica") << "tied" << QStringList{stages, data} << of_tied;
    QTest::newRow("of a tensor rank") << "whole" << QStringList{tensor} << of_all;
    QTest::newRow("of a tensor rank of the last stage") << "whole" << QStringList{tensor, stages} << of_all;
    QTest::newRow("of a tensor rank of a replica") << "whole" << QStringList{tensor, data} << of_all;
    QTest::newRow("of a tensor rank that never reduces")
        << "whole" << QStringList{tensor, "accumulation.reduce_when=never"} << of_all;
    QTest::newRow("of a replica") << "whole" << QStringList{data} << of_all;
  }
  void a_copy_that_differs_by_one_bit_is_warned_of() {
    QFETCH(QString, disturbed);
    QFETCH(QStringList, settings);
    QFETCH(QString, warning);
    QCOMPARE(warnings(disturbed, settings), warning + "\n");
  }

  /// Before the first update, as each tensor rank reads for itself.
  void tensor_ranks_that_read_other_samples_end_the_run() {
    const auto outcomes = RankGroup("reads_another_batch", 2).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const RankOutcome& each : outcomes) {
      QCOMPARE(each.lines.size(), std::size_t{1});
      QCOMPARE(QString::fromStdString(each.lines.front()),
               QString("rank 1 (data 0, stage 0, tensor 1) has another batch than rank 0 (data 0, stage 0, "
                       "tensor 0): tensor-parallel ranks read for themselves, and must get the same batch"));
    }
  }

 private:
  /// Returns the first rank's warnings, or the error.
  static QString warnings(const QString& disturbed, const QStringList& settings) {
    std::vector<std::string> words{disturbed.toStdString()};
    for (const QString& each : settings) words.push_back(each.toStdString());
    const auto world = order_of({words.begin() + 1, words.end()}).plan.grid.world();
    RankGroup ranks("updates_keep_copies_equal", static_cast<int>(world), {.arguments = words});
    const auto outcomes = ranks.finish(60s);
    QString said;
    for (const RankOutcome& each : outcomes)
      if (!each.ok()) return QString::fromStdString(each.text());
    for (const std::string& line : outcomes.front().lines)
      if (!line.empty()) said += QString::fromStdString(line) + "\n";
    return said;
  }
};

ACCRUE_RANK_TEST_MAIN(TestEqualCopies, {RANK_BODY(updates_keep_copies_equal), RANK_BODY(reads_another_batch)})

}  // namespace test_equal_copies
#include "test_equal_copies.moc"

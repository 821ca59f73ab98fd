// SPDX-License-Identifier: Apache-2.0
// The best checkpoint, and the end of a run whose validation loss no longer improves: equal on all ranks, in any
// layout, and after any interruption.
#include <QTest>
#include <filesystem>
#include <set>

#include "support/inline_data.h"
#include "support/table.h"
#include "support/training_body.h"

namespace test_best_checkpoint {

using namespace accrue;
using namespace accrue::test;

namespace {

/// One weight w learns y = 2 from 0 and is validated on y = 1. It is 2 (1 - 0.9^k) after update k, so (w - 1)^2 is
/// lowest after update 7.
std::string valley(int world, const std::string& checkpoint = {}) {
  return "accrue = 1\n[model]\nkind = \"linear\"\nbias = false\ninit = \"zeros\"\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nshuffle = false\nvalidation_fraction = 0.5\nx = " +
         column(8, [](int) { return 1; }) + "\ny = " + column(8, [](int i) { return i > 4 ? 1 : 2; }) +
         "\n[optimizer]\nkind = \"sgd\"\nlr = 0.05\n[accumulation]\nsteps = 2\nmicro_batch = " +
         std::to_string(2 / world) + "\n[parallel]\ndata = " + std::to_string(world) +
         "\n[run]\nupdates = 30\nstop_when = \"validation loss\"\n[evaluate]\nevery_updates = 1\n"
         "[checkpoint]\nbest = \"validation loss\"\n" +
         checkpoint;
}

constexpr const char* why =
    "Finished after update 10 of 30: the validation loss has not improved for 3 evaluations; the best was 0.001884 at "
    "update 7";

std::set<std::string> saved(const RunFolder& dir) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "checkpoints"))
    names.insert(entry.path().filename().string());
  return names;
}

void verify_end(const std::vector<TrainedRank>& ranks, const std::string& weights) {
  VERIFY_FINISHED(ranks);
  for (const TrainedRank& rank : ranks) {
    QCOMPARE(rank.updates, 10);
    QCOMPARE(rank.weights_sha256, weights);
  }
  QCOMPARE(ranks[0].all<RunFinished>().back().reason, std::string(why));
}

}  // namespace

class TestBestCheckpoint : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { whole_ = train({.spec = valley(1)}, 1).front().weights_sha256; }

  void a_run_ends_when_its_patience_does_and_keeps_the_best_data() {
    const Rows<int, std::string, std::set<std::string>> row;  // ranks
    row("one rank", 1, "", {"step-10", "step-7"});
    row("two ranks", 2, "", {"step-10", "step-7"});
    row("beside the newest", 2, "every_updates = 1\n", {"step-10", "step-7", "step-9"});
  }
  void a_run_ends_when_its_patience_does_and_keeps_the_best() {
    const auto [world, checkpoint, names] = current_row<int, std::string, std::set<std::string>>();
    const RunFolder dir;
    const auto trained = train({.spec = valley(world, checkpoint), .run_dir = dir}, world);
    verify_end(trained, whole_);
    QCOMPARE(saved(dir), names);
    for (const CheckpointDone& done : trained[0].all<CheckpointDone>())
      QCOMPARE(done.best_loss.has_value(), done.update <= 7);
    QVERIFY(std::filesystem::exists(dir / "final/model.safetensors"));
  }

  /// A stop saves at once, and leaves the evaluation to the resumed run.
  void a_resumed_run_ends_where_the_uninterrupted_one_does_data() {
    const Rows<int, int> row;  // stopped, or killed, at this update
    for (const int update : {3, 7, 9, 10}) row(("stopped at " + std::to_string(update)).c_str(), update, 0);
    for (const int update : {7, 9}) row(("killed at " + std::to_string(update)).c_str(), 0, update);
  }
  void a_resumed_run_ends_where_the_uninterrupted_one_does() {
    const auto [stopped, killed] = current_row<int, int>();
    const RunFolder dir;
    const std::string spec = valley(2, "every_updates = 2\n");
    const auto first = train({.spec = spec, .run_dir = dir, .stop_request = stopped, .die_at_update = killed}, 2);
    const auto resumed = train({.spec = spec, .run_dir = dir, .resume_from = "newest"}, 2);
    verify_end(resumed, whole_);
    QVERIFY(saved(dir).contains("step-7"));
    if (stopped == 0) return;
    QCOMPARE(first[0].all<Evaluation>().size(), std::size_t(stopped - 1));
    QCOMPARE(resumed[0].all<Evaluation>().front().update, stopped);
    QCOMPARE(resumed[0].all<Evaluation>().size(), std::size_t(11 - stopped));
  }

  void a_failed_save_of_a_better_one_leaves_the_best_that_there_is() {
    const RunFolder dir;
    VERIFY_FINISHED(train({.spec = valley(1, "every_updates = 1\n"), .run_dir = dir, .full_disk_update = 7}, 1));
    QCOMPARE(saved(dir), (std::set<std::string>{"step-10", "step-6", "step-9"}));
  }

  void a_branch_counts_its_own_evaluations() {
    const RunFolder dir;
    train({.spec = valley(1, "every_updates = 1\n"), .run_dir = dir}, 1);
    const auto branch = train({.spec = valley(1), .run_dir = dir, .resume_from = "step-9", .branched_at = 9}, 1);
    VERIFY_FINISHED(branch);
    QCOMPARE(branch[0].updates, 13);  // the first is the best there, and three follow
  }

  void what_a_parent_kept_a_branch_does_not() {
    const RunFolder dir;
    train({.spec = valley(1), .run_dir = dir, .stop_request = 8}, 1);
    std::filesystem::remove_all(dir / "checkpoints/step-8");
    train({.spec = valley(1),
           .set = {"checkpoint.best=none", "checkpoint.every_updates=1"},
           .run_dir = dir,
           .resume_from = "step-7",
           .branched_at = 7},
          1);
    QCOMPARE(saved(dir), (std::set<std::string>{"step-11", "step-10"}));
  }

  void all_ranks_of_a_layout_end_together_data() {
    const Rows<int, std::string> row;
    row("stages", 2, "parallel.pipeline=2");
    row("tensor-parallel ranks", 2, "parallel.tensor=2");
    row("ZeRO", 2, "parallel.data=2;parallel.zero=1");
    row("stages of tensor-parallel ranks", 4, "parallel.tensor=2;parallel.pipeline=2");
  }
  void all_ranks_of_a_layout_end_together() {
    const auto [world, layout] = current_row<int, std::string>();
    std::vector<std::string> set;
    for (const QString& each : QString::fromStdString(layout).split(';')) set.push_back(each.toStdString());
    const RunFolder dir;
    const std::string spec =
        "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 16\nvocabulary = 48\n"
        "[data]\nkind = \"synthetic\"\nsamples = 128\nvalidation_fraction = 0.25\n[accumulation]\nsteps = 2\n"
        "micro_batch = 2\n[run]\nupdates = 20\nstop_when = \"validation loss\"\npatience = 2\n"
        "least_improvement = 100\n[evaluate]\nevery_updates = 2\n[checkpoint]\nbest = \"validation loss\"\n";
    const auto trained = train({.spec = spec, .set = set, .run_dir = dir}, world);
    VERIFY_FINISHED(trained);
    for (const TrainedRank& rank : trained) QCOMPARE(rank.updates, 6);
    const RunFolder other;
    train({.spec = spec, .set = set, .run_dir = other, .stop_request = 4}, world);
    const auto resumed = train({.spec = spec, .set = set, .run_dir = other, .resume_from = "newest"}, world);
    VERIFY_FINISHED(resumed);
    QCOMPARE(resumed[0].updates, 6);
    QCOMPARE(resumed[0].weights_sha256, trained[0].weights_sha256);
    QCOMPARE(resumed[0].all<Evaluation>().front().loss, trained[0].all<Evaluation>()[1].loss);
    const auto evaluations = trained[0].all<Evaluation>();
    const auto best = std::ranges::min(evaluations, {}, &Evaluation::loss);
    const auto kept = trained[0].all<CheckpointDone>();
    const auto last =
        std::ranges::find_if(kept.rbegin(), kept.rend(), [](const auto& each) { return each.best_loss.has_value(); });
    QCOMPARE(last->update, best.update);
    QCOMPARE(*last->best_loss, best.loss);
  }

 private:
  std::string whole_;
};

ACCRUE_RANK_TEST_MAIN(TestBestCheckpoint, {{"train", train_body}})

}  // namespace test_best_checkpoint
#include "test_best_checkpoint.moc"

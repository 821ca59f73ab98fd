// SPDX-License-Identifier: Apache-2.0
// Runs on a blend of three indexed datasets: every layout reads the same samples, and so does a run that was killed in
// the middle of its data.
#include <QTest>
#include <filesystem>

#include "support/indexed_corpus.h"
#include "support/table.h"
#include "support/training_body.h"

namespace test_indexed_runs {

using namespace accrue;
using namespace accrue::test;

namespace {

std::string spec_text(int replicas, int micro_batch, const std::string& rest = {}) {
  return "accrue = 1\n"
         "[model]\nkind = \"gpt\"\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 16\nvocabulary = 64\ndtype = "
         "\"float64\"\n"
         "[data]\nkind = \"indexed\"\npaths = [\"one\", \"two\", \"three\"]\nweights = [5, 3, 2]\nsplit = \"90, 10\"\n"
         "seed = 1234\n" +
         rest +
         "[optimizer]\nkind = \"adamw\"\nlr = 3e-3\n"
         "[accumulation]\nsteps = 2\nmicro_batch = " +
         std::to_string(micro_batch) + "\n[parallel]\ndata = " + std::to_string(replicas) +
         "\n[launch]\nthreads_per_rank = 1\n[run]\nupdates = 40\n[evaluate]\nevery_updates = "
         "20\n[checkpoint]\nevery_updates = 10\nkeep = 3\n";
}

}  // namespace

class TestIndexedRuns : public QObject {
  Q_OBJECT
  RunFolder data_;
  RunFolder whole_dir_;
  std::vector<TrainedRank> whole_;

  std::vector<TrainedRank> run(const std::string& spec, const std::string& dir, int world) const {
    return train({.spec = spec, .base_dir = data_, .run_dir = dir}, world);
  }

 private Q_SLOTS:
  void initTestCase() {
    const std::filesystem::path folder = std::string(data_);
    // Tokens repeat, so that there is something to learn.
    for (const auto& [name, count, first] : {std::tuple("one", 30, 0), {"two", 12, 20}, {"three", 7, 40}}) {
      auto builder = IndexedDatasetBuilder::create(folder / name, DType::uint16).value();
      for (int document = 0; document < count; ++document) {
        std::vector<std::int64_t> tokens;
        for (int i = 0; i < 25 + document; ++i) tokens.push_back(first + (i * i + document) % 20);
        builder.add_item(tokens).value();
        builder.end_document().value();
      }
      builder.finalize().value();
    }
    whole_ = run(spec_text(2, 2), whole_dir_, 2);
    VERIFY_FINISHED(whole_);
  }

  void every_layout_reads_the_same_samples_data() {
    const Rows<int, int, QString> row;
    row("one rank", 1, 4, "");
    row("four replicas", 4, 1, "");
    row("two stages", 1, 4, "pipeline = 2\n");
    row("two tensor ranks", 1, 4, "tensor = 2\n");
    row("two replicas of two tensor ranks", 2, 2, "tensor = 2\n");
  }
  void every_layout_reads_the_same_samples() {
    const auto [replicas, micro_batch, more] = current_row<int, int, QString>();
    std::string spec = spec_text(replicas, micro_batch);
    spec.replace(spec.find("[launch]"), 0, more.toStdString());
    const RunFolder dir;
    const auto ranks = run(spec, dir, replicas * (more.isEmpty() ? 1 : 2));
    VERIFY_FINISHED(ranks);
    const auto expected = whole_[0].all<Update>(), updates = ranks[0].all<Update>();
    QCOMPARE(updates.size(), expected.size());
    for (std::size_t i = 0; i < updates.size(); ++i) {
      QVERIFY2(std::abs(updates[i].loss - expected[i].loss) < 1e-10 * expected[i].loss,
               qPrintable(QString::number(updates[i].loss - expected[i].loss)));
      QCOMPARE(updates[i].samples, expected[i].samples);
    }
    const auto evaluated = whole_[0].all<Evaluation>();
    QCOMPARE(evaluated.size(), std::size_t{2});
  }

  void a_run_killed_amid_its_data_reads_on_where_it_was() {
    const RunFolder dir;
    const auto killed = train({.spec = spec_text(2, 2), .base_dir = data_, .run_dir = dir, .die_at_update = 26}, 2);
    QCOMPARE(killed[0].process.exit_status, 9);
    const auto resumed =
        train({.spec = spec_text(2, 2), .base_dir = data_, .run_dir = dir, .resume_from = "newest"}, 2);
    VERIFY_FINISHED(resumed);
    QCOMPARE(resumed[0].all<Update>().front().update, 21);
    QCOMPARE(resumed[0].weights_sha256, whole_[0].weights_sha256);
    const auto expected = whole_[0].all<Update>();
    for (const Update& update : resumed[0].all<Update>())
      QCOMPARE(update.loss, expected[static_cast<std::size_t>(update.update - 1)].loss);
  }

  void consumed_samples_go_on_where_another_run_ended_data() {
    const Rows<QString> row;
    row("single", "");
    row("cyclic", "sampler = \"cyclic\"\n");
    row("cyclic, in turns", "sampler = \"cyclic\"\nsharding = false\n");
  }
  void consumed_samples_go_on_where_another_run_ended() {
    const auto [order] = current_row<QString>();
    // 20 updates of 8 samples, then the same samples as updates 21 to 40 of the whole run: the first loss differs in
    // the weights alone, so both halves are compared by what they read: tokens of the first micro-steps are the same
    // when the weights are, at a rate of nothing.
    const auto still = [](std::string spec) {
      spec.replace(spec.find("lr = 3e-3"), 9, "lr = 1e-300");
      return spec;
    };
    const RunFolder first, second;
    const auto whole = run(still(spec_text(2, 2, order.toStdString())), first, 2);
    VERIFY_FINISHED(whole);
    std::string rest = still(spec_text(2, 2, order.toStdString() + "consumed_samples = [160]\n"));
    rest.replace(rest.find("updates = 40"), 12, "updates = 20");
    const auto later = run(rest, second, 2);
    VERIFY_FINISHED(later);
    const auto all = whole[0].all<Update>(), half = later[0].all<Update>();
    QCOMPARE(half.size(), std::size_t{20});
    for (std::size_t i = 0; i < half.size(); ++i) QVERIFY(std::abs(half[i].loss - all[i + 20].loss) < 1e-12);
    QVERIFY(std::abs(half[0].loss - all[0].loss) > 1e-6);
  }

  // 320 samples of the run in 40 updates; the blend has a few more, so an epoch holds most of them, in another order.
  void a_cyclic_run_goes_on_in_mid_epoch() {
    const std::string cyclic = "sampler = \"cyclic\"\n";
    const RunFolder straight, broken;
    const auto whole = run(spec_text(2, 2, cyclic), straight, 2);
    VERIFY_FINISHED(whole);
    QVERIFY(whole[0].weights_sha256 != whole_[0].weights_sha256);
    const auto killed =
        train({.spec = spec_text(2, 2, cyclic), .base_dir = data_, .run_dir = broken, .die_at_update = 26}, 2);
    QCOMPARE(killed[0].process.exit_status, 9);
    const auto resumed =
        train({.spec = spec_text(2, 2, cyclic), .base_dir = data_, .run_dir = broken, .resume_from = "newest"}, 2);
    VERIFY_FINISHED(resumed);
    QCOMPARE(resumed[0].all<Update>().front().update, 21);
    QCOMPARE(resumed[0].weights_sha256, whole[0].weights_sha256);
  }

  void documents_that_reset_train_on_every_layout() {
    const std::string resets =
        "end_of_document = 3\nmask_end_of_document = true\nreset_positions = true\nreset_attention = true\n";
    const RunFolder alone, two;
    const auto one = run(spec_text(1, 4, resets), alone, 1);
    VERIFY_FINISHED(one);
    std::string divided = spec_text(1, 4, resets);
    divided.replace(divided.find("[launch]"), 0, "pipeline = 2\n");
    const auto stages = run(divided, two, 2);
    VERIFY_FINISHED(stages);
    const auto expected = one[0].all<Update>(), updates = stages[0].all<Update>();
    for (std::size_t i = 0; i < updates.size(); ++i) {
      QVERIFY(std::abs(updates[i].loss - expected[i].loss) < 1e-10);
      QCOMPARE(updates[i].tokens, expected[i].tokens);
    }
    QVERIFY(expected[0].tokens < whole_[0].all<Update>()[0].tokens);  // what follows an end does not count
  }
};

ACCRUE_RANK_TEST_MAIN(TestIndexedRuns, {{"train", train_body}})

}  // namespace test_indexed_runs
#include "test_indexed_runs.moc"

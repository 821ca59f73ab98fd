// SPDX-License-Identifier: Apache-2.0
// N set while the run runs: the ranks agree on the boundary though one alone was told, everything that walks the plan
// with the record sees what they did, and a run that is killed and continued ends at the same bits.
#include <QTest>
#include <csignal>

#include "support/training_body.h"

namespace test_steps_changed {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr int world = 2;

std::string spec_text(const std::string& accumulation, const std::string& rest = {}) {
  return "accrue = 1\n[model]\nkind = \"mlp\"\nwidth = 8\nlayers = 1\ninputs = 4\noutputs = 2\n"
         "[data]\nkind = \"synthetic\"\nsamples = 60\n"
         "[optimizer]\nkind = \"adamw\"\nlr = 0.01\n[schedule]\nkind = \"cosine\"\n"
         "[accumulation]\nsteps = 4\nmicro_batch = 2\n" +
         accumulation + "\n[parallel]\ndata = 2\n[run]\nepochs = 2\n" + rest;
}

QString boundaries(const TrainedRank& rank) {
  QStringList at;
  for (const Update& update : rank.all<Update>()) at << QString::number(update.micro_step);
  return at.join(' ');
}

QString boundaries(const WindowShape& shape) {
  QStringList at;
  for (const MicroPlan& micro : preview_windows(shape, 1000))
    if (micro.update) at << QString::number(micro.micro_step);
  return at.join(' ');
}

}  // namespace

class TestStepsChanged : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void all_ranks_change_at_the_boundary_that_one_was_told_before_data() {
    QTest::addColumn<QString>("accumulation");
    QTest::newRow("accrue") << "";
    QTest::newRow("accelerate") << "dialect = \"accelerate\"";
    QTest::newRow("counted before it is divided") << "normalize_when = \"eager\"\nnormalizer = \"tokens\"";
    QTest::newRow("tails dropped") << "tail = \"drop_drain\"";
    QTest::newRow("windows that cross epochs") << "tail = \"carry\"";
  }
  void all_ranks_change_at_the_boundary_that_one_was_told_before() {
    QFETCH(QString, accumulation);
    const std::string spec = spec_text(accumulation.toStdString());
    const auto ranks = train({.spec = spec, .steps_request = 2, .requested_steps = 3}, world);
    for (const TrainedRank& rank : ranks) QVERIFY2(rank.outcome == "finished", rank.text().c_str());
    const auto changes = ranks[0].all<StepsChanged>();
    QCOMPARE(changes.size(), std::size_t{1});
    QCOMPARE(changes[0].update, 2);
    QCOMPARE(changes[0].steps, 3);
    WindowShape shape = order_for({.spec = spec}).plan.window;
    shape.set_steps_after(2, 3);
    QCOMPARE(boundaries(ranks[0]), boundaries(shape));
    // One run of that plan from its start ends at the same weights: nothing but N was changed.
    const auto known = train({.spec = spec, .steps_set = {{2, 3}}}, world);
    QVERIFY2(known[0].outcome == "finished", known[0].text().c_str());
    QCOMPARE(known[0].weights_sha256, ranks[0].weights_sha256);
    QCOMPARE(known[0].all<StepsChanged>(), (std::vector<StepsChanged>{{2, changes[0].micro_step, 3, true}}));
  }

  void a_new_request_takes_the_place_of_what_a_continued_run_would_repeat() {
    const auto ranks =
        train({.spec = spec_text(""), .steps_request = 2, .requested_steps = 3, .steps_set = {{1, 2}, {5, 1}}}, world);
    QVERIFY2(ranks[0].outcome == "finished", ranks[0].text().c_str());
    WindowShape shape = order_for({.spec = spec_text("")}).plan.window;
    shape.steps_set = {{1, 2}, {2, 3}};
    QCOMPARE(boundaries(ranks[0]), boundaries(shape));
    const auto changes = ranks[0].all<StepsChanged>();
    QCOMPARE(changes.size(), std::size_t{2});
    QVERIFY(changes[0].repeated && !changes[1].repeated);
  }

  void a_kill_before_or_after_the_change_ends_at_the_same_bits() {
    const std::string spec = spec_text("", "[checkpoint]\nevery_micro_steps = 1\nkeep = 2\n");
    const auto whole = train({.spec = spec, .steps_request = 2, .requested_steps = 3}, world);
    QVERIFY2(whole[0].outcome == "finished", whole[0].text().c_str());
    for (const std::int64_t before : {7, 9, 10, 13}) {  // the change comes after micro-step 8
      const RunFolder dir;
      const auto killed =
          train({.spec = spec, .run_dir = dir, .kill_before = before, .steps_request = 2, .requested_steps = 3}, world);
      QCOMPARE(killed.back().process.signal, SIGKILL);
      const auto resumed = train({.spec = spec, .run_dir = dir, .resume_from = "newest", .steps_set = {{2, 3}}}, world);
      QVERIFY2(resumed[0].outcome == "finished", resumed[0].text().c_str());
      QVERIFY2(resumed[0].weights_sha256 == whole[0].weights_sha256, QByteArray::number(qlonglong(before)));
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestStepsChanged, {{"train", train_body}})

}  // namespace test_steps_changed
#include "test_steps_changed.moc"

// SPDX-License-Identifier: Apache-2.0
// Settings that a branch may change, and places at which it may leave its run.
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/branch.h"
#include "accrue/run/record/compare.h"
#include "support/programs.h"
#include "support/test_program.h"
#include "support/zero_weights.h"

namespace test_branch {

using namespace accrue;

namespace {

RunSpec run_spec() {
  RunSpec spec;
  spec.accumulation.steps = 4;
  spec.accumulation.micro_batch = 4;
  spec.parallel.data = 2;
  return spec;
}

std::vector<Finding> findings_of(const QString& sets) {
  RunSpec changed = run_spec();
  std::vector<Finding> wrong;
  for (const QString& set : sets.split(';')) set_field(changed, set.toStdString(), wrong);
  if (!wrong.empty()) qFatal("%s", wrong.front().text().c_str());
  return check_branch(run_spec(), changed);
}

/// Ten samples; an update has 4 of them, in micro-steps of that many.
RunPlan plan_of_ten_samples(std::int64_t micro_batch, EpochTail tail) {
  RunPlan plan;
  plan.spec.accumulation.micro_batch = micro_batch;
  plan.spec.accumulation.steps = 4 / micro_batch;
  plan.window.knobs.tail = tail;
  plan.window.steps = plan.spec.accumulation.steps;
  plan.window.batches_per_epoch = (10 + micro_batch - 1) / micro_batch;
  plan.window.samples = {micro_batch, 10 % micro_batch == 0 ? micro_batch : 10 % micro_batch};
  plan.window.max_epochs = 4;
  plan.totals = total_windows(plan.window);
  return plan;
}

BranchPoint point_of(const RunPlan& plan, std::int64_t update) {
  BranchPoint point;
  point.checkpoint = {update};
  point.spec = plan.spec;
  point.window = plan.window;
  point.curve = plan.curve;
  return point;
}

test::Outcome run_fake(const QTemporaryDir& place, const QStringList& arguments) {
  return test::Program(test::programPath("accrue-run"), arguments,
                       {"ACCRUE_RANK_PROGRAM=" + test::programPath("accrue-fake-rank"), "ACCRUE_FAKE_RANK=micro_ms=1",
                        "XDG_RUNTIME_DIR=" + place.path()})
      .finish();
}

}  // namespace

class TestBranch : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_branch_is_told_to_set_the_field_of_the_plug_in() {
    const QTemporaryDir temporary;
    const auto path = [&temporary](const char* name) { return temporary.filePath(QLatin1String(name)); };
    const auto accrue_run = [&](const QStringList& arguments) { return run_fake(temporary, arguments); };
    std::ofstream(path("fields.accrue").toStdString())
        << "accrue = 1\n[model]\nkind = \"mlp\"\nhidden = [4]\n[data]\nkind = \"synthetic\"\nsamples = 4096\n"
           "[launch]\nthreads_per_rank = 1\n[checkpoint]\nevery_updates = 2\n[megatron]\ntrain_iters = 5\n";
    const test::Outcome whole = accrue_run({"run", path("fields.accrue"), "--out", path("run")});
    QVERIFY2(whole.status == 0, qPrintable(whole.err));
    const test::Outcome complete = accrue_run({"resume", path("run")});
    QVERIFY2(complete.status == 2 && complete.err.contains("--set megatron.train_iters=..."), qPrintable(complete.err));
    const auto branch = [&](const char* set) {
      return accrue_run({"resume", path("run"), "--out", path("branch"), "--set", QLatin1String(set)});
    };
    const test::Outcome refused = branch("run.updates=8");
    QVERIFY2(refused.status == 2 &&
                 refused.err.contains("run.updates: is set by train_iters of the plug-in to another value: set "
                                      "megatron.train_iters in its place (found 8, expected 5)"),
             qPrintable(refused.err));
    const test::Outcome longer = branch("megatron.train_iters=8");
    QVERIFY2(longer.status == 0, qPrintable(longer.err));
    QVERIFY(accrue_run({"resume", "--help"}).out.contains("megatron.tp_degree"));
  }

  void a_branch_does_not_need_the_weights_that_its_run_started_from() {
    const QTemporaryDir temporary;
    const auto path = [&temporary](const char* name) { return temporary.filePath(QLatin1String(name)); };
    const std::string weights = path("weights").toStdString();
    test::write_zero_weights(weights, R"({"model_type":"gpt2","n_embd":8,"n_head":2,"vocab_size":9,"n_positions":4})");
    std::ofstream(path("tuned.accrue").toStdString())
        << "accrue = 1\n[model]\nkind = \"gpt\"\ncontext = 4\ninit = \"checkpoint\"\nweights = \"" << weights
        << "\"\n[data]\nkind = \"synthetic\"\nsamples = 4096\n[launch]\nthreads_per_rank = 1\n"
           "[checkpoint]\nevery_updates = 2\n[run]\nupdates = 5\n";
    const test::Outcome whole = run_fake(temporary, {"run", path("tuned.accrue"), "--out", path("run")});
    QVERIFY2(whole.status == 0, qPrintable(whole.err));
    std::filesystem::remove_all(weights);
    const test::Outcome longer =
        run_fake(temporary, {"resume", path("run"), "--out", path("branch"), "--set", "run.updates=8"});
    QVERIFY2(longer.status == 0, qPrintable(longer.err));
  }

  void layout_rate_and_length_may_change_data() {
    QTest::addColumn<QString>("sets");
    for (const char* sets :
         {"parallel.tensor=2;parallel.sequence=true", "parallel.pipeline=2;parallel.virtual_pipeline=2",
          "parallel.zero=1", "optimizer.lr=1e-5", "schedule.kind=cosine;schedule.warmup=3", "run.updates=900",
          "checkpoint.every_updates=7", "evaluate.every_updates=5", "launch.threads_per_rank=2", "model.dropout=0.1",
          "parallel.data=1;accumulation.steps=8", "parallel.data=8;accumulation.steps=1",
          "accumulation.micro_batch=8;accumulation.steps=2"})
      QTest::newRow(sets) << QString(sets);
  }
  void layout_rate_and_length_may_change() {
    QFETCH(QString, sets);
    const auto findings = findings_of(sets);
    QVERIFY2(findings.empty(), findings.empty() ? "" : findings.front().text().c_str());
  }

  void what_a_checkpoint_depends_on_may_not_change_data() {
    QTest::addColumn<QString>("sets");
    QTest::addColumn<QString>("key");
    for (const auto& [sets, key] : std::initializer_list<std::pair<const char*, const char*>>{
             {"model.width=64", "model.width"},
             {"model.vocabulary=512", "model.vocabulary"},
             {"model.dtype=float64", "model.dtype"},
             {"data.samples=100", "data.samples"},
             {"run.seed=1", "run.seed"},
             {"optimizer.kind=sgd", "optimizer.kind"},
             {"optimizer.momentum=0.9", "optimizer.momentum"},
             {"optimizer.loss_scale=1024", "optimizer.loss_scale"},
             {"accumulation.dialect=accelerate", "accumulation.dialect"},
             {"accumulation.clip_kind=value", "accumulation.clip_kind"},
             {"teaching.bug=no_division", "teaching.bug"}})
      QTest::newRow(sets) << QString(sets) << QString(key);
  }
  void what_a_checkpoint_depends_on_may_not_change() {
    QFETCH(QString, sets);
    QFETCH(QString, key);
    const auto findings = findings_of(sets);
    QCOMPARE(findings.size(), std::size_t{1});
    QCOMPARE(QString::fromStdString(findings.front().key), key);
    QVERIFY(findings.front().message.starts_with("cannot change in a branch: "));
  }

  void an_update_keeps_its_samples() {
    auto findings = findings_of("parallel.data=4");
    QCOMPARE(findings.size(), std::size_t{1});
    QCOMPARE(findings.front().key, std::string("accumulation.steps"));
    QCOMPARE(findings.front().fix_value, std::optional<std::string>("2"));
    findings = findings_of("parallel.data=3");
    QCOMPARE(findings.size(), std::size_t{1});
    QVERIFY(!findings.front().fix_value);  // 32 samples are no multiple of 12
  }

  void a_schedule_that_an_update_moves_by_the_ranks_keeps_their_number() {
    RunSpec from = run_spec();
    from.accumulation.dialect = Dialect::accelerate;
    RunSpec to = from;
    to.parallel.data = 1;
    to.accumulation.steps = 8;
    const auto findings = check_branch(from, to);
    QCOMPARE(findings.size(), std::size_t{1});
    QCOMPARE(findings.front().key, std::string("parallel.data"));
    to = from;
    to.accumulation.micro_batch = 8;
    to.accumulation.steps = 2;
    QVERIFY(check_branch(from, to).empty());
  }

  // 257 letters padded to a multiple of 128 x T: 384 rows for one rank, 512 for two and for four.
  void the_table_keeps_its_rows() {
    RunSpec from = run_spec();
    from.model.kind = ModelKind::gpt;
    from.model.vocabulary = 257;
    from.model.vocabulary_multiple = 128;
    from.model.vocabulary_padding = VocabularyPadding::megatron;
    RunSpec to = from;
    to.parallel.tensor = 2;
    const auto findings = check_branch(from, to);
    QCOMPARE(findings.size(), std::size_t{1});
    QCOMPARE(findings.front().key, std::string("parallel.tensor"));
    from.parallel.tensor = 4;
    QVERIFY(check_branch(from, to).empty());
  }

  void other_micro_steps_begin_at_the_same_sample_data() {
    QTest::addColumn<EpochTail>("tail");
    QTest::addColumn<qint64>("update");
    QTest::addColumn<QString>("found");
    QTest::newRow("inside the first epoch") << EpochTail::carry << qint64{2} << QString();
    QTest::newRow("after a short batch") << EpochTail::flush << qint64{3} << QString();
    // 2 + 2 across the end of the epoch, at which the batch of 4 has only the last 2
    QTest::newRow("across the end") << EpochTail::carry << qint64{3}
                                    << QString("epoch 2, 0 samples into it, 10 in all");
  }
  void other_micro_steps_begin_at_the_same_sample() {
    QFETCH(EpochTail, tail);
    QFETCH(qint64, update);
    QFETCH(QString, found);
    const auto findings = check_branch(point_of(plan_of_ten_samples(2, tail), update), plan_of_ten_samples(4, tail));
    QCOMPARE(findings.size(), std::size_t(found.isEmpty() ? 0 : 1));
    if (found.isEmpty()) return;
    QVERIFY(has_errors(findings));
    QCOMPARE(QString::fromStdString(findings.front().found), found);
    QCOMPARE(findings.front().expected, std::string("epoch 2, 2 samples into it, 12 in all"));
  }

  // Linear from 0.1 to 0: after 2 of 4 updates 0.05, after 2 of 8 0.075.
  void a_longer_run_that_stretches_its_schedule_is_told_of() {
    RunPlan plan = plan_of_ten_samples(2, EpochTail::flush);
    plan.curve = {.kind = ScheduleKind::linear, .lr = 0.1, .total = 4};
    const BranchPoint from = point_of(plan, 2);
    QVERIFY(check_branch(from, plan).empty());
    plan.curve.total = 8;
    const auto findings = check_branch(from, plan);
    QCOMPARE(findings.size(), std::size_t{1});
    QVERIFY(!has_errors(findings));
    QCOMPARE(findings.front().message,
             std::string("follows the length of the run: at update 2 the rate goes from 0.05 to 0.075"));
    QCOMPARE(findings.front().fix_value, std::optional<std::string>("4"));
    plan.spec.schedule.total = 8;
    QVERIFY(check_branch(from, plan).empty());
  }

  // Branched after update 2, it loses less from its second update on; before it, both are one run.
  void a_branch_is_compared_with_its_past() {
    const QTemporaryDir folder;
    const auto recorded = [&](const char* name, const char* from, std::int64_t first, double shift) {
      const std::filesystem::path dir = std::filesystem::path(folder.path().toStdString()) / name;
      auto writer = RunWriter::create(dir, "accrue = 1\n");
      if (!writer) qFatal("%s", writer.error().text().c_str());
      const auto append = [&](const RunEvent& event) {
        if (const auto done = writer->append(event); !done) qFatal("%s", done.error().text().c_str());
      };
      append({supervisor_rank, 0, 0, RunStarted{.run = name, .branched_from = from}});
      for (std::int64_t update = first; update <= 5; ++update)
        append(
            {0, update, update,
             Update{
                 .update = update, .samples = 4 * update, .loss = 1.0 / double(update) - (update > 3 ? shift : 0.0)}});
      return dir;
    };
    const auto compared = compare_runs({recorded("run-a", "", 1, 0.0), recorded("run-b", "run-a", 3, 0.01)});
    QVERIFY2(compared, compared ? "" : compared.error().text().c_str());
    QCOMPARE(compared->points.size(), std::size_t{5});
    QCOMPARE(compared->points.front().losses.at(1), std::optional<double>(1.0));
    QCOMPARE(compared->distances.at(1).shared_points, 5);
    QVERIFY(compared->distances.at(1).first_divergence);
    QCOMPARE(compared->distances.at(1).first_divergence->at, 16);
  }

  void a_folder_without_a_run_or_a_checkpoint_is_refused() {
    const QTemporaryDir folder;
    const auto nothing = read_branch_point(folder.path().toStdString());
    QVERIFY(!nothing);
    QCOMPARE(nothing.error().code, ErrorCode::config);
    QVERIFY(nothing.error().message.starts_with("is not a run that can be branched from"));
  }
};

ACCRUE_TEST_MAIN(TestBranch)

}  // namespace test_branch
#include "test_branch.moc"

// SPDX-License-Identifier: Apache-2.0
// What a branch may change of the run that it leaves, and where it may leave it.
#include <QtTest>

#include "accrue/run/branch.h"
#include "accrue/run/spec_io.h"

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

}  // namespace

class TestBranch : public QObject {
  Q_OBJECT
 private Q_SLOTS:
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

  void a_folder_without_a_run_or_a_checkpoint_is_refused() {
    const QTemporaryDir folder;
    const auto nothing = read_branch_point(folder.path().toStdString());
    QVERIFY(!nothing);
    QCOMPARE(nothing.error().code, ErrorCode::config);
    QVERIFY(nothing.error().message.starts_with("is not a run that can be branched from"));
  }
};

QTEST_GUILESS_MAIN(TestBranch)
#include "test_branch.moc"

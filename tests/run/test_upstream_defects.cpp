// SPDX-License-Identifier: Apache-2.0
// Differences of the originals for a plan, in numbers.
#include <QTest>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/whatif/upstream_defects.h"
#include "support/test_program.h"

namespace test_upstream_defects {

using namespace accrue;

namespace {

RunPlan plan_of(const QStringList& assignments) {
  RunSpec spec;
  std::vector<Finding> findings;
  for (const QString& assignment : assignments) set_field(spec, assignment.toStdString(), findings);
  HostFacts host;
  host.cores = 4;
  host.memory_bytes = std::int64_t{64} << 30;
  host.backends = {"shm"};
  Preflight checked = preflight_files(spec, host, ".");
  for (const Finding& finding : checked.findings) findings.push_back(finding);
  for (const Finding& finding : findings)
    if (finding.severity == Severity::error) qWarning("%s", finding.text().c_str());
  return checked.plan.value();
}

const UpstreamDefect& defect(const QString& id) {
  for (const UpstreamDefect& candidate : upstream_defects())
    if (candidate.id == id.toStdString()) return candidate;
  qFatal("no such defect");
}

}  // namespace

class TestUpstreamDefects : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void effects_have_the_plans_numbers_data() {
    QTest::addColumn<QString>("id");
    QTest::addColumn<QStringList>("set");
    QTest::addColumn<bool>("concerns");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* id, QStringList set, bool concerns, const char* said) {
      QTest::newRow(qPrintable(QString(id) + " " + said)) << id << set << concerns << said;
    };
    row("U1", {}, true, "all 4 blocks whole, in place of nothing");
    row("U1", {"megatron.recompute_activations=true"}, true, "in place of their attention");
    row("U1", {"parallel.recompute=full"}, false, "whole blocks are recomputed here, too");
    row("U2", {"run.updates=50", "accumulation.steps=8"}, true, "400 updates in place of 50, as N is 8");
    row("U2", {"accumulation.steps=1"}, false, "one micro-step");
    row("U3", {"megatron.train_samples=640"}, true, "train_samples = 640");
    row("U3", {}, false, "no length");
    row("U4", {"megatron.seq_length=64"}, true, "length 64");
    row("U6", {"megatron.return_logits=true", "megatron.num_micro_batches=4"}, true, "4 micro-batches of logits");
    row("U9", {"data.samples=40", "accumulation.steps=4"}, true, "The last 2 micro-batches of an epoch");
    row("U12", {"model.label_smoothing=0.1", "parallel.tensor=2"}, true, "over 128 classes in place of 256");
    row("U12", {"model.label_smoothing=0.1"}, false, "one rank has the whole");
    row("U12", {"parallel.tensor=2"}, false, "not smoothed");
    row("U15", {"model.vocabulary=250", "model.vocabulary_multiple=128"}, true, "256 classes in place of 250");
    row("U15", {"model.vocabulary=257"}, true, "384 classes in place of 257");
    row("U15", {}, false, "256 rows need no padding");
    row("U16", {"optimizer.kind=adam", "optimizer.weight_decay=0.1"}, true, "decay of 0.1");
    row("U16", {}, false, "not Adam");
    row("U18", {}, false, "unless the run is resumed");
    row("arguments", {}, false, "has none of them");
    row("arguments", {"megatron.other_megatron_args=[\"num_workers=0\", \"seed=3\", \"context_parallel_size=1\"]"},
        false, "num_workers, context_parallel_size.");
    row("buckets", {"parallel.data=2"}, true, "would have 40000000 numbers, and here there ");
    row("buckets", {"parallel.data=64", "accumulation.micro_batch=1"}, true, "would have 64000000 numbers");
    row("buckets", {}, false, "one replica");
    row("random_streams", {"model.dropout=0.1"}, true, "10 % of them");
    row("random_streams", {}, false, "without dropout");
    row("batch_broadcast", {"parallel.tensor=4", "accumulation.steps=8"}, true, "Each of 8 micro-steps");
    row("batch_broadcast", {}, false, "one tensor rank");
    // By hand: a micro-batch of 4 x 128 x 128 numbers, 34 + 5 x 4 x 128 / 128 bytes each.
    row("activations", {"accumulation.micro_batch=4"}, true, "3538944 bytes");
    row("activations", {"model.kind=bert"}, false, "of a GPT");
    row("zero_bytes", {"parallel.data=2", "parallel.zero=1"}, true, "12 bytes in place of 14");
    row("zero_bytes", {"parallel.data=2", "parallel.zero=1", "model.dtype=bfloat16"}, false, "takes 12 bytes there");
    // By hand: 2 of the parameter, 4 of its gradient, 12 / 2 of the optimizer, and Megatron-LM's 4 + 16 / 2.
    const QStringList half{"parallel.data=2", "parallel.zero=1", "model.dtype=float16"};
    row("zero_bytes", half, false, "a parameter takes 12 bytes there, too");
    row("zero_bytes", half + QStringList{"accumulation.accumulation_dtype=parameter"}, true, "12 bytes in place of 10");
    row("zero_bytes", half + QStringList{"accumulation.accumulation_dtype=float32_compensated"}, true,
        "12 bytes in place of 16");
    row("zero_bytes", {}, false, "not sharded");
    row("narrow_no_sync", {"accumulation.dialect=llm", "parallel.data=2", "accumulation.steps=4"}, true,
        "reduce 4 times in place of once");
    row("narrow_no_sync", {}, false, "the dialect is accrue");
    row("clip_partial_sums", {"accumulation.dialect=colossalai", "optimizer.clip_norm=1.0"}, true, "clipped 4 times");
  }
  void effects_have_the_plans_numbers() {
    QFETCH(QString, id);
    QFETCH(QStringList, set);
    QFETCH(bool, concerns);
    QFETCH(QString, said);
    const DefectEffect effect = effect_of(defect(id), plan_of(set));
    QCOMPARE(effect.concerns, concerns);
    QVERIFY2(effect.sentence.find(said.toStdString()) != std::string::npos, effect.sentence.c_str());
  }

  void every_replay_is_listed_once() {
    for (int i = 0; i <= static_cast<int>(Replay::narrow_no_sync); ++i) {
      int count = 0;
      for (const UpstreamDefect& candidate : upstream_defects())
        count += candidate.id == to_name(static_cast<Replay>(i)) ? 1 : 0;
      QCOMPARE(count, 1);
    }
  }

  // A setting that is offered makes the plan do as upstream, and its opposite undoes it.
  void settings_replay() {
    const UpstreamDefect& narrow = defect("narrow_no_sync");
    RunSpec spec;
    std::vector<Finding> findings;
    const QStringList base{"accumulation.dialect=llm", "parallel.data=2"};
    set_field(spec, "accumulation.dialect=llm", findings);
    const QString on = QString::fromStdString(replay_setting(narrow, spec, true));
    QCOMPARE(on, QString("accumulation.replay=[\"narrow_no_sync\"]"));
    const RunPlan plan = plan_of(base + QStringList{on});
    QVERIFY(effect_of(narrow, plan).replayed);
    QCOMPARE(replay_setting(narrow, plan.spec, false), std::string("accumulation.replay=[]"));
    QVERIFY(!effect_of(narrow, plan_of(base)).replayed);
    const UpstreamDefect& padding = defect("U15");
    const RunPlan padded = plan_of({QString::fromStdString(replay_setting(padding, spec, true))});
    QVERIFY(effect_of(padding, padded).replayed);
    QVERIFY(!effect_of(padding, plan_of({})).replayed);
    const UpstreamDefect& recomputed = defect("U1");
    const RunPlan whole = plan_of({QString::fromStdString(replay_setting(recomputed, spec, true))});
    QCOMPARE(whole.spec.parallel.recompute, RecomputeKind::full);
    QVERIFY(effect_of(recomputed, whole).replayed);
    const RunPlan kept = plan_of({QString::fromStdString(replay_setting(recomputed, whole.spec, false))});
    QVERIFY(!effect_of(recomputed, kept).replayed && effect_of(recomputed, kept).can_replay);
    // Off would not bring back what was there: no switch.
    for (const char* set : {"parallel.recompute=selective", "megatron.recompute_activations=true", "model.kind=mlp"})
      QVERIFY2(!effect_of(recomputed, plan_of({set})).can_replay, set);
    QCOMPARE(replay_setting(defect("U2"), spec, true), std::string());
  }

  void reports_list_all() {
    const RunPlan plan = plan_of({});
    const std::string text = differences_report(plan);
    const std::string json = differences_json(plan);
    for (const UpstreamDefect& candidate : upstream_defects()) {
      QVERIFY(text.find("\n" + std::string(candidate.id) + "  ") != std::string::npos);
      QVERIFY(json.find("\"id\": \"" + std::string(candidate.id) + "\"") != std::string::npos);
      QVERIFY(!effect_of(candidate, plan).sentence.empty());
    }
  }
};

ACCRUE_TEST_MAIN(TestUpstreamDefects)

}  // namespace test_upstream_defects
#include "test_upstream_defects.moc"

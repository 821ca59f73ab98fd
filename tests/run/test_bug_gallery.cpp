// SPDX-License-Identifier: Apache-2.0
// The gallery: each bug has something to act on in its own run, and says so if it has nothing.
#include <QTest>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/plan/idle_bug.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/whatif/bug_gallery.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_bug_gallery {

using namespace accrue;
using namespace accrue::test;

namespace {

HostFacts plain_host() {
  HostFacts host;
  host.cores = 4;
  host.memory_bytes = std::int64_t{16} << 30;
  host.backends = {"shm", "gloo"};
  return host;
}

RunSpec with(RunSpec spec, const std::string& settings) {
  for (const QString& line : QString::fromStdString(settings).split(';', Qt::SkipEmptyParts)) {
    std::vector<Finding> findings;
    set_field(spec, line.toStdString(), findings);
    if (!findings.empty()) qFatal("%s", findings.front().text().c_str());
  }
  return spec;
}

Preflight checked(const RunSpec& spec) {
  return preflight_files(spec, plain_host(), {});
}

std::optional<IdleBug> idle(const RunSpec& spec) {
  const Preflight result = checked(spec);
  if (!result.plan) qFatal("%s", result.findings.empty() ? "no plan" : result.findings.front().text().c_str());
  return idle_bug(*result.plan);
}

}  // namespace

class TestBugGallery : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// As its text says: the rate is at its end when a quarter of the run is done.
  void a_schedule_that_counts_micro_steps_is_no_longer_for_it() {
    RunSpec spec = gallery_spec(Bug::schedule_per_micro_step);
    const RunPlan wrong = *checked(spec).plan;
    spec.teaching.bug = Bug::none;
    const RunPlan right = *checked(spec).plan;
    QCOMPARE(wrong.totals.updates, right.totals.updates);
    QCOMPARE(wrong.curve.total, right.totals.schedule_ticks);
    QCOMPARE(wrong.totals.schedule_ticks, 4 * right.totals.schedule_ticks);
    QCOMPARE(lr_at(wrong.curve, right.totals.schedule_ticks), lr_at(right.curve, right.totals.schedule_ticks));
  }

  /// As their texts say, which speak of N times as much.
  void runs_of_needless_reductions_have_full_windows_alone() {
    for (const Bug bug : {Bug::no_no_sync, Bug::no_sync_backward_only}) {
      const RunPlan plan = *checked(gallery_spec(bug)).plan;
      QCOMPARE(plan.totals.micro_steps, 4 * plan.totals.updates);
    }
  }

  void each_of_the_fifteen_acts_in_its_own_run_with_the_lamp_on() {
    QCOMPARE(bug_gallery().size(), std::size_t{15});
    for (const GalleryBug& entry : bug_gallery()) {
      const char* name = to_name(entry.bug).data();
      QCOMPARE(find_gallery_bug(entry.bug)->title, entry.title);
      for (const std::string_view text : {entry.title, entry.symptom, entry.detector, entry.cure})
        QVERIFY2(!text.empty(), name);
      const RunSpec spec = gallery_spec(entry.bug);
      QCOMPARE(spec.teaching.bug, entry.bug);
      QCOMPARE(spec.evaluate.exactness_every, std::int64_t{1});
      const auto found = idle(spec);
      QVERIFY2(!found, found ? (std::string(name) + ": " + found->why).c_str() : "");
    }
    QVERIFY(!find_gallery_bug(Bug::none));
    QVERIFY(!idle(gallery_spec(Bug::none)));
  }

  void a_bug_with_nothing_to_act_on_says_so_and_offers_what_lets_it_act_data() {
    const std::string even =
        "model.kind=mlp;model.inputs=3;data.samples=64;accumulation.steps=4;"
        "accumulation.micro_batch=2;run.epochs=2;";
    const Rows<std::string, std::string, std::string> row;
    row("equal slots", even + "teaching.bug=mean_of_means", "all slots are equal", "accumulation.micro_batch=3");
    row("no short window", even + "teaching.bug=tail_by_steps", "no window is short", "accumulation.steps=5");
    row("one rank", even + "teaching.bug=unused_parameters", "there is only one rank", "parallel.data=2");
    row("one micro-step", even + "accumulation.steps=1;teaching.bug=zero_grad_inside", "a window has one micro-step",
        "accumulation.steps=4");
    row("nothing to divide", even + "accumulation.steps=1;teaching.bug=no_division", "a window has one micro-step",
        "accumulation.steps=4");
    row("nothing clipped", even + "teaching.bug=clip_every_micro_step", "nothing is clipped",
        "optimizer.clip_norm=0.1");
    row("constant rate", even + "teaching.bug=schedule_per_micro_step", "the learning rate is constant",
        "schedule.kind=cosine");
    row("no repeats", even + "parallel.data=2;teaching.bug=repeated_samples", "all batches are full",
        "accumulation.micro_batch=3");
    row("reduced anyway", even + "parallel.data=2;accumulation.reduce_when=every_micro_step;teaching.bug=no_no_sync",
        "every micro-step reduces anyway", "accumulation.reduce_when=boundary");
  }
  void a_bug_with_nothing_to_act_on_says_so_and_offers_what_lets_it_act() {
    const auto [settings, why, fix] = current_row<std::string, std::string, std::string>();
    const RunSpec spec = with({}, settings);
    const auto found = idle(spec);
    QVERIFY(found);
    QVERIFY2(QString::fromStdString(found->why).startsWith(QString::fromStdString(why)), found->why.c_str());
    QCOMPARE(found->key + "=" + found->fix, fix);
    // As the form shows it: on the bug, and on the key that would mend it.
    bool offered = false;
    for (const Finding& finding : checked(spec).findings)
      offered = offered || (finding.key == found->key && finding.fix_value == found->fix);
    QVERIFY(offered);
    const auto mended = idle(with(spec, fix));
    QVERIFY2(!mended, mended ? mended->why.c_str() : "");
  }

  void batch_norm_needs_a_model_that_can_have_one() {
    const auto found = idle(with({}, "model.kind=linear;data.samples=8;teaching.bug=batch_norm"));
    QVERIFY(found && found->key.empty());
  }

  void the_demo_has_a_short_batch_for_a_mean_of_means() {
    // 1 945 samples in batches of 8: the last of an epoch holds one.
    const RunSpec demo = with({},
                              "model.layers=1;model.width=16;model.heads=2;model.context=8;data.samples=2048;"
                              "data.validation_fraction=0.05;parallel.data=2;run.updates=240;"
                              "teaching.bug=mean_of_means");
    QVERIFY(!idle(demo));
  }
};

ACCRUE_TEST_MAIN(TestBugGallery)

}  // namespace test_bug_gallery
#include "test_bug_gallery.moc"

// SPDX-License-Identifier: Apache-2.0
// A run that is started paused and stepped through, phase by phase, over real ranks. The numbers are those of the toy
// (points x = 1..8 on y = 2x, one weight that begins at 0, rate 0.02) by hand: a point's gradient is -2x(2x) = -4x^2,
// the sum of all eight -816, their mean -102, the weight after one update 2.04.
#include <QTest>
#include <cmath>
#include <map>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "run/host_fixture.h"
#include "support/programs.h"
#include "support/test_program.h"

namespace test_phases {

using namespace accrue;
using namespace accrue_test;
namespace fs = std::filesystem;

namespace {

EngineHostOptions real_options() {
  EngineHostOptions options;
  options.rank_program = test::programPath("accrue-rank").toStdString();
  return options;
}

RunPlan plan_of(const RunSpec& spec) {
  auto checked = preflight_files(spec, local_facts(), fs::temp_directory_path());
  for (const auto& finding : checked.findings)
    if (finding.severity == Severity::error) qFatal("%s", finding.text().c_str());
  return *checked.plan;
}

RunSpec preset(const char* name) {
  return read_spec(test::sourcePath("resources/presets").toStdString() + "/" + name + ".accrue").spec;
}

/// The toy on so many ranks: windows of two micro-steps, which together hold all eight points.
RunPlan toy(std::int64_t ranks, const ParallelSpec& parallel = {}, bool overlaps = false) {
  RunSpec spec = preset("toy");
  spec.parallel = parallel;
  spec.parallel.data = ranks;
  spec.accumulation.steps = 2;
  spec.accumulation.micro_batch = 4 / ranks;
  spec.run.epochs = 5;
  if (overlaps) spec.accumulation.knobs.reduce_mechanism = ReduceMechanism::reducer;
  return plan_of(spec);
}

/// The reports of all ranks of the next stop, by rank; what was said before is forgotten.
std::map<std::int64_t, Held> next_stop(WatchedHost& host, std::size_t ranks) {
  std::map<std::int64_t, Held> held;
  if (!host.wait_for_state("paused", std::chrono::seconds(30))) return {};
  for (const auto& event : host.all())  // each rank's last
    if (const auto* body = std::get_if<Held>(&event.body)) held[event.rank] = *body;
  host.forget();
  return held.size() == ranks ? held : std::map<std::int64_t, Held>{};
}

}  // namespace

class TestPhases : public QObject {
  Q_OBJECT
  HostHome home_;

 private Q_SLOTS:
  void cleanup() { QCOMPARE(home_.leftovers(), std::string()); }

  void a_run_that_is_stepped_through_ends_with_the_weights_of_one_that_is_not_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("overlaps");
    QTest::newRow("1 rank") << 1 << true;
    QTest::newRow("2 ranks") << 2 << false;
    QTest::newRow("2 ranks that reduce during backward") << 2 << true;
  }
  void a_run_that_is_stepped_through_ends_with_the_weights_of_one_that_is_not() {
    QFETCH(const int, ranks);
    QFETCH(const bool, overlaps);
    const bool hidden = ranks > 1 && overlaps;  // the window's last backward leaves sums that are half done
    const auto count = static_cast<std::size_t>(ranks);
    std::string expected;
    {
      WatchedHost host(real_options());
      QVERIFY(host.start({toy(ranks, {}, overlaps), home_.fresh()}).has_value());
      VERIFY_STORY(host.ends("finished", 0, std::chrono::seconds(60)));
      expected = host.end->weights_sha256;
      QVERIFY(!expected.empty());
    }
    WatchedHost host(real_options());
    QVERIFY(host.start({toy(ranks, {}, overlaps), home_.fresh(), true}).has_value());
    auto held = next_stop(host, count);
    VERIFY_STORY(!held.empty() && held[0].micro_step == 0 && held[0].weights == std::vector<double>{0.0});

    using enum StepPhase;
    // One micro-step has three phases, the last of a window six more.
    for (const StepPhase phase :
         {forward, scale, backward, forward, scale, backward, reduce, unscale, clip, StepPhase::step, schedule, zero}) {
      host.step(StepUnit::phase);
      held = next_stop(host, count);
      VERIFY_STORY(!held.empty());
      for (const auto& [rank, at] : held) QCOMPARE(to_string(at.phase), to_string(phase));
      const Held& first = held[0];
      // Of two ranks, rank 0 holds the points 1 and 2, then 5 and 6; of one, the first four, then all.
      const double own = first.position == 1 ? (ranks == 2 ? -20.0 : -120.0) : (ranks == 2 ? -264.0 : -816.0);
      if (phase == backward) {
        const bool shown = !hidden || first.position == 1;
        QCOMPARE(first.gradient, shown ? std::vector<double>{own} : std::vector<double>{});
        QCOMPARE(std::isnan(first.gradient_norm), !shown);
      }
      if (phase == reduce || phase == unscale || phase == clip)
        for (const auto& [rank, at] : held) QCOMPARE(at.gradient, std::vector<double>{-816.0});
      if (phase == unscale) QCOMPARE(first.factor * -816.0, -102.0);
      QVERIFY(qFuzzyCompare(1.0 + first.weights.front(), phase >= StepPhase::step ? 3.04 : 1.0));
      if (phase == zero) QCOMPARE(first.gradient_norm, 0.0);
    }

    // A micro-step ends with a full window, an update with an empty one.
    for (const std::int64_t micro_step : {3, 4}) {
      host.step(StepUnit::micro_step);
      held = next_stop(host, count);
      VERIFY_STORY(!held.empty() && held[0].phase == backward && held[0].micro_step == micro_step);
    }
    QCOMPARE(held[0].position, held[0].size);
    QVERIFY(hidden || held[0].gradient_norm > 0.0);
    host.step(StepUnit::update);
    held = next_stop(host, count);
    VERIFY_STORY(!held.empty() && held[0].phase == none && held[0].micro_step == 4 && held[0].gradient_norm == 0.0);

    host.step(StepUnit::phase);
    held = next_stop(host, count);
    VERIFY_STORY(!held.empty() && held[0].phase == forward);
    host.proceed();  // from inside a micro-step
    VERIFY_STORY(host.ends("finished", 0, std::chrono::seconds(60)));
    QCOMPARE(host.end->weights_sha256, expected);
  }

  void a_checkpoint_between_two_phases_leaves_out_nothing_data() {
    QTest::addColumn<int>("zero");
    QTest::newRow("whole updates") << 0;
    QTest::newRow("divided updates, parameters on their way") << 1;
  }
  void a_checkpoint_between_two_phases_leaves_out_nothing() {
    QFETCH(const int, zero);
    ParallelSpec parallel;
    parallel.zero = zero;
    parallel.overlap_param_gather = zero > 0;
    std::string expected;
    {
      WatchedHost host(real_options());
      QVERIFY(host.start({toy(2, parallel), home_.fresh()}).has_value());
      VERIFY_STORY(host.ends("finished", 0, std::chrono::seconds(60)));
      expected = host.end->weights_sha256;
    }
    const auto dir = home_.fresh();
    {
      WatchedHost host(real_options());
      QVERIFY(host.start({toy(2, parallel), dir, true}).has_value());
      QVERIFY(!next_stop(host, 2).empty());
      host.step(StepUnit::update);
      QVERIFY(!next_stop(host, 2).empty());
      host.step(StepUnit::phase);  // its parameters may still travel
      auto held = next_stop(host, 2);
      VERIFY_STORY(!held.empty() && held[0].phase == StepPhase::forward && held[0].micro_step == 3);
      QCOMPARE(held[0].weights, held[1].weights);
      host.step(StepUnit::micro_step);
      QVERIFY(!next_stop(host, 2).empty());
      host.step(StepUnit::micro_step);
      for (const StepPhase phase : {StepPhase::backward, StepPhase::reduce, StepPhase::unscale, StepPhase::clip}) {
        held = next_stop(host, 2);
        VERIFY_STORY(!held.empty() && held[0].phase == phase);
        if (phase != StepPhase::clip) host.step(StepUnit::phase);
      }
      host.checkpoint_and_stop();
      VERIFY_STORY(host.ends("stopped", 130, std::chrono::seconds(30)));
    }
    WatchedHost host(real_options());
    QVERIFY(host.resume(dir).has_value());
    VERIFY_STORY(host.ends("finished", 0, std::chrono::seconds(60)));
    QCOMPARE(host.end->weights_sha256, expected);
  }

  void a_stop_between_two_phases_ends_the_run() {
    WatchedHost host(real_options());
    QVERIFY(host.start({toy(2), home_.fresh(), true}).has_value());
    QVERIFY(!next_stop(host, 2).empty());
    host.step(StepUnit::phase);
    QVERIFY(!next_stop(host, 2).empty());
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130, std::chrono::seconds(30)));
  }

  void the_stages_of_a_pipeline_have_no_moment_between_two_phases() {
    WatchedHost host(real_options());
    QVERIFY(host.start({plan_of(preset("pipeline-two")), home_.fresh(), true}).has_value());
    VERIFY_STORY(host.wait_for_state("paused", std::chrono::seconds(60)));
    host.step(StepUnit::phase);
    const auto refused = host.wait_for_warning("no moment between two phases");
    VERIFY_STORY(refused && refused->class_name == refusal_class);
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130, std::chrono::seconds(30)));
  }
};

ACCRUE_TEST_MAIN(TestPhases)

}  // namespace test_phases
#include "test_phases.moc"

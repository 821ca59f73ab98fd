// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <algorithm>

#include "accrue/run/whatif/iso_batch.h"
#include "support/test_program.h"

namespace test_iso_batch {

using namespace accrue;

namespace {

RunSpec spec_of(std::int64_t micro, std::int64_t steps, std::int64_t data) {
  RunSpec spec;
  spec.model.kind = ModelKind::gpt;
  spec.model.layers = 2;
  spec.model.width = 16;
  spec.model.heads = 2;
  spec.model.context = 16;
  spec.data.kind = DataKind::synthetic;
  spec.data.samples = 4096;
  spec.accumulation.micro_batch = micro;
  spec.accumulation.steps = steps;
  spec.parallel.data = data;
  return spec;
}

std::vector<IsoPlan> plans_of(const RunSpec& spec, std::int64_t cores) {
  HostFacts host;
  host.cores = cores;
  host.memory_bytes = std::int64_t{8} << 30;
  host.backends = {"shm", "gloo"};
  DataFacts data;
  data.samples = 4096;
  data.tokens_per_sample = 16;
  return plan_iso_ways(spec, host, data, {});
}

}  // namespace

class TestIsoBatch : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_way_makes_the_same_samples() {
    // 8 samples, by hand: 4 ways on one rank (1 x 8 to 8 x 1), 3 on two, none on three.
    const auto ways = iso_ways(spec_of(2, 2, 2), 3);
    QCOMPARE(ways.size(), std::size_t{7});
    for (const IsoWay& way : ways) QCOMPARE(way.micro_batch * way.steps * way.data, 8);
    QVERIFY(std::ranges::count(ways, IsoWay{2, 2, 2, 1, 1}) == 1);
    for (std::size_t i = 1; i < ways.size(); ++i) QVERIFY(std::ranges::count(ways, ways[i]) == 1);
  }

  void ranks_of_a_divided_model_are_divided_anew() {
    RunSpec spec = spec_of(1, 4, 2);
    spec.parallel.tensor = 2;
    const auto ways = iso_ways(spec, 2);
    for (const IsoWay& way : ways) {
      QCOMPARE(way.ranks(), 4);
      QCOMPARE(way.micro_batch * way.steps * way.data, 8);
    }
    // d = 4: (1,1); d = 2: (2,1), (1,2); d = 1: (4,1), (2,2), (1,4); of 2, 4 and 8 samples a rank: 2, 3 and 4 ways.
    QCOMPARE(ways.size(), std::size_t{1 * 2 + 2 * 3 + 3 * 4});
  }

  void a_trial_is_short_and_compares_itself_with_one_batch() {
    const auto plans = plans_of(spec_of(2, 2, 1), 2);
    QCOMPARE(plans.size(), std::size_t{3 + 2});
    for (const IsoPlan& each : plans) {
      QVERIFY(each.plan);
      QCOMPARE(each.plan->totals.updates, iso_updates);
      QCOMPARE(each.plan->spec.evaluate.exactness_every, iso_updates);
      QCOMPARE(each.plan->global_batch, 4);
      RunSpec renamed = each.plan->spec;
      renamed.run.name = "another name";
      QVERIFY(same_trial(each.plan->spec, renamed));
    }
    QVERIFY(!same_trial(plans[0].plan->spec, plans[1].plan->spec));
  }

  void what_preflight_refuses_says_why() {
    RunSpec spec = spec_of(1, 4, 1);
    spec.parallel.tensor = 2;
    spec.model.heads = 1;  // cannot be divided
    bool refused = false;
    for (const IsoPlan& each : plans_of(spec, 4)) {
      if (each.plan) continue;
      refused = true;
      QVERIFY(std::ranges::any_of(each.findings,
                                  [](const Finding& finding) { return finding.severity == Severity::error; }));
    }
    QVERIFY(refused);
  }
};

ACCRUE_TEST_MAIN(TestIsoBatch)

}  // namespace test_iso_batch
#include "test_iso_batch.moc"

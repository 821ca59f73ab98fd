// SPDX-License-Identifier: Apache-2.0
#include <QTest>

#include "accrue/run/plan/pair_share.h"
#include "support/test_program.h"

namespace test_pair_share {

using namespace accrue;

namespace {

RunSpec ranks(std::int64_t data, std::optional<std::int64_t> threads = {}) {
  RunSpec spec;
  spec.parallel.data = data;
  spec.launch.threads_per_rank = threads;
  return spec;
}

HostFacts host(std::int64_t cores) {
  HostFacts facts;
  facts.cores = cores;
  return facts;
}

}  // namespace

class TestPairShare : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_cores_are_shared_by_all_ranks_of_both() {
    QCOMPARE(pair_threads(ranks(1), ranks(1), host(2)), std::optional<std::int64_t>(1));
    QCOMPARE(pair_threads(ranks(1), ranks(1), host(8)), std::optional<std::int64_t>(4));
    QCOMPARE(pair_threads(ranks(1), ranks(2), host(8)), std::optional<std::int64_t>(2));
    QCOMPARE(pair_threads(ranks(2), ranks(2), host(4)), std::optional<std::int64_t>(1));
  }

  void both_get_the_fewest_that_one_asks_for() {
    QCOMPARE(pair_threads(ranks(1, 1), ranks(1), host(8)), std::optional<std::int64_t>(1));
    QCOMPARE(pair_threads(ranks(1, 3), ranks(1, 2), host(8)), std::optional<std::int64_t>(2));
    QCOMPARE(pair_threads(ranks(1, 8), ranks(1, 8), host(8)), std::optional<std::int64_t>(4));
  }

  void a_plan_takes_its_threads_and_its_spec_asks_for_no_more_than_before() {
    RunPlan plan;
    plan.spec = ranks(1);
    plan = with_threads(plan, 4);
    QCOMPARE(plan.threads_per_rank, 4);
    QVERIFY(plan.spec == ranks(1));
    plan.spec = ranks(1, 8);
    plan = with_threads(plan, 4);
    QVERIFY(plan.spec == ranks(1, 4));
  }

  void too_few_cores_or_devices_hold_one_run_at_a_time() {
    QVERIFY(!pair_threads(ranks(1), ranks(1), host(1)));
    QVERIFY(!pair_threads(ranks(2), ranks(1), host(2)));
    RunSpec device = ranks(1);
    device.launch.device = DeviceKind::cuda;
    HostFacts one = host(8);
    one.cuda_devices.resize(1);
    QVERIFY(!pair_threads(device, device, one));
    QVERIFY(pair_threads(device, ranks(1), one));
    one.cuda_devices.resize(2);
    QVERIFY(pair_threads(device, device, one));
  }
};

ACCRUE_TEST_MAIN(TestPairShare)

}  // namespace test_pair_share
#include "test_pair_share.moc"

// SPDX-License-Identifier: Apache-2.0
// One spec under each of the seven optimizers: what stays, what goes back to its default, and what is refused.
#include <QTest>

#include "accrue/run/whatif/optimizer_comparison.h"
#include "support/test_program.h"

namespace test_optimizer_comparison {

using namespace accrue;

namespace {

HostFacts plain_host() {
  HostFacts host;
  host.cores = 4;
  host.memory_bytes = std::int64_t{16} << 30;
  return host;
}

std::vector<OptimizerPlan> compared(const RunSpec& spec) {
  return compare_optimizers(spec, plain_host(), *scan_data(spec, "."), ".");
}

}  // namespace

class TestOptimizerComparison : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void all_seven_take_a_spec_that_one_takes() {
    RunSpec spec;
    spec.optimizer.lr = 3e-3;
    spec.optimizer.weight_decay = 0.1;
    const auto plans = compared(spec);
    QCOMPARE(plans.size(), std::size_t{7});
    for (const OptimizerPlan& each : plans) {
      QVERIFY(each.plan.has_value());
      QVERIFY(each.findings.empty());
      RunSpec expected = spec;
      expected.optimizer.kind = each.kind;
      expected.run.update_norm = true;
      QVERIFY(each.plan->spec == expected);
    }
  }

  void settings_of_its_own_rule_stay_with_it() {
    RunSpec spec;
    spec.optimizer.kind = OptimizerKind::fused_sgd;
    spec.optimizer.momentum = 0.9;
    spec.optimizer.nesterov = true;
    const OptimizerSpec lars = under_optimizer(spec, OptimizerKind::lars).optimizer;
    QCOMPARE(lars.momentum, 0.9);
    QVERIFY(!lars.nesterov);
    const OptimizerSpec lamb = under_optimizer(spec, OptimizerKind::lamb).optimizer;
    QCOMPARE(lamb.momentum, 0.0);
    QVERIFY(under_optimizer(spec, OptimizerKind::fused_sgd) == spec);
  }

  void one_that_is_refused_says_why() {
    RunSpec spec;
    spec.optimizer.kind = OptimizerKind::cpu_adam;
    spec.optimizer.nvme_offload_fraction = 0.5;
    for (const OptimizerPlan& each : compared(spec)) {
      const bool keeps = each.kind == OptimizerKind::cpu_adam || each.kind == OptimizerKind::hybrid_adam;
      QCOMPARE(each.plan.has_value(), !keeps);
      if (keeps) QCOMPARE(each.findings.front().key, std::string("optimizer.nvme_offload_dir"));
    }
  }
};

ACCRUE_TEST_MAIN(TestOptimizerComparison)

}  // namespace test_optimizer_comparison
#include "test_optimizer_comparison.moc"

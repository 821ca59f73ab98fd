// SPDX-License-Identifier: Apache-2.0
// The plan's figures beside the ranks' counts.
#include <QRegularExpression>
#include <QTest>

#include "accrue/run/record/plan_check.h"
#include "support/test_program.h"

namespace test_plan_check {

using namespace accrue;

namespace {

/// Two stages of two replicas; the second holds half.
RunPlan two_stages() {
  RunPlan plan;
  plan.grid = {.data = 2, .pipeline = 2};
  plan.stages.resize(2);
  plan.stages[0] = {.parameters = 100000, .gradients = 100000, .activations = 400000};
  plan.stages[0].wire[static_cast<std::size_t>(Axis::data)] = 60000;
  plan.stages[1] = {.parameters = 50000, .gradients = 50000, .activations = 200000};
  return plan;
}

Measured counted(std::int64_t parameters, std::int64_t activations, std::int64_t sent, std::int64_t updates) {
  return {.updates = updates,
          .parameter_bytes = parameters,
          .gradient_bytes = parameters,
          .activation_bytes = activations,
          .axis = {"data"},
          .sent_bytes = {sent},
          .calls = {1}};
}

}  // namespace

class TestPlanCheck : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void ranks_that_are_alike_share_the_figure_that_is_farthest_off() {
    const auto figures =
        check_plan(two_stages(), {{0, counted(100000, 410000, 180000, 3)}, {1, counted(100000, 380000, 180000, 3)}});
    QCOMPARE(figures.size(), std::size_t{4});  // optimizer state was neither planned nor found; stage 1 is silent
    QCOMPARE(figures[0], (PlanFigure{0, 1, "parameters", 100000, 100000}));
    QCOMPARE(figures[2], (PlanFigure{0, 1, "activations", 400000, 380000}));
    QCOMPARE(figures[2].deviation_percent(), -5.0);
    QCOMPARE(figures[3], (PlanFigure{0, 1, "sent data", 60000, 60000}));
    for (const PlanFigure& figure : figures) QVERIFY(!figure.off());
  }

  void a_plan_is_off_beyond_its_tolerance() {
    QVERIFY(!(PlanFigure{0, 0, "parameters", 100000, 110000}.off()));
    QVERIFY((PlanFigure{0, 0, "parameters", 100000, 110001}.off()));
    QVERIFY((PlanFigure{0, 0, "sent data", 100000, 80000}.off()));
    QVERIFY(!(PlanFigure{0, 0, "activations", 100000, 125000}.off()));
    QVERIFY((PlanFigure{0, 0, "activations", 100000, 70000}.off()));
    QVERIFY((PlanFigure{0, 0, "optimizer", 0, 100000}.off()));
    QVERIFY(!(PlanFigure{0, 0, "activations", 8, 16}.off()));  // less than a page
  }

  /// model.kind does not describe a library's model, so only the measured figures are shown.
  void a_model_of_a_library_is_measured_and_was_not_planned() {
    RunPlan plan = two_stages();
    plan.spec.megatron.custom_model_provider_function = "own";
    const auto figures = check_plan(plan, {{0, counted(900000, 410000, 180000, 3)}});
    QCOMPARE(figures.size(), std::size_t{4});
    for (const PlanFigure& figure : figures) QVERIFY(!figure.known && figure.planned == 0 && !figure.off());
    const QString table = QString::fromStdString(plan_check_table(figures));
    QVERIFY2(table.contains(QRegularExpression("0 to 1 +parameters +not known +878.9 KiB\n")), qUtf8Printable(table));
    QVERIFY(!table.contains('%'));
  }

  void what_was_kept_and_sent_is_of_full_windows() {
    const auto of = [](const Measured& measured) { return check_plan(two_stages(), {{0, measured}}); };
    QCOMPARE(of(counted(100000, 400000, 0, 0)).back().figure, std::string("gradients"));
    QCOMPARE(of(counted(100000, 0, 0, 0)).size(), std::size_t{2});  // stopped before it trained
    QVERIFY(of(counted(100000, 400000, 100, 1)).back().off());
  }

  void the_table_says_where_the_plan_was_off() {
    const auto figures = check_plan(two_stages(), {{3, counted(50000, 300000, 0, 1)}});
    const QString table = QString::fromStdString(plan_check_table(figures));
    QVERIFY(
        table.contains(QRegularExpression("2 to 3 +activations +195.3 KiB +293.0 KiB +\\+50.0 %  the plan was off")));
    QCOMPARE(table.count("the plan was off"), 1);
    QVERIFY(plan_check_table({}).empty());
  }
};

ACCRUE_TEST_MAIN(TestPlanCheck)

}  // namespace test_plan_check
#include "test_plan_check.moc"

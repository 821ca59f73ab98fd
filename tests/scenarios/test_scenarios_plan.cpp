// SPDX-License-Identifier: Apache-2.0
// Expectations of the scenarios for plans: letters, divisors, schedules, findings. No training.
#include <QTest>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "scenarios/scenario.h"
#include "support/places.h"
#include "support/test_program.h"

using namespace accrue;

namespace {

struct Planned {
  RunSpec spec;
  std::optional<RunPlan> plan;
  std::vector<Finding> findings;
};

/// The same whatever machine the test runs on.
HostFacts plain_host() {
  HostFacts host;
  host.cores = 4;
  host.memory_bytes = std::int64_t{16} << 30;
  host.torch_version = "2.11.0";
  host.backends = {"shm", "gloo"};
  host.cuda_error = "no driver";
  return host;
}

std::string root() {
  return accrue::test::sourcePath("").toStdString();
}

Planned plan_case(const ScenarioCase& scenario) {
  SpecReading reading = parse_spec(scenario.spec_toml.toStdString(), scenario.file.toStdString());
  Planned planned{reading.spec, std::nullopt, reading.findings};
  for (const QString& set : scenario.sets) set_field(planned.spec, set.toStdString(), planned.findings);
  if (has_errors(planned.findings)) return planned;
  Preflight checked = preflight_files(planned.spec, plain_host(), root());
  planned.plan = std::move(checked.plan);
  planned.findings.insert(planned.findings.end(), checked.findings.begin(), checked.findings.end());
  return planned;
}

/// As a scenario writes them: "error model.heads: does not divide model.width ...".
QStringList findings_in(const std::vector<Finding>& findings, bool errors_only) {
  QStringList lines;
  for (const Finding& finding : findings)
    if (!errors_only || finding.severity == Severity::error)
      lines << QString::fromStdString(finding.text()).replace(QString::fromStdString(root()), "./");
  return lines;
}

/// A value that is offered mends what it is offered for, or at least leaves another problem to speak of.
void check_fix(const Planned& refused, const std::optional<QString>& expected) {
  const auto last = std::find_if(refused.findings.rbegin(), refused.findings.rend(),
                                 [](const Finding& finding) { return finding.severity == Severity::error; });
  QCOMPARE(last->fix_value.has_value(), expected.has_value());
  if (!expected) return;
  QCOMPARE(QString::fromStdString(*last->fix_value), *expected);
  RunSpec mended = refused.spec;
  std::vector<Finding> findings;
  set_field(mended, last->key + "=" + *last->fix_value, findings);
  QCOMPARE(findings_in(findings, false), QStringList());
  const Preflight again = preflight_files(mended, plain_host(), root());
  QVERIFY(!findings_in(again.findings, true).contains(findings_in(refused.findings, true).first()));
}

QString divisor_of(const MicroPlan& micro) {
  const auto number = micro.division.number();
  return number && micro.division.when == NormalizeWhen::eager ? QString::number(*number) : QStringLiteral("-");
}

const QStringList series_words = {"updates", "sizes", "divisors", "schedule", "lr"};

/// Returns the plan's numbers for a directive, joined as the scenario writes them.
QString series(const QString& directive, const RunPlan& plan) {
  QStringList words;
  for (const MicroPlan& micro : preview_windows(plan.window, 10'000)) {
    if (directive == "updates" && micro.update) words << QString::number(micro.micro_step);
    if (directive == "sizes") words << QString::number(micro.window_size);
    if (directive == "divisors") words << divisor_of(micro);
    if (directive == "schedule") words << QString::number(micro.schedule_position);
    if (directive == "lr") words << QString::number(lr_at(plan.curve, micro.schedule_position), 'g', 6);
  }
  return words.join(' ');
}

}  // namespace

class TestScenariosPlan : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void plans_what_the_text_says_data() {
    QTest::addColumn<int>("index");
    cases_ = load_scenarios(accrue::test::sourcePath("tests/scenarios"));
    QVERIFY(!cases_.isEmpty());
    for (int i = 0; i < cases_.size(); ++i) QTest::newRow(qPrintable(cases_[i].file + ": " + cases_[i].words)) << i;
  }
  void plans_what_the_text_says() {
    QFETCH(int, index);
    const ScenarioCase& scenario = cases_[index];
    QVERIFY2(!scenario.expectations.isEmpty(), "a case that expects nothing cannot fail");
    const Planned planned = plan_case(scenario);
    const QString said = findings_in(planned.findings, false).join('\n');
    QStringList findings;
    std::optional<QString> fix;
    for (const auto& [directive, expected] : scenario.expectations) {
      if (directive == "error" || directive == "warning" || directive == "note")
        findings << directive + ": " + expected;
      else if (directive == "fix")
        fix = expected;
    }
    const bool refused = !findings.isEmpty() && findings.first().startsWith("error");
    QVERIFY2(refused != planned.plan.has_value(), qPrintable(said));
    if (!findings.isEmpty()) QCOMPARE(findings_in(planned.findings, refused).join('\n'), findings.join('\n'));
    if (refused) check_fix(planned, fix);
    for (const auto& [directive, expected] : scenario.expectations) {
      if (directive == "letters")
        QCOMPARE(
            QString::fromStdString(window_letters(planned.spec.accumulation.dialect, planned.plan->window, 10'000)),
            expected);
      else if (directive == "arithmetic")
        QCOMPARE(QString::fromStdString(planned.plan->arithmetic()), expected);
      else if (series_words.contains(directive))
        QCOMPARE(series(directive, *planned.plan), expected);
    }
  }

 private:
  QVector<ScenarioCase> cases_;
};

ACCRUE_TEST_MAIN(TestScenariosPlan)
#include "test_scenarios_plan.moc"

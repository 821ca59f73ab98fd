// SPDX-License-Identifier: Apache-2.0
// What the scenarios say of plans: letters, divisors, schedules, findings. No training.
#include <QtTest>

#include "accrue/run/preflight.h"
#include "accrue/run/spec_io.h"
#include "scenarios/scenario.h"
#include "support/places.h"

using namespace accrue;

namespace {

struct Planned {
  RunSpec spec;
  std::optional<RunPlan> plan;
  std::vector<Finding> findings;
};

Planned plan_case(const ScenarioCase& scenario) {
  SpecReading reading = parse_spec(scenario.spec_toml.toStdString(), scenario.file.toStdString());
  Planned planned{reading.spec, std::nullopt, reading.findings};
  for (const QString& set : scenario.sets) set_field(planned.spec, set.toStdString(), planned.findings);
  if (has_errors(planned.findings)) return planned;
  Preflight checked = preflight_files(planned.spec, local_facts(), accrue::test::sourcePath("").toStdString());
  planned.plan = std::move(checked.plan);
  planned.findings.insert(planned.findings.end(), checked.findings.begin(), checked.findings.end());
  return planned;
}

QString findings_text(const Planned& planned) {
  QString text;
  for (const Finding& finding : planned.findings) text += QString::fromStdString(finding.text()) + '\n';
  return text;
}

bool has_finding(const Planned& planned, Severity severity, const QString& key) {
  return std::any_of(planned.findings.begin(), planned.findings.end(), [&](const Finding& finding) {
    return finding.severity == severity && QString::fromStdString(finding.key) == key;
  });
}

QString divisor_of(const MicroPlan& micro) {
  const auto number = micro.division.number();
  return number && micro.division.when == NormalizeWhen::eager ? QString::number(*number) : QStringLiteral("-");
}

/// What a directive of numbers says of the plan, joined as the scenario writes it.
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
    const bool refused = std::any_of(scenario.expectations.begin(), scenario.expectations.end(),
                                     [](const auto& expected) { return expected.first == "error"; });
    QVERIFY2(refused || planned.plan, qPrintable(findings_text(planned)));
    for (const auto& [directive, expected] : scenario.expectations) {
      if (directive == "error")
        QVERIFY2(has_finding(planned, Severity::error, expected), qPrintable(findings_text(planned)));
      if (directive == "warning")
        QVERIFY2(has_finding(planned, Severity::warning, expected), qPrintable(findings_text(planned)));
      if (refused || directive == "warning" || directive == "weights") continue;
      const std::string letters = window_letters(planned.spec.accumulation.dialect, planned.plan->window, 10'000);
      const QString arithmetic = QString::fromStdString(planned.plan->arithmetic());
      if (directive == "letters")
        QCOMPARE(QString::fromStdString(letters), expected);
      else if (directive == "arithmetic")
        QVERIFY2(arithmetic.contains(expected), qPrintable(arithmetic));
      else
        QCOMPARE(series(directive, *planned.plan), expected);
    }
  }

 private:
  QVector<ScenarioCase> cases_;
};

QTEST_GUILESS_MAIN(TestScenariosPlan)
#include "test_scenarios_plan.moc"

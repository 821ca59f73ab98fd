// SPDX-License-Identifier: GPL-3.0-or-later
// The lamp: the worst check counts, a resumed run's later checks are announced again, and the table shows a lamp that
// is lit.
#include <QTest>

#include "kit/number_text.h"
#include "runs/run_table_model.h"
#include "series/exactness_lamp.h"
#include "series/run_series.h"
#include "support/test_program.h"

namespace test_lamp {

using namespace accrue::ui;

namespace {

accrue::ExactnessCheck check(std::int64_t update, const char* verdict, const char* reason = "",
                             double relative = 1e-9) {
  return {.update = update,
          .max_abs = relative,
          .relative = relative,
          .cosine = 1.0,
          .ratio = 1.0,
          .tolerance = 1e-5,
          .verdict = verdict,
          .reason = reason,
          .message = reason[0] ? "Why it is so." : "",
          .reductions = 1,
          .needed = 1,
          .seconds = 0.0};
}

}  // namespace

class TestLamp : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void burns_as_the_worst_check_does() {
    ExactnessLamp lamp;
    QCOMPARE(lamp.light(), ExactnessLamp::Light::off);
    QVERIFY(lamp.word().isEmpty());
    lamp.take(check(1, "exact"));
    QCOMPARE(lamp.light(), ExactnessLamp::Light::exact);
    lamp.take(check(2, "exact", "wasted_reductions"));
    QCOMPARE(lamp.light(), ExactnessLamp::Light::close);
    lamp.take(check(3, "not", "tail_policy", 0.5));
    lamp.take(check(4, "exact"));
    QCOMPARE(lamp.light(), ExactnessLamp::Light::different);
    QVERIFY(lamp.word().endsWith(QStringLiteral("not exact")));
    QVERIFY2(lamp.text().startsWith(QStringLiteral("not exact: 1 of 4 checked windows; update 3 differs")),
             lamp.text().toUtf8());
    QVERIFY2(lamp.text().endsWith(QStringLiteral("Why it is so.")), lamp.text().toUtf8());
  }

  void no_difference_is_not_called_one() {
    ExactnessLamp lamp;
    lamp.take(check(3, "exact", "schedule_clock", 0.0));
    QVERIFY2(lamp.text().contains(QStringLiteral("update 3 matches the single-batch gradient")), lamp.text().toUtf8());
    QVERIFY(!lamp.text().contains(QStringLiteral("differs")));
  }

  void amber_says_in_a_word_what_kind_it_is() {
    const auto word = [](const char* verdict, const char* reason, double relative) {
      ExactnessLamp lamp;
      lamp.take(check(1, verdict, reason, relative));
      return lamp.light() == ExactnessLamp::Light::close ? lamp.word().mid(2) : QStringLiteral("not amber");
    };
    QCOMPARE(word("close", "order_of_sums", 1e-4), QStringLiteral("close"));
    QCOMPARE(word("close", "dropout", 0.9), QStringLiteral("cannot be exact"));
    QCOMPARE(word("close", "batch_norm", 0.9), QStringLiteral("cannot be exact"));
    QCOMPARE(word("exact", "wasted_reductions", 0.0), QStringLiteral("exact, at a cost"));
    QCOMPARE(word("exact", "schedule_clock", 0.0), QStringLiteral("exact, wrong pace"));
    QCOMPARE(word("exact", "bug_idle", 0.0), QStringLiteral("exact, bug idle"));
  }

  void is_never_plainly_green_while_a_bug_is_on() {
    ExactnessLamp lamp;
    lamp.take(check(1, "exact", "bug_idle"));
    QCOMPARE(lamp.light(), ExactnessLamp::Light::close);
    QVERIFY2(lamp.word().endsWith(QStringLiteral("exact, bug idle")), lamp.word().toUtf8());
    QVERIFY2(lamp.text().startsWith(QStringLiteral("exact, bug idle: 1 of 1 checked windows")), lamp.text().toUtf8());
    lamp.take(check(2, "not", "tail_policy", 0.5));
    QCOMPARE(lamp.light(), ExactnessLamp::Light::different);
  }

  void a_run_with_a_bug_carries_a_mark_in_its_name() {
    RunSeries run(QStringLiteral("id"), 0);
    accrue::RunSpec spec;
    spec.run.name = "Demo";
    run.setSpec(spec);
    QCOMPARE(run.name(), QStringLiteral("Demo"));
    spec.teaching.bug = accrue::Bug::mean_of_means;
    run.setSpec(spec);
    QCOMPARE(run.name(), QStringLiteral("Demo (bug: mean_of_means)"));
  }

  void forgets_what_a_resumed_run_tells_again() {
    ExactnessLamp lamp;
    for (const int update : {1, 2, 3}) lamp.take(check(update, update == 3 ? "not" : "exact"));
    lamp.rewind(2);
    QCOMPARE(lamp.light(), ExactnessLamp::Light::exact);
    lamp.take(check(2, "not"));  // one that was told already
    QCOMPARE(lamp.checks(), std::size_t{2});
    QCOMPARE(lamp.light(), ExactnessLamp::Light::exact);
  }

  void a_long_run_keeps_its_count_and_its_worst() {
    ExactnessLamp lamp;
    constexpr int checks = 5000;
    // Each is worse than all before it.
    for (int update = 1; update <= checks; ++update) lamp.take(check(update, "not", "tail_policy", update));
    QCOMPARE(lamp.checks(), std::size_t{checks});
    const QString all = lamp.text();
    QVERIFY2(all.contains(groupedNumber(checks) + QStringLiteral(" of ") + groupedNumber(checks)), all.toUtf8());
    QVERIFY2(all.contains(QStringLiteral("update ") + groupedNumber(checks)), all.toUtf8());
    lamp.rewind(checks - 10);
    QVERIFY2(lamp.text().contains(QStringLiteral("update ") + groupedNumber(checks - 10)), lamp.text().toUtf8());
    lamp.rewind(2);
    QCOMPARE(lamp.checks(), std::size_t{2});
    QCOMPARE(lamp.light(), ExactnessLamp::Light::different);
    lamp.rewind(0);
    QCOMPARE(lamp.light(), ExactnessLamp::Light::off);
  }

  void the_table_has_its_column_while_a_shown_run_was_checked() {
    RunTableModel model;
    RunSeries plain(QStringLiteral("plain"), 0);
    RunSeries checked(QStringLiteral("checked"), 1);
    model.addRun(&plain);
    model.addRun(&checked);
    const int before = model.columnCount();
    QCOMPARE(model.sectionOf(RunTableModel::exactColumn), -1);
    checked.append({{.rank = 0, .seq = 0, .time_ns = 0, .body = check(1, "close", "dropout", 0.1)}});
    QCOMPARE(model.columnCount(), before + 1);
    const int column = model.sectionOf(RunTableModel::exactColumn);
    QVERIFY(column >= 0);
    QCOMPARE(model.headerData(column, Qt::Horizontal).toString(), QStringLiteral("Exact"));
    QCOMPARE(model.index(1, column).data().toString(), QStringLiteral("~ cannot be exact"));
    QVERIFY(model.index(0, column).data().toString().isEmpty());
    QVERIFY(model.index(1, column).data(Qt::ToolTipRole).toString().contains(QStringLiteral("Why it is so.")));
  }
};

ACCRUE_TEST_MAIN(TestLamp)

}  // namespace test_lamp
#include "test_lamp.moc"

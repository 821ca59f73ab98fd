// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>
#include <random>

#include "made_run.h"
#include "runs/event_log_model.h"
#include "support/test_program.h"

namespace test_log_model {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

const QString run = QStringLiteral("run-a");

RunEvent warning(std::int64_t rank, const char* message) {
  return {rank, 0, 1500000000,
          Warning{.class_name = "disk", .message = message, .what_to_do = "Free some space.", .update = 7}};
}

QStringList texts(const QAbstractItemModel& model) {
  QStringList result;
  for (int row = 0; row < model.rowCount(); ++row)
    result << model.index(row, EventLogModel::textColumn).data().toString();
  return result;
}

}  // namespace

class TestLogModel : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void says_each_event_in_a_sentence() {
    EventLogModel model;
    model.append(run, {{0, 0, 61250000000, Update{.update = 120, .loss = 2.311, .lr = 3e-3, .grad_norm = 0.8}},
                       warning(1, "The disk is nearly full.")});
    QCOMPARE(model.rowCount(), 2);
    const QString update = model.index(0, EventLogModel::textColumn).data().toString();
    QVERIFY2(update.startsWith(QStringLiteral("Update 120: loss 2.311")), qPrintable(update));
    QCOMPARE(model.index(0, EventLogModel::timeColumn).data().toString(), QStringLiteral("1:01.250"));
    QCOMPARE(model.index(1, EventLogModel::rankColumn).data().toString(), QStringLiteral("rank 1"));
    QCOMPARE(model.index(1, 0).data(EventLogModel::severityRole).toInt(), 1);
    QVERIFY(model.textOf(1).endsWith(QStringLiteral("The disk is nearly full. Free some space.")));
  }

  void leaves_out_what_says_nothing() {
    EventLogModel model;
    model.append(run, {{0, -1, 0, Heartbeat{}}, {0, 3, 0, Gauge{}}, {0, -1, 0, Holding{}}});
    QCOMPARE(model.rowCount(), 0);
  }

  void knows_where_a_plot_should_go() {
    EventLogModel model;
    model.append(
        run, {warning(0, "x"),
              MadeRun::state("running"),
              {0, 0, 0, Sync{{9}, {36}, {"data"}, {"all_reduce"}, {CollectivePurpose::gradients}, {84}, {0}, {1}}}});
    QCOMPARE(model.index(0, 0).data(EventLogModel::updateRole).toLongLong(), 7);
    QCOMPARE(model.index(1, 0).data(EventLogModel::updateRole).toLongLong(), 0);
    QCOMPARE(model.index(2, 0).data(EventLogModel::updateRole).toLongLong(), 9);
  }

  void keeps_the_newest_rows() {
    EventLogModel model(50);
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    for (int i = 1; i <= 120; ++i) model.append(run, {{0, i, 0, Evaluation{.update = i}}});
    QCOMPARE(model.rowCount(), 50);
    QCOMPARE(model.dropped(), 70);
    QVERIFY(texts(model).first().contains(QStringLiteral("update 71")));
    QVERIFY(texts(model).last().contains(QStringLiteral("update 120")));
  }

  void a_batch_larger_than_the_ring_keeps_its_end() {
    EventLogModel model(10);
    std::vector<RunEvent> events;
    for (int i = 1; i <= 95; ++i) events.push_back({0, i, 0, Evaluation{.update = i}});
    model.append(run, events);
    QCOMPARE(model.rowCount(), 10);
    QCOMPARE(model.dropped(), 85);
    QVERIFY(texts(model).last().contains(QStringLiteral("update 95")));
  }

  void traces_push_nothing_else_out() {
    EventLogModel model(50);
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    EventLogFilter filter;
    filter.setSourceModel(&model);
    const auto trace = [](std::int64_t m) {
      return RunEvent{0, m, 0, MicroSteps{{m}, {1}, {m}, {256}, {0}, {m - 1}, {1.0}, {8}, {1}, {2000}, {2000}}};
    };
    model.append(run, {trace(1), warning(1, "The disk is nearly full."), trace(2)});
    QCOMPARE(filter.rowCount(), 3);
    QVERIFY(texts(filter)[1].startsWith(QStringLiteral("The disk")));
    std::vector<RunEvent> many;
    for (std::int64_t m = 3; m <= 202; ++m) many.push_back(trace(m));
    model.append(run, many);
    for (std::int64_t m = 203; m <= 212; ++m) model.append(run, {trace(m)});
    QCOMPARE(model.rowCount(), 51);
    QVERIFY(texts(model).first().startsWith(QStringLiteral("The disk")));
    QCOMPARE(model.dropped(run, true), 162);
    QCOMPARE(model.dropped(run, false), 0);
    QVERIFY(texts(filter).last().contains(QStringLiteral("212")));
    model.append(QStringLiteral("run-b"), {warning(0, "later")});
    QVERIFY(texts(filter).last().startsWith(QStringLiteral("later")));
    QCOMPARE(model.dropped(QStringLiteral("run-b"), true), 0);
  }

  void a_forgotten_run_leaves_no_row() {
    EventLogModel model(10);
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    for (int i = 0; i < 20; ++i) model.append(run, {warning(0, "a")});
    model.append(QStringLiteral("run-b"), {warning(0, "b")});
    model.removeRun(run);
    QCOMPARE(model.rowCount(), 1);
    QCOMPARE(model.dropped(), 0);
  }

  void appends_are_insertions_and_not_resets() {
    EventLogModel model(100);
    QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
    QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
    model.append(run, MadeRun{.updates = 5}.events(5));
    model.append(run, {warning(0, "x")});
    QCOMPARE(inserted.count(), 3);  // the first brings traces, too
    QCOMPARE(reset.count(), 0);
  }

  void filters_by_every_word() {
    EventLogModel model;
    EventLogFilter filter;
    filter.setSourceModel(&model);
    model.append(run, {warning(0, "The disk is nearly full."),
                       warning(1, "The clock is wrong."),
                       {0, 0, 0, Evaluation{.update = 3}}});
    filter.setText(QStringLiteral("DISK full"));
    QCOMPARE(filter.rowCount(), 1);
    filter.setText(QStringLiteral("disk clock"));
    QCOMPARE(filter.rowCount(), 0);
    filter.setText(QStringLiteral("  "));
    QCOMPARE(filter.rowCount(), 3);
  }

  void filters_by_kind_rank_and_run() {
    EventLogModel model;
    EventLogFilter filter;
    filter.setSourceModel(&model);
    model.append(run, MadeRun{.ranks = 2, .updates = 3}.events(3));
    model.append(QStringLiteral("run-b"), {warning(1, "x")});
    const QString kind = QStringLiteral("warning");
    filter.setKinds({kind});
    QCOMPARE(filter.rowCount(), 1);
    filter.setKinds({});
    filter.setRun(run);
    QCOMPARE(filter.rowCount(), model.rowCount() - 1);
    filter.setRank(1);
    QCOMPARE(filter.rowCount(), (model.rowCount() - 1) / 2);
    filter.setRank(EventLogFilter::everyRank);
    filter.setRun({});
    filter.hideKinds({QString::fromLatin1("micro_steps")});
    for (int row = 0; row < filter.rowCount(); ++row)
      QVERIFY(filter.index(row, 0).data(EventLogModel::kindRole).toString() != QStringLiteral("micro_steps"));
    QVERIFY(filter.rowCount() < model.rowCount());
  }

  void holds_the_rules_of_models_under_any_order_of_calls() {
    EventLogModel model(40);
    EventLogFilter filter;
    const QAbstractItemModelTester modelTester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    const QAbstractItemModelTester filterTester(&filter, QAbstractItemModelTester::FailureReportingMode::Fatal);
    filter.setSourceModel(&model);
    std::mt19937 random(21);
    std::uniform_int_distribution<int> choice(0, 99);
    for (int i = 0; i < 10000; ++i) {
      const int what = choice(random);
      if (what < 2) {
        model.clear();
      } else if (what < 6) {
        filter.setText(what % 2 ? QStringLiteral("evaluation") : QString());
      } else if (what < 10) {
        filter.setRank(what - 8);
      } else {
        std::vector<RunEvent> events;
        for (int k = 0; k < what % 4; ++k)
          events.push_back(k % 2 ? warning(what % 3, "w") : RunEvent{what % 3, i, 0, Evaluation{.update = i}});
        model.append(run, events);
      }
      QVERIFY(model.rowCount() <= 40);
      QVERIFY(filter.rowCount() <= model.rowCount());
    }
  }
};

ACCRUE_TEST_MAIN(TestLogModel)

}  // namespace test_log_model
#include "test_log_model.moc"

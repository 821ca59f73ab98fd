// SPDX-License-Identifier: GPL-3.0-or-later
// "Run all five" on the built-in ten batches, over ranks that really train: the weights that each system ends with.
#include <QAction>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>

#include "live/run_queue.h"
#include "runs/run_table_model.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_ten_batches {

using namespace accrue;
using namespace accrue::ui;

class TestTenBatches : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void each_system_ends_at_its_weight() {
    StudioFixture studio(std::make_shared<QTemporaryDir>(), "", "accrue-rank");
    studio.show();
    studio.find<QPushButton>("startTenBatches")->click();
    auto* queue = studio.window->findChild<RunQueue*>();
    QSignalSpy done(queue, &RunQueue::finished);
    studio.action("runAllDialectsAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(done.count(), 1, 6 * patience_ms);
    const QHash<QString, double> expected = {{QStringLiteral("llm"), 0.95475},
                                             {QStringLiteral("colossalai"), 0.95475},
                                             {QStringLiteral("accelerate"), 1.427725625},
                                             {QStringLiteral("mmengine"), 1.90070125},
                                             {QStringLiteral("accrue"), 1.90070125}};
    QCOMPARE(queue->runs().size(), std::size_t{5});
    for (const QueuedRun& queued : queue->runs()) {
      QVERIFY2(queued.state == QueuedState::finished, qPrintable(queued.label));
      const auto& weights = queued.run->weights();
      QCOMPARE(weights.size(), std::size_t{1});
      const double last = weights.front()->value(weights.front()->size() - 1);
      QVERIFY2(std::abs(last - expected.value(queued.label)) < 1e-12,
               qPrintable(QStringLiteral("%1: %2").arg(queued.label).arg(last, 0, 'g', 17)));
    }
    const RunTableModel& table = *studio.library->table();
    const int column = table.sectionOf(RunTableModel::weightsColumn);
    QVERIFY(column > 0);
    QCOMPARE(table.headerData(column, Qt::Horizontal).toString(), QStringLiteral("Last weights"));
    QStringList shown;
    for (int row = 0; row < table.rowCount(); ++row) shown << table.index(row, column).data().toString();
    shown.sort();
    QCOMPARE(shown, (QStringList{QStringLiteral("0.95475"), QStringLiteral("0.95475"), QStringLiteral("1.427725625"),
                                 QStringLiteral("1.90070125"), QStringLiteral("1.90070125")}));
  }

  void pools_say_what_became_of_the_last_batches_data() {
    QTest::addColumn<QString>("said");
    QTest::newRow("llm") << QStringLiteral("2 micro-steps are left in the gradients and never used");
    QTest::newRow("colossalai") << QStringLiteral("dropped 2 batches at the end of epoch 1");
    QTest::newRow("accelerate") << QStringLiteral("flushed at epoch end: 2 of 4");
    QTest::newRow("mmengine") << QStringLiteral("flushed at run end: 2 of 4");
  }

  void pools_say_what_became_of_the_last_batches() {
    QFETCH(QString, said);
    StudioFixture studio(std::make_shared<QTemporaryDir>(), "", "accrue-rank");
    studio.show();
    studio.find<QPushButton>("startTenBatches")->click();
    studio.set("accumulation.dialect", std::string(QTest::currentDataTag()));
    studio.action("runAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, 2 * patience_ms);
    auto* label = studio.find<QLabel>("windowSaid");
    QTRY_VERIFY_WITH_TIMEOUT(label->text().contains(said), patience_ms);
    QVERIFY(studio.find("gradientPool")->accessibleDescription().contains(said));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestTenBatches)

}  // namespace test_ten_batches
#include "test_ten_batches.moc"

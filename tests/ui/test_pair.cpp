// SPDX-License-Identifier: GPL-3.0-or-later
// A pair of runs that train at the same time, or one after another if the machine has too few cores.
#include <QDialog>
#include <cstdint>

#include "pair_studio.h"
#include "plots/difference_plot.h"
#include "plots/plot_area.h"
#include "series/run_pair.h"
#include "support/test_program.h"

namespace test_pair {

using namespace accrue;
using namespace accrue::ui;

class TestPair : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void both_train_at_the_same_time_on_equal_threads_and_their_difference_grows() {
    PairStudio studio(4, 100'000);
    studio.set("accumulation.steps", std::int64_t{2});
    QVERIFY(studio.action("trainPairAction")->isEnabled());
    studio.trainPair();
    RunSeries* const first = studio.companion->run();
    RunSeries* const second = studio.control->run();
    QCOMPARE(first->spec()->accumulation.steps, 4);
    QCOMPARE(second->spec()->accumulation.steps, 2);
    for (const RunSeries* run : {first, second}) {
      QCOMPARE(run->plan()->threads_per_rank, 2);
      QVERIFY(!run->spec()->launch.threads_per_rank);  // the user has not set them
    }
    const auto names = [&studio] {
      QStringList all;
      for (const RunSeries* run : studio.library->table()->runs()) all << run->name();
      all.sort();
      return all.join(QLatin1Char('|'));
    };
    QTRY_COMPARE_WITH_TIMEOUT(names(), QStringLiteral("Pair, N = 2|Pair, N = 4|Pair, N = 4 (2)"), patience_ms);
    QCOMPARE(studio.library->table()->baseline(), first);
    QCOMPARE(studio.window->plots()->runs().size(), 2);
    QTRY_VERIFY_WITH_TIMEOUT(studio.find<QDialog>("compareSheet") && studio.find("compareSheet")->isVisible(),
                             patience_ms);
    // The sheet follows them while both are live.
    QTRY_VERIFY_WITH_TIMEOUT(comparisonOf(*first, *second).points.size() > 3, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(
        studio.find<DifferencePlot>("differencePlot")->accessibleName().startsWith(QStringLiteral("Difference of the")),
        patience_ms);
    QVERIFY(studio.bothTrain());
    studio.control->stop();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive() && !studio.companion->isLive(), patience_ms);
    QCOMPARE(first->outcome().outcome, QStringLiteral("stopped"));
    QVERIFY(studio.action("trainPairAction")->isEnabled());
  }

  void the_other_is_held_and_goes_on_with_the_run_of_the_window() {
    PairStudio studio(2, 100'000);
    studio.trainPair();
    studio.control->togglePause();
    QTRY_COMPARE_WITH_TIMEOUT(studio.companion->run()->state(), RunState::paused, patience_ms);
    QCOMPARE(studio.control->state(), RunState::paused);
    studio.control->togglePause();
    QTRY_COMPARE_WITH_TIMEOUT(studio.companion->run()->state(), RunState::running, patience_ms);
    studio.endRun();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.companion->isLive(), patience_ms);
  }

  void a_pair_without_a_change_differs_by_exactly_nothing() {
    PairStudio studio(2);
    studio.action("trainPairAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 3, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive() && !studio.companion->isLive(), patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(studio.find<DifferencePlot>("differencePlot"), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.find<DifferencePlot>("differencePlot")->accessibleName(),
                              QStringLiteral("Difference of the losses: 0 everywhere"), patience_ms);
  }

  void too_few_cores_train_them_one_after_another_and_say_so() {
    PairStudio studio(1);
    studio.set("accumulation.steps", std::int64_t{2});
    studio.action("trainPairAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.message().contains(QStringLiteral("one after another")), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 3, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive() && studio.find<QDialog>("compareSheet"), patience_ms);
    QVERIFY(studio.companion->run() == nullptr);
    QCOMPARE(studio.library->table()->baseline()->spec()->accumulation.steps, 4);
    QCOMPARE(studio.control->run()->spec()->accumulation.steps, 2);
  }

  void more_than_one_change_is_no_pair() {
    PairStudio studio(4);
    studio.set("accumulation.steps", std::int64_t{2});
    studio.set("run.seed", std::int64_t{77});
    studio.action("trainPairAction")->trigger();
    QVERIFY(studio.offered("Load the run's spec"));
    QVERIFY(!studio.control->isLive() && !studio.companion->isLive());
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestPair)

}  // namespace test_pair
#include "test_pair.moc"

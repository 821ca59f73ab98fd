// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <limits>
#include <string>
#include <vector>

#include "accrue/run/window/evaluation_progress.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_evaluation_progress {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
using Losses = std::vector<double>;

class TestEvaluationProgress : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// In the letters B is the best so far, and the run ends at |.
  void losses_decide_which_is_the_best_and_where_the_run_ends_data() {
    const Rows<Losses, int, double, std::string, std::string> row;  // patience, least improvement, letters, reason
    row("always better", {3, 2, 1}, 1, 0.0, "BBB", "");
    row("ends after as many in a row", {3, 2, 2.5, 2.1, 2.2, 1}, 3, 0.0, "BB...|",
        "Finished after update 50 of 300: the validation loss has not improved for 3 evaluations; the best was 2 at "
        "update 20");
    row("a better one begins the count again", {3, 4, 4, 2, 4, 4}, 3, 0.0, "B..B..", "");
    row("as good is not better", {2, 2}, 1, 0.0, "B.|",
        "Finished after update 20 of 300: the validation loss has not improved for 1 evaluation; the best was 2 at "
        "update 10");
    row("better, but not by enough", {3, 2.9, 2.8}, 2, 0.15, "BBB|",
        "Finished after update 30 of 300: the validation loss has not improved by more than 0.15 for 2 evaluations; "
        "the "
        "best was 2.8 at update 30");
    row("a loss below zero", {-1, -2, -1}, 1, 0.5, "BB.|",
        "Finished after update 30 of 300: the validation loss has not improved by more than 0.5 for 1 evaluation; the "
        "best was -2 at update 20");
    row("what is not finite is never the best", {nan, infinity, 5, nan, 4}, 3, 0.0, "..B.B", "");
    row("nothing is finite", {nan, nan}, 2, 0.0, "..|",
        "Finished after update 20 of 300: the validation loss has not improved for 2 evaluations; none was finite");
  }
  void losses_decide_which_is_the_best_and_where_the_run_ends() {
    const auto [losses, patience, least, letters, reason] =
        current_row<Losses, int, double, std::string, std::string>();
    RunSection run{.stop_when = RunMeasure::validation_loss, .patience = patience, .least_improvement = least};
    EvaluationProgress progress;
    std::string said;
    std::int64_t update = 0;
    for (const double loss : losses) {
      if (ends_early(run, progress)) break;
      update += 10;
      said += progress.take(update, loss, least) ? 'B' : '.';
    }
    const bool ends = ends_early(run, progress);
    QCOMPARE(said + (ends ? "|" : ""), letters);
    QCOMPARE(ends ? early_end_reason(run, progress, update, 300) : "", reason);
    run.stop_when = RunMeasure::none;
    QVERIFY(!ends_early(run, progress));
  }
};

ACCRUE_TEST_MAIN(TestEvaluationProgress)

}  // namespace test_evaluation_progress
#include "test_evaluation_progress.moc"

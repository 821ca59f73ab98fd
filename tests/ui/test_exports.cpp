// SPDX-License-Identifier: GPL-3.0-or-later
// Exports from the window, and the plots that it shows at the next start.
#include <QClipboard>
#include <QDeadlineTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMenu>
#include <QMimeData>
#include <QTemporaryDir>
#include <QTest>
#include <QThread>
#include <atomic>
#include <memory>

#include "exchange/exchange_jobs.h"
#include "plots/plot_area.h"
#include "plots/plot_export.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"

namespace test_exports {

using namespace accrue;
using namespace accrue::ui;

class TestExports : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void figures_and_data_are_written_and_copied() {
    RunningStudio studio("micro_ms=1", smallSpec(20));
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    auto* bar = studio.find<MessageBar>("messageBar");
    const QString pdf = studio.home->filePath(QStringLiteral("figure.pdf"));

    studio.dialogs.figure_answer = {};
    studio.dialogs.save_answer = pdf;
    studio.action("exportPlotAction")->trigger();
    QVERIFY(!QFile::exists(pdf));  // cancelled
    studio.dialogs.figure_answer = FigureSize{100.0, 110.0, 6.0};
    studio.action("exportPlotAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(bar->text(), pdf + QStringLiteral(" was written"), patience_ms);
    QVERIFY(QFile::exists(pdf));
    studio.action("exportPlotAction")->trigger();
    QCOMPARE(studio.dialogs.figure_asked_from, *studio.dialogs.figure_answer);  // remembered

    // A height without room is refused, and the next time one that has room is proposed.
    studio.dialogs.figure_answer = FigureSize{100.0, 40.0, 6.0};
    studio.action("exportPlotAction")->trigger();
    QVERIFY2(bar->text().contains(QStringLiteral("no room in 100 x 40 mm")), qPrintable(bar->text()));
    studio.dialogs.figure_answer = {};
    studio.action("exportPlotAction")->trigger();
    const FigureSize proposed = studio.dialogs.figure_asked_from;
    QVERIFY(proposed.widthMm == 100.0 && proposed.heightMm > 40.0 && proposed.fontPoints == 6.0);
    QCOMPARE(figureProblem(studio.window->plots()->figure(proposed)), QString());

    QGuiApplication::clipboard()->clear();
    studio.press(Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
    const QMimeData* copied = QGuiApplication::clipboard()->mimeData();
    QVERIFY(copied->hasImage());
    QVERIFY(copied->data(QStringLiteral("image/svg+xml")).contains("Learning rate"));

    studio.dialogs.save_answer = studio.home->filePath(QStringLiteral("data.json"));
    studio.action("exportDataAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(bar->text(), studio.dialogs.save_answer + QStringLiteral(" was written"), patience_ms);
    QFile json(studio.dialogs.save_answer);
    QVERIFY(json.open(QIODevice::ReadOnly));
    const QJsonObject written = QJsonDocument::fromJson(json.readAll()).object();
    QCOMPARE(written[QStringLiteral("runs")].toArray().size(), 1);
    studio.dialogs.save_answer = studio.home->filePath(QStringLiteral("data.txt"));
    studio.action("exportDataAction")->trigger();
    QVERIFY(!QFile::exists(studio.dialogs.save_answer));
    QVERIFY(bar->text().contains(QStringLiteral(".csv or .json")));
  }

  void what_is_not_there_whole_is_not_written() {
    StudioFixture studio;
    studio.show();
    studio.dialogs.save_answer = studio.home->filePath(QStringLiteral("data.csv"));
    studio.action("exportDataAction")->trigger();
    QVERIFY(studio.find<MessageBar>("messageBar")->text().startsWith(QStringLiteral("No run is shown.")));
    RunSeries unread(QStringLiteral("unread"), 0);
    unread.setName(QStringLiteral("Demo"));
    studio.window->plots()->setRuns({&unread});
    studio.action("exportDataAction")->trigger();
    QVERIFY(studio.find<MessageBar>("messageBar")->text().startsWith(QStringLiteral("Demo is still being read")));
    QVERIFY(!QFile::exists(studio.dialogs.save_answer));
  }

  void a_place_that_cannot_be_written_is_said() {
    OpenStudio studio(smallSpec(5));
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(studio.library->isLoaded(studio.control->run()), patience_ms);
    auto* bar = studio.find<MessageBar>("messageBar");
    for (const char* action : {"exportDataAction", "exportPlotAction"}) {
      const bool data = QLatin1String(action) == QLatin1String("exportDataAction");
      studio.dialogs.save_answer = studio.home->filePath(QLatin1String(data ? "no/data.csv" : "no/figure.png"));
      const QString expected = studio.dialogs.save_answer + QStringLiteral(" could not be written");
      studio.action(action)->trigger();
      QTRY_VERIFY2_WITH_TIMEOUT(bar->text().startsWith(expected), qPrintable(bar->text()), patience_ms);
    }
  }

  void closing_ends_an_export() {
    MessageBar bar;
    auto jobs = std::make_unique<ExchangeJobs>(&bar, nullptr);
    std::atomic_bool begun = false;
    std::atomic_bool told = false;
    bool done = false;
    jobs->run(
        QStringLiteral("Writing"),
        [&](const ExchangeJobs::GoOn& goOn) {
          begun = true;
          for (const QDeadlineTimer deadline(patience_ms); !told && !deadline.hasExpired(); QThread::msleep(1))
            told = !goOn(ExchangeJobs::unknown);
          return true;
        },
        [&done](bool, bool) { done = true; });
    QTRY_VERIFY_WITH_TIMEOUT(begun, patience_ms);
    QVERIFY(!told);
    jobs.reset();
    QVERIFY(told);
    QCoreApplication::processEvents();
    QVERIFY(!done);  // no listener is left
  }

  void the_chosen_plots_are_there_again() {
    const auto home = std::make_shared<QTemporaryDir>();
    QStringList chosen;
    {
      StudioFixture studio(home, "");
      studio.show();
      auto* menu = studio.find<QMenu>("shownPlotsMenu");
      menu->findChild<QAction*>(QStringLiteral("plotAction.gradNormPlot"))->trigger();
      menu->findChild<QAction*>(QStringLiteral("plotAction.learningRatePlot"))->trigger();
      chosen = studio.window->plots()->shownPlots();
      QCOMPARE(chosen,
               (QStringList{QStringLiteral("lossPlot"), QStringLiteral("syncStrip"), QStringLiteral("gradNormPlot")}));
      QVERIFY(studio.window->close());
    }
    StudioFixture studio(home, "");
    studio.show();
    QCOMPARE(studio.window->plots()->shownPlots(), chosen);
    studio.action("resetLayoutAction")->trigger();
    QCOMPARE(studio.window->plots()->shownPlots().size(), 3);
    QVERIFY(studio.window->plots()->shownPlots().contains(QStringLiteral("learningRatePlot")));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestExports)

}  // namespace test_exports
#include "test_exports.moc"

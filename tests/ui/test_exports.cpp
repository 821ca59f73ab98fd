// SPDX-License-Identifier: GPL-3.0-or-later
// What leaves the window, and which plots are in it at the next start.
#include <QClipboard>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMenu>
#include <QMimeData>
#include <QtTest>

#include "plots/plot_area.h"
#include "studio_fixture.h"
#include "widgets/message_bar.h"

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
    QVERIFY(QFile::exists(pdf));
    QCOMPARE(bar->text(), pdf + QStringLiteral(" was written"));
    studio.action("exportPlotAction")->trigger();
    QCOMPARE(studio.dialogs.figure_asked_from, *studio.dialogs.figure_answer);  // remembered

    QGuiApplication::clipboard()->clear();
    studio.press(Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
    const QMimeData* copied = QGuiApplication::clipboard()->mimeData();
    QVERIFY(copied->hasImage());
    QVERIFY(copied->data(QStringLiteral("image/svg+xml")).contains("Learning rate"));

    studio.dialogs.save_answer = studio.home->filePath(QStringLiteral("data.json"));
    studio.action("exportDataAction")->trigger();
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

QTEST_MAIN(TestExports)
#include "test_exports.moc"

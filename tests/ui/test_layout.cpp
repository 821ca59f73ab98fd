// SPDX-License-Identifier: GPL-3.0-or-later
// Where things are in the window: small screens, layouts, docks by key, full screen, and a restart.
#include <QDockWidget>
#include <QLineEdit>
#include <QSplitter>
#include <QTreeView>

#include "studio_fixture.h"
#include "widgets/message_bar.h"
#include "widgets/number_edit.h"

using namespace accrue;
using namespace accrue::ui;

namespace {

/// The smallest screen that the window promises to fit, less a frame and its title bar.
constexpr QSize smallest(1024 - 8, 600 - 24);

/// Of the docks in front; those behind a tab lie beside the window.
QMap<QString, QRect> placesOf(const StudioFixture& studio) {
  QMap<QString, QRect> places;
  for (const QDockWidget* dock : studio.window->findChildren<QDockWidget*>())
    if (dock->isVisible() && dock->x() >= 0) places.insert(dock->objectName(), dock->geometry());
  return places;
}

}  // namespace

class TestLayout : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_window_fits_a_small_screen() {
    RunningStudio studio("micro_ms=5");
    const auto fits = [&studio] {
      const QSize least = studio.window->minimumSizeHint();
      return least.width() <= smallest.width() && least.height() <= smallest.height();
    };
    studio.find<MessageBar>("messageBar")
        ->post({QStringLiteral("test"), RunState::paused, QStringLiteral("A message of one line"), {}, {}});
    for (const QDockWidget* dock : studio.window->findChildren<QDockWidget*>()) {
      studio.window->findChild<QAction*>(QStringLiteral("%1Action").arg(dock->objectName()))->trigger();
      const QSize least = studio.window->minimumSizeHint();
      QVERIFY2(
          fits(),
          qPrintable(QStringLiteral("%1: %2 x %3").arg(dock->objectName()).arg(least.width()).arg(least.height())));
    }
    studio.endRun();
  }

  void every_number_has_room_for_five_digits() {
    OpenStudio studio;
    studio.window->resize(smallest);
    const auto edits = studio.window->findChildren<NumberEdit*>();
    QVERIFY(edits.size() > 20);
    int seen = 0;
    for (const NumberEdit* edit : edits) {
      if (!edit->isVisible()) continue;
      ++seen;
      const auto* line = edit->findChild<QLineEdit*>();
      const int room = line->width() - 2 * 2;  // what QLineEdit keeps free beside the text
      QVERIFY2(room >= line->fontMetrics().horizontalAdvance(QStringLiteral("00000")), qPrintable(edit->objectName()));
    }
    QVERIFY(seen > 5);
  }

  void both_halves_of_a_pipeline_are_in_sight() {
    RunSpec spec = smallSpec(60);
    spec.parallel.data = 1;
    spec.model.layers = 2;
    spec.parallel.pipeline = 2;
    OpenStudio studio(spec);
    studio.window->resize(1366, 768);
    studio.action("pipelineDockAction")->trigger();
    auto* planned = studio.find("pipelinePlanned");
    QTRY_VERIFY_WITH_TIMEOUT(planned->isVisible() && planned->height() > 20, patience_ms);
    QVERIFY(planned->visibleRegion().boundingRect().height() == planned->height());
  }

  void a_layout_comes_back_to_the_pixel() {
    const auto home = std::make_shared<QTemporaryDir>();
    QMap<QString, QRect> places;
    QList<int> plots;
    const QSize size(1366, 768);
    {
      StudioFixture studio(home, "");
      studio.show();
      studio.openSpec(smallSpec());
      studio.action("newSpecAction")->trigger();  // leaves the start page
      studio.window->resize(size);
      studio.window->resizeDocks({studio.find<QDockWidget>("setupDock"), studio.find<QDockWidget>("windowDock")},
                                 {421, 283}, Qt::Horizontal);
      studio.window->resizeDocks({studio.find<QDockWidget>("runsDock")}, {191}, Qt::Vertical);
      auto* splitter = studio.find<QSplitter>("plotSplitter");
      splitter->setSizes({300, 0, 0});
      QTRY_COMPARE_WITH_TIMEOUT(studio.find("windowDock")->width(), 283, patience_ms);
      QTRY_COMPARE_WITH_TIMEOUT(studio.find("setupDock")->width(), 421, patience_ms);
      places = placesOf(studio);
      plots = splitter->sizes();
      QVERIFY(places.size() >= 3);
      QVERIFY(studio.window->close());
    }
    StudioFixture studio(home, "");
    studio.show();
    // A window manager gives a window its size some time after it was shown.
    studio.window->resize(900, 640);
    studio.window->resize(size);
    QTRY_COMPARE_WITH_TIMEOUT(placesOf(studio), places, patience_ms);
    studio.action("newSpecAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.find<QSplitter>("plotSplitter")->sizes(), plots, patience_ms);
    // A reset also resets the plots.
    studio.action("resetLayoutAction")->trigger();
    const QList<int> reset = studio.find<QSplitter>("plotSplitter")->sizes();
    for (qsizetype place = 0; place < plots.size(); ++place)
      if (studio.find<QSplitter>("plotSplitter")->widget(static_cast<int>(place))->isVisible())
        QVERIFY(reset[place] > 0);
  }

  void a_docks_key_shows_it_and_hides_it_only_with_the_focus() {
    OpenStudio studio;
    auto* events = studio.find<QDockWidget>("eventsDock");
    auto* setup = studio.find<QDockWidget>("setupDock");
    const auto focused = [](const QDockWidget* dock) { return dock->isAncestorOf(QApplication::focusWidget()); };
    studio.find<QDockWidget>("runsDock")->raise();
    studio.press(Qt::Key_4, Qt::AltModifier);  // a tab behind
    QVERIFY(!events->isHidden() && focused(events));
    QVERIFY(!events->visibleRegion().isEmpty());
    studio.press(Qt::Key_1, Qt::AltModifier);
    QVERIFY(focused(setup));
    QVERIFY(!events->isHidden());
    studio.press(Qt::Key_1, Qt::AltModifier);  // again, with the focus in it
    QVERIFY(setup->isHidden());
    QVERIFY(!studio.action("setupDockAction")->isChecked());
    studio.press(Qt::Key_1, Qt::AltModifier);
    QVERIFY(setup->isVisible() && focused(setup));
    QVERIFY(studio.action("setupDockAction")->isChecked());
  }

  void full_screen_returns_to_maximised() {
    StudioFixture studio;
    studio.window->showMaximized();
    QVERIFY(QTest::qWaitForWindowActive(studio.window.get()));
    studio.action("fullScreenAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.window->isFullScreen(), patience_ms);
    studio.action("fullScreenAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isFullScreen(), patience_ms);
    QVERIFY(studio.window->isMaximized());
  }

  void layouts_show_what_they_are_for() {
    OpenStudio studio;
    const auto shown = [&studio](const char* dock) { return !studio.find<QDockWidget>(dock)->isHidden(); };
    studio.press(Qt::Key_2, Qt::ControlModifier);
    QVERIFY(shown("runsDock") && !shown("setupDock") && !shown("windowDock"));
    studio.press(Qt::Key_3, Qt::ControlModifier);
    QVERIFY(shown("windowDock") && shown("pipelineDock") && !shown("setupDock"));
    studio.press(Qt::Key_4, Qt::ControlModifier);
    QVERIFY(shown("windowDock") && !shown("runsDock"));
    QVERIFY(shown("setupDock") && !shown("lessonDock"));  // no lesson is open
    studio.press(Qt::Key_1, Qt::ControlModifier);
    for (const char* dock : {"setupDock", "windowDock", "runsDock", "eventsDock", "plannerDock"}) QVERIFY(shown(dock));
  }
};

QTEST_MAIN(TestLayout)
#include "test_layout.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// Arrangement of the window: small screens, layouts, docks by key, full screen, and a restart.
#include <QDockWidget>
#include <QLineEdit>
#include <QMap>
#include <QSplitter>
#include <QTabBar>
#include <QTemporaryDir>
#include <QToolBar>
#include <QToolButton>
#include <QToolTip>
#include <QTreeView>

#include "kit/text_scale.h"
#include "live/gradient_pool.h"
#include "plots/loss_plot.h"
#include "shell/view_size.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"
#include "widgets/number_edit.h"

namespace test_layout {

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
  void cleanup() { setTextScale(1.0); }

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

  void large_text_does_not_outgrow_the_screen_and_goes_again() {
    OpenStudio studio;
    const QSize size(1366, 768);
    studio.window->resize(size);
    auto* setup = studio.find<QDockWidget>("setupDock");
    studio.action("newSpecAction")->trigger();  // leaves the start page
    QCoreApplication::processEvents();
    const int width = setup->width();
    const auto* runs = studio.find<QDockWidget>("runsDock");
    const int height = runs->height();
    const auto settle = [] {
      for (int round = 0; round < 5; ++round) QCoreApplication::processEvents();
    };
    const int icon = studio.window->findChild<QToolBar*>()->iconSize().width();
    const int close = studio.find<QToolButton>("setupDock.close")->iconSize().width();
    for (int presses = 0; presses < 9; ++presses) {
      studio.press(Qt::Key_Plus, Qt::ControlModifier);
      settle();
      QCOMPARE(studio.window->size(), size);
    }
    // It stops when a window of this height would hold too few lines, and the form keeps a few of its rows.
    QVERIFY2(textScale() >= 1.75 && textScale() < largestText, qPrintable(QString::number(textScale())));
    QVERIFY(studio.window->findChild<QToolBar*>()->iconSize().width() >= 1.7 * icon);
    QVERIFY(studio.find<QToolButton>("setupDock.close")->iconSize().width() >= 1.7 * close);
    for (const QTabBar* tabs : studio.window->findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly))
      for (int tab = 0; tabs->x() >= 0 && tab < tabs->count(); ++tab)
        QVERIFY2(tabs->tabRect(tab).width() > tabs->fontMetrics().horizontalAdvance(tabs->tabText(tab)),
                 qPrintable(tabs->tabText(tab)));
    QVERIFY(studio.find("fieldForm")->height() >= 5 * studio.find("fieldForm")->fontMetrics().height());
    for (const QDockWidget* dock : studio.window->findChildren<QDockWidget*>())
      if (!dock->visibleRegion().isEmpty())
        QVERIFY2(studio.window->rect().contains(dock->geometry()), qPrintable(dock->objectName()));
    studio.action("resetLayoutAction")->trigger();
    settle();
    QCOMPARE(studio.window->size(), size);
    studio.action("presenterAction")->trigger();
    settle();
    QCOMPARE(studio.window->size(), size);
    studio.action("presenterAction")->trigger();
    studio.press(Qt::Key_0, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(!QToolTip::isVisible(), patience_ms);  // the one that said that it stops here
    QTRY_COMPARE_WITH_TIMEOUT(textScale(), 1.0, patience_ms);
    const auto given_back = [&] { return std::abs(setup->width() - width) <= 2; };
    QTRY_VERIFY2_WITH_TIMEOUT(given_back(), qPrintable(QStringLiteral("%1, was %2").arg(setup->width()).arg(width)),
                              patience_ms);
    QTRY_VERIFY2_WITH_TIMEOUT(std::abs(runs->height() - height) <= 2, qPrintable(QString::number(runs->height())),
                              patience_ms);
    QCOMPARE(studio.window->size(), size);
  }

  void the_loss_can_be_read_in_the_largest_text() {
    RunningStudio studio("micro_ms=5");
    studio.window->resize(1366, 768);
    for (int press = 0; press < 8; ++press) studio.action("largerTextAction")->trigger();
    QVERIFY(textScale() > 1.2);
    const auto* loss = studio.window->findChild<LossPlot*>();
    const auto least = static_cast<int>(80.0 * textScale());
    QTRY_VERIFY_WITH_TIMEOUT(loss->canvas().axisRect()->height() >= least, patience_ms);
    const QWidget* sight = loss->parentWidget()->parentWidget();
    QVERIFY(loss->mapTo(sight, loss->rect().bottomLeft()).y() < sight->height());
    studio.endRun();
  }

  void a_message_is_not_squeezed_beside_its_button() {
    MessageBar bar;
    bar.post({QStringLiteral("failed"),
              RunState::failed,
              QStringLiteral("words ").repeated(10),
              QStringLiteral("Run again from the start"),
              {}});
    const auto* text = bar.findChild<QLabel*>(QStringLiteral("messageText"));
    const auto* button = bar.findChild<QPushButton*>(QStringLiteral("messageAction"));
    const int letter = bar.fontMetrics().averageCharWidth();
    for (const int letters : {200, 50, 200}) {
      bar.resize(letters * letter, 12 * bar.fontMetrics().height());
      bar.layout()->activate();
      QCOMPARE(button->y() > text->geometry().bottom(), letters == 50);
      QCOMPARE(button->x() > text->geometry().right(), letters == 200);
    }
  }

  void the_largest_text_leaves_a_window_its_lines() {
    QCOMPARE(ViewSize::largestScale(720.0, 15.0), 2.0);
    QCOMPARE(ViewSize::largestScale(2160.0, 15.0), largestText);
    QCOMPARE(ViewSize::largestScale(240.0, 15.0), 1.0);
  }

  void text_that_shrinks_step_by_step_gives_back_what_it_took() {
    OpenStudio studio;
    studio.window->resize(1366, 768);
    auto* setup = studio.find<QDockWidget>("setupDock");
    studio.action("newSpecAction")->trigger();  // leaves the start page
    const auto settle = [] {
      for (int round = 0; round < 5; ++round) QCoreApplication::processEvents();
    };
    settle();
    const int width = setup->width();
    QMap<double, int> widths;  // by size of text, while it grew
    for (int presses = 0; presses < 8; ++presses) {
      widths.insert(textScale(), setup->width());
      studio.press(Qt::Key_Plus, Qt::ControlModifier);
      settle();
    }
    QVERIFY(setup->width() > width + 50);
    while (textScale() > 1.0) {
      studio.press(Qt::Key_Minus, Qt::ControlModifier);
      QTRY_VERIFY2_WITH_TIMEOUT(
          std::abs(setup->width() - widths.value(textScale())) <= 2,
          qPrintable(
              QStringLiteral("at %1: %2, was %3").arg(textScale()).arg(setup->width()).arg(widths.value(textScale()))),
          patience_ms);
    }
    QCOMPARE(setup->width(), width);
  }

  void the_start_page_has_a_command() {
    OpenStudio studio;
    studio.action("newSpecAction")->trigger();
    auto* start = studio.find("startPage");
    QVERIFY(start && !start->isVisible());
    studio.action("startPageAction")->trigger();
    QVERIFY(start->isVisible());
    studio.action("startPageAction")->trigger();
    QVERIFY(!start->isVisible());
  }

  void the_message_of_edits_set_aside_goes_with_its_cause() {
    StudioFixture studio;
    studio.show();
    studio.window->runDemo();
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->isLive(), patience_ms);
    studio.endRun();
    studio.set("accumulation.steps", std::int64_t{7});
    auto* bar = studio.find<MessageBar>("messageBar");
    studio.action("newSpecAction")->trigger();
    QVERIFY2(bar->text().contains(QStringLiteral("set aside")), qPrintable(bar->text()));
    studio.set("accumulation.steps", std::int64_t{3});
    QVERIFY(bar->text().contains(QStringLiteral("set aside")));
    studio.action("newSpecAction")->trigger();  // yet another document
    QVERIFY2(!bar->text().contains(QStringLiteral("set aside")), qPrintable(bar->text()));
  }

  void the_window_panel_at_its_narrowest_cuts_nothing() {
    RunningStudio studio("micro_ms=20");
    studio.window->resizeDocks({studio.find<QDockWidget>("windowDock")}, {1}, Qt::Horizontal);
    auto* pool = studio.find<GradientPool>("gradientPool");
    QTRY_COMPARE_WITH_TIMEOUT(pool->visibleRegion().boundingRect().width(), pool->width(), patience_ms);
    for (const QString& line : pool->toolTip().split(QLatin1Char('\n'))) QVERIFY2(line.size() <= 60, qPrintable(line));
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
    // As low as it can be: the panel asks for what it lacks.
    studio.window->resizeDocks({studio.find<QDockWidget>("runsDock")}, {1}, Qt::Vertical);
    studio.action("pipelineDockAction")->trigger();
    auto* planned = studio.find("pipelinePlanned");
    QTRY_VERIFY_WITH_TIMEOUT(planned->isVisible() && planned->height() > 20, patience_ms);
    const auto seen = [&] { return planned->visibleRegion().boundingRect().height() == planned->height(); };
    QTRY_VERIFY_WITH_TIMEOUT(seen(), patience_ms);
  }

  void a_pipeline_behind_a_tab_takes_no_room_from_the_runs() {
    RunSpec spec = smallSpec(60);
    spec.parallel.data = 1;
    spec.model.layers = 2;
    spec.parallel.pipeline = 2;
    const OpenStudio studio(spec);
    auto* runs = studio.find<QDockWidget>("runsDock");
    for (int turn = 0; turn < 5; ++turn) QCoreApplication::processEvents();
    // A little more than a quarter of the window, less the tabs.
    QVERIFY2(runs->height() > studio.window->height() / 5, qPrintable(QString::number(runs->height())));
  }

  void both_halves_of_a_running_pipeline_fit_a_small_screen() {
    RunSpec spec = smallSpec(100'000);
    spec.parallel.data = 1;
    spec.model.layers = 2;
    spec.parallel.pipeline = 2;
    RunningStudio studio("micro_ms=5", spec);
    studio.window->resize(smallest);
    studio.action("pipelineDockAction")->trigger();
    for (const char* name : {"pipelinePlanned", "pipelineMeasured"}) {
      const QWidget* half = studio.find(name);
      const auto seen = [half] {
        return half->isVisible() && half->visibleRegion().boundingRect().size() == half->size();
      };
      QTRY_VERIFY_WITH_TIMEOUT(seen(), patience_ms);
    }
    studio.endRun();
  }

  void labels_stand_above_their_fields_where_the_form_is_narrow() {
    OpenStudio studio;
    auto* dock = studio.find<QDockWidget>("setupDock");
    const QWidget* label = studio.find("label.accumulation.dialect");
    const QWidget* field = studio.find("field.accumulation.dialect");
    const auto beside = [&] { return label->geometry().right() < field->geometry().left(); };
    const auto above = [&] { return label->geometry().bottom() <= field->geometry().top(); };
    studio.window->resize(1366, 768);
    studio.window->resizeDocks({dock}, {400}, Qt::Horizontal);
    QTRY_VERIFY_WITH_TIMEOUT(beside(), patience_ms);
    studio.window->resizeDocks({dock}, {dock->minimumSizeHint().width()}, Qt::Horizontal);
    QTRY_VERIFY_WITH_TIMEOUT(above(), patience_ms);
    studio.window->resizeDocks({dock}, {400}, Qt::Horizontal);
    QTRY_VERIFY_WITH_TIMEOUT(beside(), patience_ms);
  }

  void a_tab_says_the_name_of_a_dock_once() {
    OpenStudio studio;
    const auto* title = studio.find<QDockWidget>("setupDock")->titleBarWidget();
    const auto named = [title] {
      for (const auto* label : title->findChildren<QLabel*>())
        if (label->isVisible() && label->text() == QStringLiteral("Set-up")) return true;
      return false;
    };
    QTRY_VERIFY_WITH_TIMEOUT(!named(), patience_ms);
    for (const char* beside : {"rackDock", "plannerDock"}) studio.find<QDockWidget>(beside)->hide();
    QTRY_VERIFY_WITH_TIMEOUT(named(), patience_ms);
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

ACCRUE_WINDOW_TEST_MAIN(TestLayout)

}  // namespace test_layout
#include "test_layout.moc"

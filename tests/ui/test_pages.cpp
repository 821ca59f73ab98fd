// SPDX-License-Identifier: GPL-3.0-or-later
// Every page in every theme, at the smallest window and with larger text: nothing is cut, hidden, pale or without a
// name. `ui_whole test_pages --pictures DIR` also writes a picture of each.
#include <QDialog>
#include <QDir>
#include <QDockWidget>
#include <QStyleFactory>
#include <cstring>

#include "page_audit.h"
#include "pages/centre_page.h"
#include "studio_fixture.h"
#include "style/text_scale.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"

namespace test_pages {

using namespace accrue;
using namespace accrue::ui;

namespace {

/// The smallest screens that the window promises to fit, less a frame and a title bar: 1024 x 600, and 1920 x 1080 at
/// twice the size.
constexpr QSize smallest(1024 - 8, 600 - 24);
constexpr QSize doubled(960 - 8, 540 - 24);
constexpr QSize usual(1366, 768);

QString pictures_folder;

/// Of a run in two stages, so that every panel has something to show.
RunSpec twoStages(std::int64_t updates) {
  RunSpec spec = smallSpec(updates);
  spec.model.layers = 2;
  spec.parallel.data = 1;
  spec.parallel.pipeline = 2;
  return spec;
}

/// Docks in front one after another, and the windows beside the main one.
const char* const docks[] = {"setupDock", "rackDock", "plannerDock", "windowDock",   "inspectorDock", "ranksDock",
                             "dataDock",  "runsDock", "eventsDock",  "pipelineDock", "lessonDock",    "galleryDock"};
const char* const sheets[] = {"compareDialectsAction", "isoBatchAction",   "glossaryAction", "shortcutsAction",
                              "differencesAction",     "exportCodeAction", "runNotesAction", "groupRunsAction"};

void settle() {
  // Layouts follow fonts and sizes in turns of the event loop.
  for (int turn = 0; turn < 4; ++turn) {
    QCoreApplication::sendPostedEvents();
    QCoreApplication::processEvents();
  }
}

}  // namespace

class TestPages : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void cleanup() { setTextScale(1.0); }

  void the_audit_sees_what_it_is_there_for() {
    QWidget page;
    page.resize(200, 120);
    QPalette pale = widgetPalette(lightColors());
    page.setPalette(pale);
    pale.setColor(QPalette::WindowText, QColor(0xBBBBBB));
    auto* cut = new QLabel(QStringLiteral("a sentence that is longer than its label"), &page);
    cut->setGeometry(4, 4, 40, 16);
    auto* weak = new QLabel(QStringLiteral("weak"), &page);
    weak->setPalette(pale);
    weak->setGeometry(4, 24, 100, 20);
    auto* outside = new QPushButton(QStringLiteral("far"), &page);
    outside->setGeometry(150, 48, 100, 24);
    auto* unnamed = new QToolButton(&page);
    unnamed->setFocusPolicy(Qt::TabFocus);
    unnamed->setGeometry(4, 80, 24, 24);
    page.show();
    settle();
    QCOMPARE(cutTexts(&page).size(), 1);
    cut->setToolTip(cut->text());
    QCOMPARE(cutTexts(&page), QStringList());
    QCOMPARE(partsOutside(&page).size(), 1);
    QCOMPARE(weakColours(&page).size(), 1);
    QCOMPARE(unnamedNodes(QAccessible::queryAccessibleInterface(&page)).size(), 1);
    unnamed->setAccessibleName(QStringLiteral("named"));
    QCOMPARE(unnamedNodes(QAccessible::queryAccessibleInterface(&page)), QStringList());
    // Fusion by itself draws frames that hardly stand out.
    const std::unique_ptr<QStyle> fusion(QStyleFactory::create(QStringLiteral("Fusion")));
    QPlainTextEdit field(&page);
    field.setGeometry(110, 4, 60, 40);
    field.setStyle(fusion.get());
    field.show();
    settle();
    QCOMPARE(weakColours(&page).size(), 2);
  }

  void a_frame_stands_out_wherever_it_lies() {
    const Theme theme(*qApp);
    QWidget page;
    page.resize(480, 40);
    for (int place = 0; place < 8; ++place)
      (new QLineEdit(&page))->setGeometry(8 + 51 * place, 8, 40, 24);  // on each quarter of a pixel at 1.25
    page.show();
    settle();
    QCOMPARE(weakColours(&page), QStringList());
  }

  void no_page_is_wider_or_higher_than_a_small_screen_data() {
    QTest::addColumn<QSize>("size");
    QTest::newRow("1024 x 600") << smallest;
    QTest::newRow("1920 x 1080 at twice the size") << doubled;
  }
  void no_page_is_wider_or_higher_than_a_small_screen() {
    QFETCH(const QSize, size);
    RunningStudio studio("micro_ms=5", twoStages(100'000));
    onEveryPage(studio, [&](QWidget* page, const QString& name) {
      if (page != studio.window.get()) return QStringList();
      studio.window->resize(size);
      settle();
      QStringList marks = partsOutside(page) + cutTexts(page);
      const QSize least = studio.window->minimumSizeHint();
      if (least.width() > size.width() || least.height() > size.height())
        marks.append(QStringLiteral("needs %1 x %2").arg(least.width()).arg(least.height()));
      save(page, QStringLiteral("%1-%2").arg(name).arg(size.width()));
      return marks;
    });
    studio.endRun();
  }

  void nothing_is_cut_without_a_tooltip_in_larger_text_data() {
    QTest::addColumn<double>("scale");
    for (const double scale : {1.0, 1.25, 1.5, 2.0}) QTest::newRow(qPrintable(QString::number(scale))) << scale;
  }
  void nothing_is_cut_without_a_tooltip_in_larger_text() {
    QFETCH(const double, scale);
    RunningStudio studio("micro_ms=5", twoStages(100'000));
    studio.window->resize(QSizeF(usual * scale).toSize());
    setTextScale(scale);
    onEveryPage(studio, [&](QWidget* page, const QString& name) {
      settle();
      save(page, QStringLiteral("%1-text%2").arg(name).arg(100.0 * scale));
      return cutTexts(page);
    });
    studio.endRun();
  }

  void text_and_frames_stand_out_in_every_theme_data() {
    QTest::addColumn<ThemeMode>("theme");
    QTest::newRow("light") << ThemeMode::light;
    QTest::newRow("dark") << ThemeMode::dark;
    QTest::newRow("contrast") << ThemeMode::highContrast;
  }
  void text_and_frames_stand_out_in_every_theme() {
    QFETCH(const ThemeMode, theme);
    RunningStudio studio("micro_ms=5", twoStages(100'000));
    studio.theme->setMode(theme);
    studio.window->resize(usual);
    onEveryPage(studio, [&](QWidget* page, const QString& name) {
      settle();
      save(page, QStringLiteral("%1-%2").arg(name, QLatin1String(QTest::currentDataTag())));
      return weakColours(page);
    });
    studio.endRun();
  }

  void every_node_that_takes_the_focus_has_a_name_in_every_state() {
    OpenStudio studio(twoStages(100'000), "micro_ms=2");
    const auto look = [&studio](const char* state) {
      onEveryPage(studio, [&](QWidget* page, const QString&) {
        return unnamedNodes(QAccessible::queryAccessibleInterface(page));
      });
      QVERIFY2(!QTest::currentTestFailed(), state);
    };
    look("idle");
    studio.action("stepPhaseAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    look("paused");
    studio.action("pauseAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    look("running");
    studio.endRun();
    look("ended");
  }

  void the_start_page_never_scrolls_data() {
    QTest::addColumn<QSize>("size");
    QTest::newRow("1366 x 768") << usual;
    QTest::newRow("1024 x 600") << smallest;
    QTest::newRow("1920 x 1080 at twice the size") << doubled;
    QTest::newRow("1920 x 1080") << QSize(1920, 1080);
  }
  void the_start_page_never_scrolls() {
    QFETCH(const QSize, size);
    const auto home = std::make_shared<QTemporaryDir>();
    QSettings(home->filePath(QStringLiteral("studio.conf")), QSettings::IniFormat)
        .setValue(QStringLiteral("files/recent"), QStringList{home->filePath(QStringLiteral("a.accrue"))});
    StudioFixture studio(home, "");
    studio.show();
    studio.window->resize(size);
    settle();
    auto* start = studio.find<StartPage>("startPage");
    const auto* area = start->findChild<QAbstractScrollArea*>();
    save(studio.window.get(), QStringLiteral("start-%1").arg(size.width()));
    QTRY_COMPARE(area->horizontalScrollBar()->maximum(), 0);
    QTRY_COMPARE(area->verticalScrollBar()->maximum(), 0);
    QCOMPARE(cutTexts(start), QStringList());
    // Whatever its shape, the examples can be opened from it.
    const bool cards = studio.find("startTenBatches")->isVisible();
    QCOMPARE(studio.find("startExamples")->isVisible(), !cards);
    if (size.width() >= usual.width()) QVERIFY(cards);
  }

 private:
  /// Calls `look` for the window with each dock in front and for each sheet, and fails with what it finds.
  template <typename Look>
  static void onEveryPage(const StudioFixture& studio, Look look) {
    QStringList all;
    const auto add = [&](QWidget* page, const QString& name) {
      const QStringList marks = look(page, name);
      for (const QString& mark : marks) all.append(QStringLiteral("%1: %2").arg(name, mark));
    };
    for (const char* name : docks) {
      auto* dock = studio.find<QDockWidget>(name);
      dock->show();
      dock->raise();
      settle();
      add(studio.window.get(), QLatin1String(name));
      if (QLatin1String(name) == QLatin1String("lessonDock") || QLatin1String(name) == QLatin1String("galleryDock"))
        dock->hide();
    }
    for (const char* name : sheets) {
      if (!studio.action(name)->isEnabled()) continue;
      const QWidgetList before = QApplication::topLevelWidgets();
      studio.action(name)->trigger();
      settle();
      for (QWidget* sheet : QApplication::topLevelWidgets()) {
        if (sheet == studio.window.get() || !sheet->isVisible() || !sheet->isWindow() ||
            !qobject_cast<QWidget*>(sheet) || sheet->windowType() == Qt::ToolTip || sheet->windowType() == Qt::Popup)
          continue;
        add(sheet, QLatin1String(name));
        sheet->close();
      }
    }
    all.removeDuplicates();
    for (const QString& mark : all) qWarning("%s", qPrintable(mark));
    QCOMPARE(all.size(), 0);
  }

  static void save(QWidget* page, const QString& name) {
    if (pictures_folder.isEmpty()) return;
    page->grab().save(QStringLiteral("%1/%2.png").arg(pictures_folder, name));
  }
};

int run_pages(int argc, char** argv) {
  int kept = 0;
  for (int i = 0; i < argc; ++i)
    if (i > 0 && i + 1 < argc && std::strcmp(argv[i], "--pictures") == 0)
      pictures_folder = QString::fromLocal8Bit(argv[++i]);
    else
      argv[kept++] = argv[i];
  if (!pictures_folder.isEmpty()) QDir().mkpath(pictures_folder);
  QApplication application(kept, argv);
  TestPages test;
  return QTest::qExec(&test, kept, argv);
}

const accrue::test::TestFile test_file(__FILE__, &run_pages);

}  // namespace test_pages
#include "test_pages.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// Every page, lesson, sheet and question in every theme, at the smallest window and with larger text: nothing is cut,
// hidden, pale or without a name. `ui_whole test_pages --pictures DIR` also writes a picture of each.
#include <QDialog>
#include <QDir>
#include <QDockWidget>
#include <QSettings>
#include <QStyleFactory>
#include <QTemporaryDir>
#include <QTimer>
#include <cstring>

#include "kit/text_scale.h"
#include "page_audit.h"
#include "plots/plot_area.h"
#include "runs/runs_panel.h"
#include "shell/centre_page.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "teach/lesson_player.h"
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
constexpr QSize large(1920, 1080);

QString pictures_folder;

/// Of a run in two stages, so that every panel has something to show.
RunSpec twoStages(std::int64_t updates) {
  RunSpec spec = smallSpec(updates);
  spec.model.layers = 2;
  spec.parallel.data = 1;
  spec.parallel.pipeline = 2;
  return spec;
}

/// The commands that open a window beside the main one.
const char* const sheets[] = {"compareDialectsAction", "isoBatchAction",  "manualAction",
                              "glossaryAction",        "shortcutsAction", "differencesAction",
                              "exportCodeAction",      "runNotesAction",  "groupRunsAction",
                              "compareRunsAction",     "showTableAction", "chooseLibrariesAction"};

void settle() {
  // Layouts follow fonts and sizes in turns of the event loop.
  for (int turn = 0; turn < 4; ++turn) {
    QCoreApplication::sendPostedEvents();
    QCoreApplication::processEvents();
  }
  // The last turn may have brought news of the run, whose texts are laid out before anything is painted.
  for (int turn = 0; turn < 4; ++turn) QCoreApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
}

/// With a run that trains and one beside it, both selected, so that every command of theirs is enabled.
class AuditedStudio : public RunningStudio {
 public:
  AuditedStudio() : RunningStudio("micro_ms=5", twoStages(100'000)) {
    RunSeries* first = control->run();
    endRun();
    press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(
        control->run() != first && control->state() == RunState::running && control->run()->last().update >= 1,
        patience_ms);
    find<QAbstractItemView>("runsTable")->selectAll();
  }
};

/// Findings, each once.
class Marks {
 public:
  void add(const QString& page, const QStringList& found) {
    for (const QString& mark : found) all_.append(QStringLiteral("%1: %2").arg(page, mark));
  }
  void judge(const char* state) {
    all_.removeDuplicates();
    const QString found = QStringLiteral("%1\n%2").arg(QLatin1String(state), all_.join(QLatin1Char('\n')));
    QVERIFY2(all_.isEmpty(), qPrintable(found));
  }

 private:
  QStringList all_;
};

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
    QTest::newRow("1366 x 768") << usual;
    QTest::newRow("1920 x 1080") << large;
  }
  void no_page_is_wider_or_higher_than_a_small_screen() {
    QFETCH(const QSize, size);
    AuditedStudio studio;
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
  }

  void nothing_is_cut_without_a_tooltip_in_larger_text_data() {
    QTest::addColumn<double>("scale");
    for (const double scale : {1.0, 1.25, 1.5, 2.0}) QTest::newRow(qPrintable(QString::number(scale))) << scale;
  }
  void nothing_is_cut_without_a_tooltip_in_larger_text() {
    QFETCH(const double, scale);
    AuditedStudio studio;
    studio.window->resize(QSizeF(usual * scale).toSize());
    setTextScale(scale);
    onEveryPage(studio, [&](QWidget* page, const QString& name) {
      settle();
      save(page, QStringLiteral("%1-text%2").arg(name).arg(100.0 * scale));
      return cutTexts(page);
    });
  }

  void text_and_frames_stand_out_in_every_theme_data() {
    QTest::addColumn<ThemeMode>("theme");
    QTest::newRow("light") << ThemeMode::light;
    QTest::newRow("dark") << ThemeMode::dark;
    QTest::newRow("contrast") << ThemeMode::highContrast;
  }
  void text_and_frames_stand_out_in_every_theme() {
    QFETCH(const ThemeMode, theme);
    AuditedStudio studio;
    studio.theme->setMode(theme);
    studio.window->resize(usual);
    onEveryPage(studio, [&](QWidget* page, const QString& name) {
      settle();
      save(page, QStringLiteral("%1-%2").arg(name, QLatin1String(QTest::currentDataTag())));
      return weakColours(page);
    });
  }

  void every_node_that_takes_the_focus_has_a_name_in_every_state() {
    OpenStudio studio(twoStages(100'000), "micro_ms=2");
    lookForNames(studio, "idle");
    studio.action("stepPhaseAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    lookForNames(studio, "paused");
    studio.action("pauseAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    lookForNames(studio, "running");

    StudioFixture other(studio.home, "micro_ms=2");
    other.window->show();
    other.control->attach(studio.control->run()->folder());
    QTRY_VERIFY_WITH_TIMEOUT(other.control->attached() && other.control->state() == RunState::running, patience_ms);
    lookForNames(other, "attached");
    other.window->close();

    studio.endRun();
    lookForNames(studio, "ended");
  }

  void every_node_has_a_name_while_something_is_wrong_data() {
    QTest::addColumn<QString>("script");
    QTest::addColumn<RunState>("state");
    // Rank 1 makes no progress after micro-step 9, which the supervisor notices; it does not carry out a stop either.
    QTest::newRow("degraded") << QStringLiteral("micro_ms=5,stall=1@9") << RunState::degraded;
    QTest::newRow("stopping") << QStringLiteral("micro_ms=5,stall=1@9") << RunState::stopping;
    QTest::newRow("failed") << QStringLiteral("micro_ms=5,die=1@9:9") << RunState::failed;
    // The ranks of the second attempt take their time to join.
    QTest::newRow("restarting") << QStringLiteral("micro_ms=5,die=1@9:9,once,join_ms=3000") << RunState::restarting;
  }
  void every_node_has_a_name_while_something_is_wrong() {
    QFETCH(const QString, script);
    QFETCH(const RunState, state);
    RunSpec spec = twoStages(100'000);
    spec.launch.stall_timeout_s = 0.2;
    spec.launch.max_restarts = state == RunState::restarting ? 1 : 0;
    spec.checkpoint.every_updates = 1;
    OpenStudio studio(spec, script.toUtf8().constData());
    studio.press(Qt::Key_F5);
    if (state == RunState::stopping) {
      QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::degraded, patience_ms);
      studio.press(Qt::Key_F5, Qt::ShiftModifier);
    }
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), state, patience_ms);
    lookForNames(studio, QTest::currentDataTag());
    studio.endRun();
  }

  void every_node_of_a_lesson_has_a_name() {
    OpenStudio studio;
    const QString path = studio.home->filePath(QStringLiteral("two.accrue-lesson"));
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(R"(accrue_lesson = 1
title = "Two updates"
spec = '''
accrue = 1
[model]
kind = "gpt"
[data]
kind = "synthetic"
samples = 64
[run]
updates = 2
'''
[layout]
fields = ["accumulation.steps"]
panels = ["window", "runs"]
[locked]
"run.updates" = "Two are enough."
[[step]]
title = "Train"
text = "Press Run."
hint = "F5."
answer = [[]]
[[step.check]]
says = "Two updates were made."
updates = 2
)");
    file.close();
    studio.window->openPath(path);
    auto* player = studio.window->findChild<LessonPlayer*>();
    QVERIFY(player->lesson());
    lookForNames(studio, "lesson");
    studio.action("runAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(player->isStepDone(), patience_ms);
    lookForNames(studio, "step done");
  }

  void the_start_page_never_scrolls_data() {
    QTest::addColumn<QSize>("size");
    QTest::newRow("1366 x 768") << usual;
    QTest::newRow("1024 x 600") << smallest;
    QTest::newRow("1920 x 1080 at twice the size") << doubled;
    QTest::newRow("1920 x 1080") << large;
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
    // The examples can be opened from every shape of the page.
    const bool cards = studio.find("startTenBatches")->isVisible();
    QCOMPARE(studio.find("startExamples")->isVisible(), !cards);
    if (size.width() >= usual.width()) QVERIFY(cards);
  }

 private:
  /// Fails with the nodes of every page that have no name.
  static void lookForNames(const StudioFixture& studio, const char* state) {
    Marks marks;
    lookAtWindow(studio, [&](QWidget* page, const QString& name) {
      marks.add(name, unnamedNodes(QAccessible::queryAccessibleInterface(page)));
    });
    marks.judge(state);
  }

  /// Calls `look` for every page that there is, and fails with what it finds: the window with each dock in front and
  /// each sheet while a run trains, a lesson, and the questions.
  template <typename Look>
  static void onEveryPage(AuditedStudio& studio, Look look) {
    Marks marks;
    const auto add = [&](QWidget* page, const QString& name) { marks.add(name, look(page, name)); };
    const QStringList seen = lookAtWindow(studio, add);
    for (const char* sheet : sheets) QVERIFY2(seen.contains(QLatin1String(sheet)), sheet);
    lookAtQuestions(studio, add);
    studio.endRun();
    lookAtLesson(studio, add);
    marks.judge("");
  }

  /// The window with each dock in front, and the sheets whose commands are enabled, which it names.
  template <typename Look>
  static QStringList lookAtWindow(const StudioFixture& studio, Look look) {
    for (QDockWidget* dock : studio.window->findChildren<QDockWidget*>()) {
      const bool hidden = dock->isHidden();
      dock->show();
      dock->raise();
      settle();
      look(studio.window.get(), dock->objectName());
      if (hidden) dock->hide();
    }
    QStringList seen;
    for (const char* name : sheets) {
      if (!studio.action(name)->isEnabled()) continue;
      studio.action(name)->trigger();
      lookAtSheets(studio, QLatin1String(name), look);
      seen.append(QLatin1String(name));
    }
    return seen;
  }

  /// The windows beside the main one, which are closed again.
  template <typename Look>
  static void lookAtSheets(const StudioFixture& studio, const QString& name, Look look) {
    settle();
    for (QWidget* sheet : QApplication::topLevelWidgets()) {
      if (sheet == studio.window.get() || !sheet->isVisible() || !sheet->isWindow() ||
          sheet->windowType() == Qt::ToolTip || sheet->windowType() == Qt::Popup || qobject_cast<QMainWindow*>(sheet))
        continue;
      look(sheet, name);
      sheet->close();
    }
    settle();
  }

  template <typename Look>
  static void lookAtLesson(const StudioFixture& studio, Look look) {
    studio.window->openPath(builtInLessons().front());
    QVERIFY(studio.window->findChild<LessonPlayer*>()->lesson());
    settle();
    look(studio.window.get(), QStringLiteral("lesson"));
    studio.action("lessonHintAction")->trigger();
    settle();
    look(studio.window.get(), QStringLiteral("lesson-hint"));
    studio.action("instructorNotesAction")->trigger();
    lookAtSheets(studio, QStringLiteral("instructorNotes"), look);
    studio.action("leaveLessonAction")->trigger();
    settle();
  }

  /// The questions as they are asked, each answered with Cancel.
  template <typename Look>
  static void lookAtQuestions(const StudioFixture& studio, Look look) {
    WidgetDialogs dialogs;
    QWidget* window = studio.window.get();
    int asked = 0;
    const auto question = [&](const char* name, auto ask) {
      QTimer::singleShot(0, window, [&] {
        auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
        QVERIFY2(dialog, name);
        settle();
        look(dialog, QLatin1String(name));
        dialog->reject();
        ++asked;
      });
      ask();
    };
    const QList<BundleRow> rows{{QStringLiteral("/runs/a"), QStringLiteral("Demo, N = 4"), true, 1 << 20},
                                {QStringLiteral("/runs/b"), QStringLiteral("Demo, N = 16"), false, 0}};
    question("bundle", [&] { dialogs.askBundle(window, rows); });
    question("figure", [&] { dialogs.askFigure(window, FigureSize{}, [](const FigureSize&) { return QString(); }); });
    question("close", [&] { dialogs.askClose(window, QStringLiteral("Demo trains: update 20 of 240.")); });
    question("unsaved", [&] { dialogs.askUnsaved(window, QStringLiteral("Demo")); });
    question("steps", [&] { dialogs.askSteps(window, 4); });
    question("seeds", [&] { dialogs.askSeeds(window); });
    QCOMPARE(asked, 6);
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

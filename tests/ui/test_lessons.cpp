// SPDX-License-Identifier: GPL-3.0-or-later
// A lesson in the window, over ranks that really train: Enter opens it, its checks see the printed digits, and leaving
// it brings back the window. The bug gallery: a run with a bug, and one without, drawn over each other.
#include <QCheckBox>
#include <QDialog>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>

#include "canvas/plot_view.h"
#include "plots/plot_area.h"
#include "runs/runs_panel.h"
#include "setup/field_form.h"
#include "setup/field_row.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "teach/lesson_player.h"

namespace test_lessons {

using namespace accrue;
using namespace accrue::ui;

namespace {

class LessonStudio : public StudioFixture {
 public:
  LessonStudio() : StudioFixture(std::make_shared<QTemporaryDir>(), "", "accrue-rank") {}
  LessonPlayer* player() const { return window->findChild<LessonPlayer*>(); }
  QString text(const char* name) const { return find<QLabel>(name)->text(); }
  FieldRow* row(const char* key) const { return find<FieldForm>("fieldForm")->row(QString::fromLatin1(key)); }
  bool sees(std::size_t number) const {
    const auto& results = player()->results();
    return number < results.size() && results[number].state == CheckState::met;
  }
  /// Begins a run that lasts, and is no part of a lesson.
  void train() {
    show();
    openSpec(smallSpec(100'000));
    press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(control->isLive(), patience_ms);
  }
  /// Opens lesson 1 from the start page.
  void begin() {
    show();
    QTRY_VERIFY_WITH_TIMEOUT(QApplication::focusWidget(), patience_ms);
    press(Qt::Key_Return);
    QVERIFY(player()->lesson());
  }
};

}  // namespace

class TestLessons : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void lesson_1_by_keyboard_alone() {
    LessonStudio studio;
    studio.show();
    QTRY_VERIFY_WITH_TIMEOUT(QApplication::focusWidget(), patience_ms);
    QCOMPARE(QApplication::focusWidget()->objectName(), QStringLiteral("startLesson1"));
    studio.press(Qt::Key_Return);
    QCOMPARE(studio.text("lessonStepTitle"), QStringLiteral("Fill the window"));
    QVERIFY2(studio.text("lessonFound.1") == QStringLiteral("to do"), qPrintable(studio.text("lessonFound.1")));

    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees(0) && studio.sees(1) && studio.sees(2), patience_ms);
    QCOMPARE(studio.text("lessonFound.1"), QStringLiteral("seen. Found 2.04000."));
    QVERIFY(studio.text("lessonDone").startsWith(QStringLiteral("This step is done.")));

    studio.press(Qt::Key_PageDown, Qt::AltModifier);
    QCOMPARE(studio.text("lessonStepTitle"), QStringLiteral("All eight at once"));
    studio.set("accumulation.steps", std::int64_t{1});
    studio.set("accumulation.micro_batch", std::int64_t{8});
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees(0), patience_ms);
    QCOMPARE(studio.player()->stepsDone(), std::size_t{2});
    // The runs of the lesson lie over each other.
    QCOMPARE(studio.window->plots()->runs().size(), 2);
    studio.press(Qt::Key_PageUp, Qt::AltModifier);
    QCOMPARE(studio.text("lessonStepTitle"), QStringLiteral("Fill the window"));
    QVERIFY(studio.sees(1));
  }

  void a_lesson_shows_its_own_fields_and_panels_and_says_why_some_are_locked() {
    LessonStudio studio;
    studio.begin();
    QVERIFY(studio.find<QDockWidget>("lessonDock")->isVisible());
    QVERIFY(studio.find<QDockWidget>("windowDock")->isVisible());
    QVERIFY(studio.find<QDockWidget>("rackDock")->isHidden());
    QVERIFY(studio.row("accumulation.steps")->isVisible());
    QVERIFY(studio.row("accumulation.steps")->editorWidget()->isEnabled());
    QVERIFY(!studio.row("optimizer.kind")->isVisible());
    QVERIFY(studio.row("optimizer.lr")->isVisible());
    QVERIFY(!studio.row("optimizer.lr")->editorWidget()->isEnabled());
    QVERIFY(studio.text("remark.optimizer.lr").startsWith(QStringLiteral("Locked: ")));
    QCOMPARE(studio.window->plots()->clock(), Clock::sample);

    studio.action("leaveLessonAction")->trigger();
    QVERIFY(!studio.player()->lesson());
    QVERIFY(studio.find<QDockWidget>("lessonDock")->isHidden());
    QVERIFY(!studio.find<QDockWidget>("rackDock")->isHidden());
    QVERIFY(studio.row("optimizer.kind")->isVisible());
    QVERIFY(studio.row("optimizer.lr")->editorWidget()->isEnabled());
    QCOMPARE(studio.window->plots()->clock(), Clock::update);
    QVERIFY(!studio.action("nextStepAction")->isEnabled());
  }

  void no_panel_changes_a_key_that_the_lesson_keeps() {
    LessonStudio studio;
    studio.show();
    studio.window->openPath(QStringLiteral(":/lessons/6-no-sync.accrue-lesson"));
    const RunSpec before = studio.document.spec();
    const auto refused = [&studio, &before] {
      const bool said = studio.text("messageText").startsWith(QStringLiteral("Lesson 6 keeps Data-parallel ranks as"));
      return said && studio.document.spec() == before && studio.player()->lesson();
    };
    // A card of the rack, whose switch goes back.
    auto* card = studio.find<QCheckBox>("pluginSwitch.data");
    QVERIFY(card && card->isChecked());
    card->click();
    QVERIFY2(refused(), qPrintable(studio.text("messageText")));
    QVERIFY(card->isChecked());
    // A run of another set-up: its spec is no part of the lesson.
    RunSeries other(QStringLiteral("other"), 0);
    RunSpec alone = before;
    alone.parallel.data = 1;
    other.setSpec(alone);
    Q_EMIT studio.window->findChild<RunsPanel*>()->cloneRequested(&other);
    QVERIFY(refused());
    // One of the lesson is, and the lesson stays open.
    RunSpec answer = before;
    answer.accumulation.steps = 4;
    RunSeries own(QStringLiteral("own"), 0);
    own.setSpec(answer);
    Q_EMIT studio.window->findChild<RunsPanel*>()->cloneRequested(&own);
    QCOMPARE(studio.document.spec(), answer);
    QVERIFY(studio.player()->lesson());

    QPushButton* leave = studio.offered("Leave the lesson");
    QVERIFY(leave);
    leave->click();
    QVERIFY(!studio.player()->lesson());
    studio.set("parallel.data", std::int64_t{1});
    QCOMPARE(studio.document.spec().parallel.data, 1);
  }

  void a_wrong_run_is_not_counted_and_spoils_nothing() {
    LessonStudio studio;
    studio.begin();
    const auto train = [&studio] {
      const RunSeries* before = studio.control->run();
      studio.press(Qt::Key_F5);
      QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() != before && studio.control->state() == RunState::finished,
                               patience_ms);
    };
    QCOMPARE(studio.text("lessonFound.1"), QStringLiteral("to do"));
    studio.set("accumulation.micro_batch", std::int64_t{4});
    train();
    QTRY_VERIFY2_WITH_TIMEOUT(
        studio.text("lessonFound.1").contains(QStringLiteral("The last run (Micro-batch = 4) does not count.")),
        qPrintable(studio.text("lessonFound.1")), patience_ms);
    studio.set("accumulation.micro_batch", std::int64_t{2});
    train();
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees(0) && studio.sees(1) && studio.sees(2), patience_ms);
  }

  void another_processor_is_named_and_not_asked_for_its_bits() {
    QFile lesson(QStringLiteral(":/lessons/1-one-weight.accrue-lesson"));
    LessonStudio studio;
    QVERIFY(lesson.open(QIODevice::ReadOnly));
    QString text = QString::fromUtf8(lesson.readAll());
    text.replace(QRegularExpression(QStringLiteral("printed_on = \"[^\"]*\"")),
                 QStringLiteral("printed_on = \"Another CPU, AVX512\""));
    const QString path = studio.home->filePath(QStringLiteral("foreign.accrue-lesson"));
    QFile foreign(path);
    QVERIFY(foreign.open(QIODevice::WriteOnly) && foreign.write(text.toUtf8()) > 0);
    foreign.close();
    studio.show();
    studio.window->openPath(path);
    QVERIFY(studio.player()->lesson());
    QVERIFY(studio.find<QLabel>("lessonProcessor")->isHidden());
    studio.player()->next();
    studio.player()->next();
    studio.set("accumulation.micro_batch", std::int64_t{1});
    studio.set("parallel.data", std::int64_t{2});
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees(0), patience_ms);
    QCOMPARE(studio.player()->results()[2].state, CheckState::not_here);
    QVERIFY2(studio.text("lessonFound.2")
                 .startsWith(QStringLiteral("not comparable. The last bits belong to another "
                                            "processor (Another CPU, AVX512); this one is ")),
             qPrintable(studio.text("lessonFound.2")));
    QVERIFY(studio.find<QLabel>("lessonProcessor")->isVisible());
    const QString said = studio.text("lessonProcessor");
    QVERIFY2(said.startsWith(QStringLiteral("This processor (")) &&
                 said.contains(QStringLiteral("is not the one that the lesson was printed on (Another CPU, AVX512)")),
             qPrintable(said));
  }

  void a_step_that_asks_for_an_axis_sees_the_key() {
    LessonStudio studio;
    studio.show();
    studio.window->openPath(QStringLiteral(":/lessons/3-four-ways.accrue-lesson"));
    QVERIFY(studio.player()->lesson());
    studio.player()->next();
    QCOMPARE(studio.text("lessonStepTitle"), QStringLiteral("Change the clock"));
    QVERIFY(!studio.sees(0));
    studio.window->plots()->currentView()->canvas().setFocus();
    studio.press(Qt::Key_3);
    QVERIFY(studio.sees(0));
    QCOMPARE(studio.text("lessonFound.0"), QStringLiteral("seen. Found in the plots."));
    studio.press(Qt::Key_1);
    QVERIFY(studio.sees(0));  // what was seen stays seen
    studio.action("resetLessonAction")->trigger();
    studio.player()->next();
    QVERIFY(!studio.sees(0));
  }

  void keys_of_greyed_steps_change_no_field() {
    LessonStudio studio;
    studio.begin();
    for (std::size_t step = 1; step < studio.player()->lesson()->steps.size(); ++step) studio.player()->next();
    const RunSpec before = studio.document.spec();
    studio.find("field.teaching.bug")->setFocus();
    QVERIFY(studio.find("field.teaching.bug")->hasFocus());
    studio.press(Qt::Key_PageDown, Qt::AltModifier);
    QCOMPARE(studio.document.spec(), before);
    QCOMPARE(studio.text("messageText"), QStringLiteral("This is the last step of the lesson."));
    // The lesson's key leads to it, where Next is greyed, too.
    studio.press(Qt::Key_L, Qt::ControlModifier);
    QVERIFY(studio.find("lessonPanel")->isAncestorOf(QApplication::focusWidget()));
  }

  void leaving_a_lesson_that_was_chosen_from_the_list_leads_back_to_it() {
    LessonStudio studio;
    studio.openSpec(smallSpec());
    studio.show();
    studio.press(Qt::Key_L, Qt::ControlModifier);
    QTest::keyClick(studio.find("lessonList"), Qt::Key_Return);
    QVERIFY(studio.player()->lesson());
    studio.action("leaveLessonAction")->trigger();
    QCOMPARE(QApplication::focusWidget(), studio.find("lessonList"));
  }

  void the_list_marks_what_was_done_and_what_is_next() {
    const auto home = std::make_shared<QTemporaryDir>();
    QSettings(home->filePath(QStringLiteral("studio.conf")), QSettings::IniFormat)
        .setValue(QStringLiteral("lessons/done"), QStringList{QStringLiteral("1"), QStringLiteral("3")});
    StudioFixture studio(home, "");
    auto* list = studio.find<QListWidget>("lessonList");
    QVERIFY(list->item(0)->text().contains(QStringLiteral("(6 min, done)")));
    QVERIFY(list->item(1)->text().contains(QStringLiteral("(8 min, next)")));
    QVERIFY(list->item(2)->text().contains(QStringLiteral(", done)")));
    QVERIFY(list->item(3)->text().contains(QStringLiteral(" min)")));
    QCOMPARE(list->currentRow(), 1);
  }

  void a_layout_or_the_presenter_does_not_end_a_lesson() {
    LessonStudio studio;
    studio.begin();
    studio.press(Qt::Key_2, Qt::ControlModifier);
    QVERIFY(studio.player()->lesson());
    QVERIFY(studio.find<QDockWidget>("lessonDock")->isHidden());
    studio.press(Qt::Key_4, Qt::ControlModifier);
    QVERIFY(studio.player()->lesson());
    for (const char* dock : {"lessonDock", "setupDock"}) QVERIFY(!studio.find<QDockWidget>(dock)->isHidden());
    studio.action("presenterAction")->trigger();
    studio.action("leaveLessonAction")->trigger();
    QVERIFY(!studio.action("presenterAction")->isChecked());
    QVERIFY(studio.find<QDockWidget>("lessonDock")->isHidden());
    for (const char* dock : {"setupDock", "runsDock", "rackDock"}) QVERIFY(!studio.find<QDockWidget>(dock)->isHidden());
  }

  void a_lesson_does_not_end_a_run_that_is_not_its_own() {
    LessonStudio studio;
    studio.train();
    QVERIFY(studio.control->isLive());
    studio.window->openPath(builtInLessons().front());
    QVERIFY(!studio.player()->lesson());
    QVERIFY(studio.control->isLive() && !studio.control->endedByUser());
    QVERIFY2(studio.text("messageText").startsWith(QStringLiteral("A run has not ended.")),
             qPrintable(studio.text("messageText")));
    QPushButton* stop = studio.offered("Stop");
    QVERIFY(stop);
    stop->click();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
    studio.window->openPath(builtInLessons().front());
    QVERIFY(studio.player()->lesson());
  }

  void edits_of_a_document_that_took_the_lessons_place_are_still_to_be_saved() {
    LessonStudio studio;
    studio.begin();
    studio.document.restore(smallSpec(), QStringLiteral("kept"), {}, {});
    QVERIFY(studio.document.isModified());
    studio.player()->close();
    QVERIFY(studio.document.isModified());
  }

  void reset_is_back_at_the_beginning_within_a_second() {
    LessonStudio studio;
    studio.begin();
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees(1), patience_ms);
    studio.press(Qt::Key_PageDown, Qt::AltModifier);
    studio.set("accumulation.steps", std::int64_t{7});
    QElapsedTimer since;
    since.start();
    studio.action("resetLessonAction")->trigger();
    QVERIFY2(since.elapsed() < 1000, qPrintable(QString::number(since.elapsed())));
    QCOMPARE(studio.player()->stepIndex(), std::size_t{0});
    QCOMPARE(studio.document.spec().accumulation.steps, std::int64_t{4});
    QVERIFY(!studio.sees(0));
    QVERIFY(studio.window->plots()->runs().isEmpty());
    // One press too many costs nothing: what was seen comes back, with its step and its curves.
    studio.action("resetLessonAction")->trigger();
    QPushButton* back = studio.offered("Take it back");
    QVERIFY(back);
    back->click();
    QCOMPARE(studio.player()->stepIndex(), std::size_t{1});
    QVERIFY(!studio.player()->canTakeResetBack());
    QVERIFY(!back->isVisible());
    QCOMPARE(studio.window->plots()->runs().size(), 1);
    studio.press(Qt::Key_PageUp, Qt::AltModifier);
    QVERIFY(studio.sees(1));
  }

  void a_run_that_a_reset_ends_is_not_held_against_the_first_step() {
    LessonStudio studio;
    studio.begin();
    studio.press(Qt::Key_F11);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    studio.action("resetLessonAction")->trigger();
    // The next run's end is the first that is judged.
    QSignalSpy judged(studio.player(), &LessonPlayer::judged);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees(1), patience_ms);
    QCOMPARE(judged.count(), 1);
  }

  void a_lesson_that_was_left_goes_on_where_it_was() {
    LessonStudio studio;
    studio.begin();
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees(1), patience_ms);
    studio.press(Qt::Key_PageDown, Qt::AltModifier);
    studio.action("leaveLessonAction")->trigger();
    QVERIFY(!studio.player()->lesson());
    studio.begin();
    QCOMPARE(studio.player()->stepIndex(), std::size_t{0});
    QPushButton* there = studio.offered("Go on there");
    QVERIFY(there);
    there->click();
    QCOMPARE(studio.player()->stepIndex(), std::size_t{1});
    studio.press(Qt::Key_PageUp, Qt::AltModifier);
    QVERIFY(studio.sees(1));
  }

  void edits_of_a_lesson_wait_in_it_while_another_is_open() {
    LessonStudio studio;
    studio.show();
    studio.window->openPath(QStringLiteral(":/lessons/6-no-sync.accrue-lesson"));
    const RunSpec given = studio.document.spec();
    studio.set("accumulation.steps", given.accumulation.steps / 2);
    const RunSpec edited = studio.document.spec();
    QVERIFY(edited != given);
    studio.window->openPath(QStringLiteral(":/lessons/2-unequal-counts.accrue-lesson"));
    QVERIFY(!studio.document.isModified());
    studio.window->openPath(QStringLiteral(":/lessons/6-no-sync.accrue-lesson"));
    QVERIFY(studio.document.spec() == given);
    QPushButton* there = studio.offered("Go on there");
    QVERIFY(there);
    there->click();
    QVERIFY(studio.document.spec() == edited);
  }

  void the_end_of_a_lesson_leads_to_the_next_one() {
    LessonStudio studio;
    studio.show();
    studio.window->openPath(QStringLiteral(":/lessons/6-no-sync.accrue-lesson"));
    const std::size_t steps = studio.player()->lesson()->steps.size();
    auto* next = studio.find<QPushButton>("nextLesson");
    for (std::size_t step = 0; step < steps; ++step) {
      QVERIFY(next->isHidden());
      for (const auto& settings : studio.player()->step().answer) {
        studio.document.setSpec(answered(studio.document.spec(), settings), QStringLiteral("answer"));
        studio.press(Qt::Key_F5);
        QTRY_VERIFY_WITH_TIMEOUT(studio.player()->isStepDone(), patience_ms);
      }
      if (step + 1 < steps) studio.player()->next();
    }
    QCOMPARE(studio.text("lessonDone"), QStringLiteral("The lesson is done."));
    QVERIFY(!next->isHidden());
    QVERIFY2(next->text().startsWith(QStringLiteral("Go on with 7. ")), qPrintable(next->text()));
    next->click();
    QCOMPARE(studio.player()->lesson()->number, std::int64_t{7});
    QVERIFY(next->isHidden());
  }

  void the_hint_and_what_is_missing_are_shown_when_asked_for() {
    LessonStudio studio;
    studio.begin();
    QVERIFY(studio.find<QLabel>("lessonHint")->isHidden());
    studio.action("lessonHintAction")->trigger();
    QVERIFY(!studio.find<QLabel>("lessonHint")->isHidden());
    studio.press(Qt::Key_Return, Qt::ControlModifier | Qt::ShiftModifier);
    QCOMPARE(studio.text("lessonFound.0"), QStringLiteral("to do. No such run has ended yet."));
  }

  void instructor_notes_are_a_window_of_their_own() {
    LessonStudio studio;
    studio.begin();
    const QString notes = QString::fromStdString(studio.player()->lesson()->notes).trimmed();
    for (const QLabel* label : studio.find("lessonPanel")->findChildren<QLabel*>())
      QVERIFY(!label->text().contains(notes));
    studio.action("instructorNotesAction")->trigger();
    auto* sheet = studio.find<QDialog>("instructorNotes");
    QVERIFY(sheet && sheet->isVisible() && !sheet->isModal());
    QVERIFY(notes.contains(QLatin1Char('\n')));  // lines of the file, which are no lines of the window
    QVERIFY(studio.text("instructorText").contains(notes.simplified()));
  }

  void a_lesson_that_cannot_be_read_is_refused_with_its_place() {
    LessonStudio studio;
    studio.show();
    const QString file = studio.home->filePath(QStringLiteral("bad.accrue-lesson"));
    QFile bad(file);
    QVERIFY(bad.open(QIODevice::WriteOnly));
    bad.write("accrue_lesson = 1\ntitle = \"T\"\nspec = '''\naccrue = 1\n'''\ncolour = 1\n");
    bad.close();
    studio.window->openPath(file);
    QVERIFY(!studio.player()->lesson());
    QVERIFY2(studio.text("messageText").contains(QStringLiteral("bad.accrue-lesson:6:1: error: colour")),
             qPrintable(studio.text("messageText")));
  }

  void the_list_has_the_eight_lessons_and_ctrl_l_shows_it() {
    LessonStudio studio;
    studio.openSpec(smallSpec());
    studio.show();
    studio.press(Qt::Key_L, Qt::ControlModifier);
    auto* list = studio.find<QListWidget>("lessonList");
    QVERIFY(list->isVisible());
    QCOMPARE(list->count(), 8);
    QCOMPARE(QApplication::focusWidget(), list);
    list->setCurrentRow(3);
    QTest::keyClick(list, Qt::Key_Return);
    QCOMPARE(studio.player()->lesson()->number, std::int64_t{4});
    QVERIFY(!list->isVisible());
    // In a lesson the key shows the list in front of it, and leads back.
    auto* back = studio.find<QPushButton>("backToLesson");
    for (int round = 0; round < 2; ++round) {
      studio.press(Qt::Key_L, Qt::ControlModifier);
      QVERIFY(list->isVisible() && back->isVisible());
      QCOMPARE(QApplication::focusWidget(), list);
      round == 0 ? studio.press(Qt::Key_L, Qt::ControlModifier) : back->click();
      QVERIFY(!list->isVisible());
      QCOMPARE(studio.player()->lesson()->number, std::int64_t{4});
    }
    studio.action("leaveLessonAction")->trigger();
    QVERIFY(!back->isVisible());
  }

  void the_gallery_says_what_it_waits_for() {
    LessonStudio studio;
    studio.train();
    QVERIFY(studio.control->isLive());
    studio.action("bugGalleryAction")->trigger();
    QVERIFY(!studio.find<QPushButton>("runBug")->isEnabled());
    QVERIFY2(studio.text("bugLamp").contains(QStringLiteral("Stop it (Shift+F5)")), qPrintable(studio.text("bugLamp")));
    studio.endRun();
    QTRY_VERIFY(studio.find<QPushButton>("runBug")->isEnabled());
    QVERIFY(studio.text("bugLamp").startsWith(QStringLiteral("Run it")));
  }

  void a_click_beside_the_cards_gives_enter_back_to_the_lesson() {
    LessonStudio studio;
    studio.show();
    auto* first = studio.find<QPushButton>("startLesson1");
    QTRY_COMPARE(QApplication::focusWidget(), static_cast<QWidget*>(first));
    studio.row("accumulation.micro_batch")->editorWidget()->setFocus();
    QVERIFY(!first->hasFocus());
    QTest::mouseClick(first->parentWidget(), Qt::LeftButton, {}, QPoint(2, 2));
    QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(first));
  }

  void a_cards_digit_presses_it() {
    LessonStudio studio;
    studio.show();
    const auto* gallery = studio.find<QPushButton>("startGallery");
    QVERIFY(gallery->accessibleDescription().endsWith(QStringLiteral("Key 3.")));
    studio.press(Qt::Key_3);
    QTRY_VERIFY(studio.find("bugList")->isVisible());
  }

  void a_bug_is_run_found_and_fixed_with_one_click() {
    LessonStudio studio;
    studio.show();
    studio.press(Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
    auto* list = studio.find<QListWidget>("bugList");
    QCOMPARE(list->count(), 15);
    QCOMPARE(QApplication::focusWidget(), list);
    auto* fix = studio.find<QPushButton>("fixBug");
    QVERIFY(!fix->isEnabled());
    QTest::mouseClick(studio.find<QPushButton>("runBug"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->state() == RunState::finished, patience_ms);
    RunSeries* broken = studio.control->run();
    QCOMPARE(broken->lamp().light(), ExactnessLamp::Light::different);
    QVERIFY2(studio.text("bugLamp").startsWith(QStringLiteral("not exact")), qPrintable(studio.text("bugLamp")));
    QVERIFY(broken->name().endsWith(QStringLiteral("(bug: mean_of_means)")));

    QTRY_VERIFY(fix->isEnabled());
    QTest::mouseClick(fix, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() != broken && studio.control->state() == RunState::finished,
                             patience_ms);
    QCOMPARE(studio.control->run()->name(), QStringLiteral("Mean of means, fixed"));
    QCOMPARE(studio.control->run()->lamp().light(), ExactnessLamp::Light::exact);
    QVERIFY(studio.control->run()->last().loss != broken->last().loss);
    QCOMPARE(studio.window->plots()->runs().size(), 2);
    QVERIFY(!fix->isEnabled());
    // Space must not press what happens to be next to a button that went grey.
    QCOMPARE(QApplication::focusWidget(), list);
    QVERIFY2(studio.text("bugLamp").startsWith(QStringLiteral("exact")), qPrintable(studio.text("bugLamp")));
    // The verdict is that of this bug's fix, and of no other run.
    list->setCurrentRow(1);
    QVERIFY(!studio.text("bugLamp").startsWith(QStringLiteral("exact")));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestLessons)

}  // namespace test_lessons
#include "test_lessons.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// The window around a lesson, on a screen of 1366 x 768: what a step shows, where the focus is, and what leaving it
// gives back. The ranks are fake.
#include <QDir>
#include <QDockWidget>
#include <QLabel>
#include <QListWidget>
#include <QScrollBar>
#include <QTemporaryDir>

#include "document/spec_files.h"
#include "plots/plot_area.h"
#include "runs/runs_panel.h"
#include "setup/field_form.h"
#include "setup/field_row.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "teach/lesson_player.h"

namespace test_lesson_desk {

using namespace accrue;
using namespace accrue::ui;

namespace {

class DeskStudio : public StudioFixture {
 public:
  DeskStudio() {
    window->resize(1366, 768);
    show();
  }
  LessonPlayer* player() const { return window->findChild<LessonPlayer*>(); }
  /// The lesson whose third step has a hint and names a field far down the form; its fourth step has no hint.
  void begin() {
    window->openPath(QStringLiteral(":/lessons/2-unequal-counts.accrue-lesson"));
    QVERIFY(player()->lesson());
  }
  void goTo(std::size_t step) {
    while (player()->stepIndex() < step) player()->next();
    while (player()->stepIndex() > step) player()->previous();
  }
  /// Whether all of a field is in sight.
  bool sees(const char* key) const {
    const QWidget* field = find<FieldForm>("fieldForm")->row(QString::fromLatin1(key))->editorWidget();
    return field->isVisible() && field->visibleRegion().boundingRect() == field->rect();
  }
};

void settle() {
  for (int round = 0; round < 5; ++round) QCoreApplication::processEvents();
}

/// Parts of a panel that lie over each other, and texts that have less height than they need.
QStringList crowded(const QWidget* panel) {
  QStringList marks;
  const auto parts = panel->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly);
  for (const QWidget* part : parts) {
    if (part->isHidden()) continue;
    const auto* label = qobject_cast<const QLabel*>(part);
    if (label && label->wordWrap() && label->height() < label->heightForWidth(label->width()))
      marks << QStringLiteral("%1 has %2 px").arg(label->objectName()).arg(label->height());
    for (const QWidget* other : parts)
      if (other > part && !other->isHidden() && other->geometry().intersects(part->geometry()))
        marks << QStringLiteral("%1 over %2").arg(part->objectName(), other->objectName());
  }
  return marks;
}

}  // namespace

class TestLessonDesk : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void texts_of_the_bug_gallery_do_not_overlap() {
    DeskStudio studio;
    studio.begin();
    studio.action("bugGalleryAction")->trigger();
    auto* dock = studio.find<QDockWidget>("galleryDock");
    auto* list = studio.find<QListWidget>("bugList");
    for (const int height : {1, 200, 300, 400}) {
      studio.window->resizeDocks({dock}, {height}, Qt::Vertical);
      for (int row = 0; row < list->count(); ++row) {
        list->setCurrentRow(row);
        settle();
        const QStringList marks = crowded(studio.find("bugGalleryPanel"));
        QVERIFY2(marks.isEmpty(), qPrintable(QStringLiteral("bug %1, dock %2 px high: %3")
                                                 .arg(row)
                                                 .arg(dock->height())
                                                 .arg(marks.join(QStringLiteral(", ")))));
      }
    }
  }

  void a_bug_that_is_selected_again_has_its_verdict_and_its_runs() {
    DeskStudio studio;
    studio.action("bugGalleryAction")->trigger();
    auto* list = studio.find<QListWidget>("bugList");
    const auto* lamp = studio.find<QLabel>("bugLamp");
    const auto* runs = studio.find<RunsPanel>("runsPanel");
    const auto runBug = [&studio] {
      const RunSeries* before = studio.control->run();
      studio.find<QPushButton>("runBug")->click();
      QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->run() != before && !studio.control->isLive(),
                               patience_ms);
    };
    list->setCurrentRow(0);
    runBug();
    RunSeries* first = studio.control->run();
    first->append({{0, 1'000'000, 0, ExactnessCheck{.update = 1, .relative = 0.5, .verdict = "not"}}});
    list->setCurrentRow(1);
    QVERIFY2(lamp->text().startsWith(QStringLiteral("Run it")), qPrintable(lamp->text()));
    runBug();
    QCOMPARE(runs->shownRuns(), QList<RunSeries*>{studio.control->run()});
    list->setCurrentRow(0);
    QVERIFY2(lamp->text().startsWith(QStringLiteral("not exact")), qPrintable(lamp->text()));
    QCOMPARE(runs->shownRuns(), QList<RunSeries*>{first});
    studio.library->takeOut(first);
    QVERIFY2(lamp->text().startsWith(QStringLiteral("Run it")), qPrintable(lamp->text()));
  }

  void a_lesson_with_fewer_steps_begins_at_its_first() {
    DeskStudio studio;
    studio.begin();
    studio.goTo(4);
    for (const bool left : {false, true}) {
      if (left) studio.action("leaveLessonAction")->trigger();
      studio.window->openPath(QStringLiteral(":/lessons/6-no-sync.accrue-lesson"));
      QCOMPARE(studio.player()->lesson()->number, std::int64_t{6});
      QCOMPARE(studio.player()->stepIndex(), std::size_t{0});
      studio.begin();
      studio.goTo(4);
    }
  }

  void edits_in_a_lesson_are_never_lost_silently_and_never_asked_about() {
    DeskStudio studio;
    studio.dialogs.unsaved_answer = UnsavedAnswer::cancel;  // a question would keep the document
    const auto steps = [&studio] { return studio.document.spec().accumulation.steps; };
    const auto bringBack = [&] {
      QPushButton* back = studio.offered("Bring them back");
      QVERIFY(back);
      back->click();
      QCOMPARE(steps(), 7);
      QVERIFY(studio.document.isModified());
      QVERIFY(!studio.player()->lesson());
    };
    // Another lesson.
    studio.begin();
    studio.set("accumulation.steps", std::int64_t{7});
    studio.window->openPath(QStringLiteral(":/lessons/6-no-sync.accrue-lesson"));
    QCOMPARE(studio.player()->lesson()->number, std::int64_t{6});
    QVERIFY(!studio.document.isModified());
    bringBack();
    // Leaving, and then another document.
    studio.begin();
    studio.set("accumulation.steps", std::int64_t{7});
    studio.action("leaveLessonAction")->trigger();
    QCOMPARE(steps(), 7);
    QVERIFY(studio.document.isModified());
    QVERIFY(studio.window->files()->openDemo());
    bringBack();
    // Without edits nothing is offered.
    studio.begin();
    studio.window->openPath(QStringLiteral(":/lessons/6-no-sync.accrue-lesson"));
    QVERIFY(!studio.document.isModified());
    QVERIFY(!studio.find("messageAction")->isVisible());
  }

  void quitting_in_a_lesson_keeps_its_edits_as_a_draft() {
    const auto home = std::make_shared<QTemporaryDir>();
    for (const bool edited : {false, true}) {
      StudioFixture studio(home, "");
      studio.show();
      studio.window->openPath(QStringLiteral(":/lessons/2-unequal-counts.accrue-lesson"));
      if (edited) studio.set("accumulation.steps", std::int64_t{7});
      QVERIFY(studio.window->close());
      QCOMPARE(QDir(home->path()).entryList({QStringLiteral("draft-*.accrue")}).size(), edited ? 1 : 0);
    }
    StudioFixture studio(home, "");
    studio.show();
    QPushButton* restore = studio.offered("Restore");
    QVERIFY(restore);
    restore->click();
    QCOMPARE(studio.document.spec().accumulation.steps, 7);
  }

  void taking_a_reset_back_gives_back_the_edits() {
    DeskStudio studio;
    studio.begin();
    studio.action("resetLessonAction")->trigger();
    QVERIFY(!studio.player()->canTakeResetBack());
    studio.goTo(2);
    studio.set("accumulation.steps", std::int64_t{7});
    studio.document.setSampleLock(SampleLock::per_update);
    for (int press = 0; press < 2; ++press) {
      studio.action("resetLessonAction")->trigger();
      QCOMPARE(studio.player()->stepIndex(), std::size_t{0});
      QVERIFY(!studio.document.isModified());
    }
    QPushButton* back = studio.offered("Take it back");
    QVERIFY(back);
    back->click();
    QCOMPARE(studio.player()->stepIndex(), std::size_t{2});
    QCOMPARE(studio.document.spec().accumulation.steps, 7);
    QVERIFY(studio.document.isModified());
    QCOMPARE(studio.document.sampleLock(), SampleLock::per_update);
    QVERIFY(!studio.document.lockedKeys().why.empty());
    QVERIFY(!studio.player()->canTakeResetBack());
  }

  void leaving_a_lesson_gives_back_the_start_page() {
    DeskStudio studio;
    const QWidget* start = studio.find("startPage");
    QVERIFY(start->isVisible());
    studio.begin();
    QVERIFY(!start->isVisible());
    studio.action("leaveLessonAction")->trigger();
    QVERIFY(start->isVisible());
    QVERIFY(start->isAncestorOf(QApplication::focusWidget()));
    // An empty page of plots is nothing to come back to.
    studio.action("startPageAction")->trigger();
    QVERIFY(!start->isVisible());
    studio.begin();
    studio.action("leaveLessonAction")->trigger();
    QVERIFY(start->isVisible());
  }

  void leaving_a_lesson_gives_back_the_curves() {
    DeskStudio studio;
    studio.openSpec(smallSpec(2));
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->state() == RunState::finished, patience_ms);
    const QList<RunSeries*> before = studio.window->plots()->runs();
    QCOMPARE(before.size(), 1);
    studio.begin();
    QVERIFY(studio.window->plots()->runs().isEmpty());
    studio.action("leaveLessonAction")->trigger();
    QCOMPARE(studio.window->plots()->runs(), before);
    QVERIFY(!studio.find("startPage")->isVisible());
  }

  void the_hint_leaves_the_focus_where_it_is() {
    DeskStudio studio;
    studio.begin();
    studio.goTo(2);
    auto* button = studio.find<QPushButton>("lessonHintButton");
    const auto* hint = studio.find<QLabel>("lessonHint");
    QVERIFY(button->isVisible() && hint->isHidden());
    button->setFocus();
    studio.press(Qt::Key_Space);
    QVERIFY(!hint->isHidden());
    QCOMPARE(QApplication::focusWidget(), button);
    QCOMPARE(button->text(), QStringLiteral("Hide the hint"));
    studio.press(Qt::Key_Space);
    QVERIFY(hint->isHidden());
    QCOMPARE(studio.player()->stepIndex(), std::size_t{2});
    studio.action("lessonHintAction")->trigger();
    QVERIFY(!hint->isHidden());
    QCOMPARE(QApplication::focusWidget(), button);
    // The next step has no hint, and so no such button.
    studio.player()->next();
    QVERIFY(button->isHidden());
    QCOMPARE(QApplication::focusWidget(), studio.find("lesson.nextStepAction"));
  }

  void on_the_last_step_the_focus_goes_back_and_not_to_reset() {
    DeskStudio studio;
    studio.begin();
    studio.goTo(3);
    studio.find("lesson.nextStepAction")->setFocus();
    studio.press(Qt::Key_Space);
    QCOMPARE(studio.player()->stepIndex(), std::size_t{4});
    QCOMPARE(QApplication::focusWidget(), studio.find("lesson.previousStepAction"));
  }

  void a_step_brings_its_field_into_sight() {
    DeskStudio studio;
    studio.begin();
    studio.goTo(1);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees("accumulation.steps"), patience_ms);
    settle();
    QVERIFY(!studio.sees("teaching.bug"));
    studio.goTo(2);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees("teaching.bug"), patience_ms);
    QVERIFY(!studio.find("fieldForm")->isAncestorOf(QApplication::focusWidget()));
    studio.goTo(1);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees("accumulation.steps"), patience_ms);
    // A step in which nothing is to be changed shows what it has changed itself.
    studio.goTo(3);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees("parallel.data"), patience_ms);
  }

  void going_back_to_a_step_without_a_field_shows_the_first_of_the_lesson() {
    DeskStudio studio;
    studio.begin();
    studio.goTo(2);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees("teaching.bug"), patience_ms);
    studio.goTo(0);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees("accumulation.steps"), patience_ms);
    QVERIFY(!studio.sees("teaching.bug"));
  }

  void the_field_of_a_step_stays_in_sight_while_the_form_gets_lower() {
    DeskStudio studio;
    studio.begin();
    studio.goTo(2);
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees("teaching.bug"), patience_ms);
    auto* form = studio.find<FieldForm>("fieldForm");
    const auto lower = [&studio, form] {
      const int before = form->height();
      auto* dock = studio.find<QDockWidget>("setupDock");
      studio.window->resizeDocks({dock}, {dock->height() - 30}, Qt::Vertical);
      QTRY_VERIFY_WITH_TIMEOUT(form->height() < before, patience_ms);
    };
    lower();
    QTRY_VERIFY_WITH_TIMEOUT(studio.sees("teaching.bug"), patience_ms);
    // The form does not scroll back once the user has scrolled away.
    form->verticalScrollBar()->triggerAction(QAbstractSlider::SliderToMinimum);
    lower();
    settle();
    QCOMPARE(form->verticalScrollBar()->value(), 0);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestLessonDesk)

}  // namespace test_lesson_desk
#include "test_lesson_desk.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// Announcements of the narrator besides states and progress: their contents, order and frequency.
#include <QElapsedTimer>

#include "studio_fixture.h"
#include "support/test_program.h"
#include "teach/narrator.h"

namespace test_narrator {

using namespace accrue;
using namespace accrue::ui;

namespace {

struct Heard {
  qint64 ms;
  QString sentence;
};

/// With a run that trains, and someone who listens.
class HeardStudio : public RunningStudio {
 public:
  HeardStudio() : RunningStudio("micro_ms=20"), narrator(window->findChild<Narrator*>()) {
    since_.start();
    QObject::connect(narrator, &Narrator::said, window.get(), [this](const QString& sentence) {
      heard.append({since_.elapsed(), sentence});
    });
    action("narrateAction")->trigger();
  }
  void report(EventBody body) { library->append(control->run(), {{0, 1, 0, std::move(body)}}); }
  /// Place of the first sentence that begins so; -1 if there is none yet.
  qsizetype place(const char* beginning) const {
    for (qsizetype i = 0; i < heard.size(); ++i)
      if (heard[i].sentence.startsWith(QLatin1String(beginning))) return i;
    return -1;
  }

  Narrator* narrator;
  QList<Heard> heard;

 private:
  QElapsedTimer since_;
};

}  // namespace

class TestNarrator : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_happens_is_told_the_worst_first_and_not_all_at_once() {
    HeardStudio studio;
    studio.report(CheckpointDone{.update = 7, .path = "checkpoints/step-7"});
    studio.report(Evaluation{.update = 1, .loss = 2.5, .batches = 3});
    studio.report(ExactnessCheck{.update = 3, .relative = 0.5, .tolerance = 1e-5, .verdict = "not"});
    studio.report(Warning{.class_name = "disk", .message = "The disk is nearly full", .what_to_do = "Free some"});
    QTRY_VERIFY_WITH_TIMEOUT(studio.place("Checkpoint of update 7 saved") >= 0, patience_ms);
    const qsizetype problem = studio.place("The disk is nearly full");
    const qsizetype lamp = studio.place("The lamp is red: not exact");
    const qsizetype evaluation = studio.place("Evaluation after update 1: loss 2.50");
    const qsizetype checkpoint = studio.place("Checkpoint of update 7");
    QStringList all;
    for (const Heard& each : studio.heard) all << each.sentence;
    QVERIFY2(problem >= 0 && problem < lamp && lamp < evaluation && evaluation < checkpoint,
             qPrintable(all.join(QLatin1Char('\n'))));
    for (qsizetype i = problem + 1; i <= checkpoint; ++i) {
      const qint64 apart = studio.heard[i].ms - studio.heard[i - 1].ms;
      QVERIFY2(apart >= Narrator::pause.count() - 50, qPrintable(QStringLiteral("%1 ms").arg(apart)));
    }
    studio.endRun();
  }

  void a_failure_that_ends_the_run_is_told_with_its_state() {
    OpenStudio failing(smallSpec(50), "micro_ms=5,fail=1@9:numerics");
    auto* narrator = failing.window->findChild<Narrator*>();
    failing.action("narrateAction")->trigger();
    failing.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(failing.control->state(), RunState::failed, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(narrator->sentence().startsWith(QStringLiteral("Failed, ")), patience_ms);
    QVERIFY(narrator->sentence().contains(failing.control->run()->problems().back().message));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestNarrator)

}  // namespace test_narrator
#include "test_narrator.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// Each lesson as a learner goes through it on a real X server: it is chosen from the list, each step is done as its
// text says, field by field and key by key, and what the lesson asks for is seen in the runs' folders and by the
// studio. A picture of each step lies beside the results of the tests.
#include <QJsonObject>
#include <QTest>
#include <algorithm>
#include <array>
#include <filesystem>

#include "accrue/run/lesson/lesson.h"
#include "accrue/run/lesson/lesson_check.h"
#include "accrue/run/lesson/run_facts.h"
#include "studio_on_x.h"
#include "support/places.h"
#include "support/test_program.h"

namespace test_lessons {

using namespace accrue;

namespace {

std::vector<std::filesystem::path> lessonFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::sourcePath("resources/lessons").toStdString()))
    if (entry.path().extension() == ".accrue-lesson") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// The key of a plot that lets it count this.
QString keyOf(const std::string& clock) {
  static constexpr std::array clocks = {"micro_step", "update", "sample", "token"};
  return QString::number(std::ranges::find(clocks, clock) - clocks.begin() + 1);
}

}  // namespace

class TestLessonStories : public QObject, private StudioOnX {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QVERIFY(begin("accrue-rank"));
    QVERIFY(startStudio({}));
  }

  void the_lesson_is_learnt_as_its_text_says_data() {
    QTest::addColumn<int>("place");
    const auto files = lessonFiles();
    QCOMPARE(files.size(), std::size_t{8});
    for (int place = 0; place < static_cast<int>(files.size()); ++place)
      QTest::newRow(files[static_cast<std::size_t>(place)].stem().c_str()) << place;
  }
  void the_lesson_is_learnt_as_its_text_says() {
    QFETCH(const int, place);
    const LessonReading reading = read_lesson(lessonFiles()[static_cast<std::size_t>(place)]);
    QVERIFY(reading.ok());
    const Lesson& lesson = reading.lesson;
    open(lesson, place);
    std::vector<RunFacts> facts;
    for (std::size_t number = 0; number < lesson.steps.size(); ++number) {
      const LessonStep& step = lesson.steps[number];
      if (number > 0) x_.key(QStringLiteral("alt+Next"));
      if (step.text.find("(F11)") != std::string::npos)
        stepThrough(facts);
      else
        for (const std::vector<std::string>& settings : step.answer) {
          for (const std::string& setting : settings) answer(setting);
          train(facts);
        }
      if (QTest::currentTestFailed()) return;
      for (const LessonCheck& check : step.checks) {
        if (check.kind == CheckKind::clock) {
          clickPlot();
          x_.key(keyOf(check.printed.front()));
        }
        const CheckResult result = judge(check, step, lesson, facts);
        const bool seen = result.state == CheckState::met || result.state == CheckState::not_here;
        QVERIFY2(seen, qPrintable(QString::fromStdString(check.says + " " + result.found)));
      }
      keepPicture(QStringLiteral("lesson-%1-step-%2").arg(lesson.number).arg(number + 1));
    }
    // The studio has seen every step's checks, too.
    QVERIFY(waitUntil([&] { return setting("lessons/done").toStringList().contains(QString::number(lesson.number)); }));
    QVERIFY(choose("alt+l", "e"));  // leave
    QVERIFY(waitUntil([&] { return !x_.title(window_).isEmpty(); }));
  }

 private:
  /// Chooses the lesson in the list: the list has the focus, and Home and Down go through it.
  void open(const Lesson& lesson, int place) {
    const QString title = QString::fromStdString(lesson.title);
    QVERIFY(waitUntil([&] {
      x_.key(QStringLiteral("ctrl+l"));
      x_.key(QStringLiteral("Home"));
      for (int down = 0; down < place; ++down) x_.key(QStringLiteral("Down"));
      x_.key(QStringLiteral("Return"));
      return QTest::qWaitFor([&] { return x_.title(window_).startsWith(title); }, 2000);
    }));
  }

  /// Trains the set-up and waits for the run's end.
  void train(std::vector<RunFacts>& facts) {
    takeEnd(begun([this] { x_.key(QStringLiteral("F5")); }), facts);
  }

  /// Micro-step by micro-step to a full window, phase by phase to the division, and on.
  void stepThrough(std::vector<RunFacts>& facts) {
    const QString run = begun([this] { x_.key(QStringLiteral("F11")); });
    QVERIFY(!run.isEmpty());
    const auto stands = [&](qint64 micro_step, const char* phase) {
      const QList<QJsonObject> changes = events(run, QStringLiteral("state"));
      return state(run) == QStringLiteral("paused") &&
             changes.last().value(QStringLiteral("micro_step")).toInteger() == micro_step &&
             (!phase || changes.last().value(QStringLiteral("phase")).toString() == QLatin1String(phase)) &&
             x_.title(window_).contains(QStringLiteral("(Paused)"));
    };
    QVERIFY(waitUntil([&] { return stands(0, nullptr); }));
    for (qint64 micro_step = 1; micro_step <= 4; ++micro_step)
      QVERIFY(press("F11", [&] { return stands(micro_step, "backward"); }));
    QVERIFY(press("F10", [&] { return stands(4, "reduce"); }));
    QVERIFY(press("F10", [&] { return stands(4, "unscale"); }));
    QCOMPARE(events(run, QStringLiteral("update")).size(), 0);
    x_.key(QStringLiteral("F8"));
    takeEnd(run, facts);
  }

  void takeEnd(const QString& run, std::vector<RunFacts>& facts) {
    QVERIFY(!run.isEmpty());
    QVERIFY(waitUntil([&] { return !events(run, QStringLiteral("run_finished")).isEmpty(); }));
    QVERIFY(waitUntil([this] { return isAtRest(); }));
    Result<RunFacts> read = read_run_facts(run.toStdString());
    QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
    facts.push_back(std::move(*read));
  }
};

ACCRUE_TEST_MAIN(TestLessonStories)

}  // namespace test_lessons
#include "test_lessons.moc"

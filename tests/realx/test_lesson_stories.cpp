// SPDX-License-Identifier: GPL-3.0-or-later
// Each lesson as a learner goes through it on a real X server, with keys only: it is chosen from the list, its first
// two steps are answered field by field and trained, and what the lesson asks for is seen in the runs' folders.
#include <QFile>
#include <QtTest>
#include <algorithm>
#include <filesystem>

#include "accrue/run/lesson.h"
#include "accrue/run/lesson_check.h"
#include "accrue/run/run_facts.h"
#include "accrue/run/spec_fields.h"
#include "studio_on_x.h"
#include "support/places.h"

using namespace accrue;

namespace {

constexpr std::size_t steps_told = 2;

std::vector<std::filesystem::path> lessonFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::sourcePath("resources/lessons").toStdString()))
    if (entry.path().extension() == ".accrue-lesson") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

class TestLessonStories : public QObject, private StudioOnX {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QVERIFY(begin("accrue-rank"));
    QVERIFY(startStudio({}));
  }

  void the_lesson_is_learnt_with_keys_only_data() {
    QTest::addColumn<int>("place");
    const auto files = lessonFiles();
    QCOMPARE(files.size(), std::size_t{8});
    for (int place = 0; place < static_cast<int>(files.size()); ++place)
      QTest::newRow(files[static_cast<std::size_t>(place)].stem().c_str()) << place;
  }
  void the_lesson_is_learnt_with_keys_only() {
    QFETCH(const int, place);
    const LessonReading reading = read_lesson(lessonFiles()[static_cast<std::size_t>(place)]);
    QVERIFY(reading.ok());
    const Lesson& lesson = reading.lesson;
    open(lesson, place);
    std::vector<RunFacts> facts;
    for (std::size_t step = 0; step < std::min(steps_told, lesson.steps.size()); ++step) {
      if (step > 0) x_.key(QStringLiteral("alt+Next"));
      for (const std::vector<std::string>& settings : lesson.steps[step].answer) {
        for (const std::string& setting : settings) answer(setting);
        if (QTest::currentTestFailed()) return;
        train(facts);
        if (QTest::currentTestFailed()) return;
      }
      for (const LessonCheck& check : lesson.steps[step].checks) {
        const CheckResult result = judge(check, lesson.steps[step], lesson, facts);
        const bool seen = result.state == CheckState::met || result.state == CheckState::other_bits;
        QVERIFY2(seen, qPrintable(QString::fromStdString(check.says + " " + result.found)));
      }
    }
    // Leave, by the menu's letters.
    x_.key(QStringLiteral("alt+l"));
    x_.key(QStringLiteral("e"));
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

  /// Finds the field by its key and gives it a value as its editor takes it.
  void answer(const std::string& setting) {
    const std::string key = setting.substr(0, setting.find('='));
    const QString value = QString::fromStdString(setting.substr(setting.find('=') + 1));
    const SpecField* field = find_field(key);
    QVERIFY(field);
    x_.key(QStringLiteral("ctrl+f"));
    x_.type(QString::fromStdString(key));
    x_.key(QStringLiteral("Return"));
    if (field->type == FieldType::boolean) {
      x_.key(QStringLiteral("space"));
    } else {
      if (field->type != FieldType::choice) x_.key(QStringLiteral("ctrl+a"));
      x_.type(value);
    }
  }

  /// Trains the set-up and waits for the run's end.
  void train(std::vector<RunFacts>& facts) {
    const QStringList before = runs();
    QString run;
    x_.key(QStringLiteral("F5"));
    QVERIFY(waitUntil([&] {
      for (const QString& each : runs())
        if (!before.contains(each)) run = each;
      return !run.isEmpty() && !events(run, QStringLiteral("run_finished")).isEmpty();
    }));
    QVERIFY(waitUntil([&] { return !x_.title(window_).contains(QLatin1Char('(')); }));
    Result<RunFacts> read = read_run_facts(run.toStdString());
    QVERIFY2(read.has_value(), read ? "" : read.error().text().c_str());
    facts.push_back(std::move(*read));
  }
};

QTEST_GUILESS_MAIN(TestLessonStories)
#include "test_lesson_stories.moc"

// SPDX-License-Identifier: Apache-2.0
// Lessons as text: what is wrong with one is said with its place, and what its runs show is judged as it prints.
#include <QTest>
#include <limits>

#include "accrue/run/lesson/lesson_check.h"
#include "accrue/run/preflight/preflight.h"
#include "support/places.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_lesson {

using namespace accrue;
using namespace accrue::test;

namespace {

std::string small_lesson(const std::string& rest) {
  return "accrue_lesson = 1\ntitle = \"T\"\nspec = '''\naccrue = 1\n[model]\nkind = \"linear\"\n'''\n" + rest;
}

const std::string step = "[[step]]\ntitle = \"S\"\ntext = \"Do it.\"\n";

std::string check(const std::string& what) {
  return small_lesson(step + "[[step.check]]\nsays = \"Seen.\"\n" + what + "\n");
}

QStringList findings_of(const std::string& text) {
  QStringList lines;
  for (const Finding& finding : parse_lesson(text, "a.accrue-lesson").findings)
    lines << QString::fromStdString(finding.text());
  return lines;
}

RunFacts run_with(const std::vector<std::string>& settings, std::vector<std::pair<std::int64_t, double>> losses,
                  std::vector<double> weights = {}) {
  RunFacts run(answered({}, settings));
  std::int64_t number = 0;
  for (const auto& [samples, loss] : losses) {
    Update update{.update = ++number, .samples = samples, .loss = loss, .lr = 0.1 / static_cast<double>(number)};
    update.weights = weights;
    run.take({.rank = 0, .body = update});
  }
  run.take({.body = RunFinished{.outcome = "finished", .updates = number, .weights_sha256 = "abc"}});
  return run;
}

CheckResult judged(const std::string& what, const std::vector<RunFacts>& runs, const char* printed_on = "") {
  LessonReading reading = parse_lesson(check(what), "a.accrue-lesson");
  if (!reading.ok()) qFatal("%s", reading.findings.front().text().c_str());
  reading.lesson.printed_on = printed_on;
  const LessonStep& first = reading.lesson.steps.front();
  return judge(first.checks.front(), first, reading.lesson, runs);
}

}  // namespace

class TestLesson : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_is_wrong_is_said_with_its_place_data() {
    const Rows<std::string, QString> row;
    row("no version", "title = \"T\"\n", "accrue_lesson: is missing, so this is no lesson");
    row("a later version", "accrue_lesson = 2\n", "accrue_lesson: is not a format version of a lesson");
    row("broken", "accrue_lesson = \n", "the lesson is not valid TOML");
    row("unknown key", small_lesson("author = \"x\"\n" + step), "a.accrue-lesson:8:1: error: author: is not a key");
    row("no step", small_lesson(""), "step: is missing");
    row("a finding of the spec, where it stands in the lesson",
        "accrue_lesson = 1\ntitle = \"T\"\nspec = '''\naccrue = 1\n[model]\nkinds = \"linear\"\n'''\n" + step,
        "a.accrue-lesson:6:1: error: model.kinds: is not a key of a spec");
    row("a setting that the spec refuses", small_lesson(step + "set = [\"accumulation.steps=0\"]\n"),
        "accumulation.steps: ");
    row("an answer of another type", small_lesson(step + "answer = \"x\"\n"), "answer: has the wrong type");
    row("no check", check("lamps = \"exact\""), "check.lamps: is not a check");
    row("nothing asked", check(""), "check: asks for nothing");
    row("two in one", check("updates = 1\nloss = \"1.0\""), "is a second check in one section");
    row("a clock that is none", check("clock = \"samples\""),
        "check.clock: is no clock (found samples, expected one of micro_step, update, sample,");
    row("no light", check("lamp = \"green\""), "check.lamp: is no light (found green, expected one of exact, close,");
    row("a field that is none", small_lesson("[layout]\nfields = [\"accumulation.step\"]\n" + step),
        "accumulation.step: is not a key of a spec (found accumulation.step, expected accumulation.steps)");
    row("a lock without a reason", small_lesson("[locked]\n\"optimizer.lr\" = \"\"\n" + step),
        "optimizer.lr: does not say why it is locked");
    row("an answer that no learner can give",
        small_lesson("[locked]\n\"run.epochs\" = \"One pass.\"\n" + step + "answer = [[], [\"run.epochs=2\"]]\n"),
        "a.accrue-lesson:13:15: error: answer: changes a locked key (found run.epochs, expected settings that leave "
        "it");
  }
  void what_is_wrong_is_said_with_its_place() {
    const auto [text, expected] = current_row<std::string, QString>();
    const QStringList lines = findings_of(text);
    QVERIFY2(lines.join('\n').contains(expected), lines.join('\n').toUtf8());
  }

  void numbers_are_compared_as_they_print() {
    const std::vector<RunFacts> runs{run_with({"accumulation.steps=2"}, {{8, 0.70}}, {2.0400001, -0.5})};
    QCOMPARE(judged("weights = [\"2.04000\", \"-0.5\"]", runs).state, CheckState::met);
    const CheckResult missed = judged("weights = [\"2.05\"]", runs);
    QCOMPARE(missed.state, CheckState::missed);
    QCOMPARE(missed.found, std::string("Found 2.04."));
    QCOMPARE(judged("loss = \"0.70\"", runs).state, CheckState::met);
    QCOMPARE(judged("rates = [\"0.1\"]", runs).state, CheckState::met);
    QCOMPARE(judged("updates = 2", runs).state, CheckState::missed);
  }

  void only_runs_with_the_settings_are_asked() {
    const std::vector<RunFacts> runs{run_with({"accumulation.steps=2"}, {{8, 1.0}}),
                                     run_with({"accumulation.steps=3"}, {{8, 2.0}})};
    QCOMPARE(judged("where = [\"accumulation.steps=2\"]\nloss = \"1.0\"", runs).state, CheckState::met);
    QCOMPARE(judged("where = [\"accumulation.steps=9\"]\nloss = \"1.0\"", runs).state, CheckState::open);
  }

  void curves_coincide_where_both_have_seen_the_same_samples() {
    std::vector<RunFacts> runs{run_with({"accumulation.steps=2"}, {{8, 1.0}, {16, 0.5}})};
    QCOMPARE(judged("coincide = 2", runs).state, CheckState::open);
    runs.push_back(run_with({"accumulation.steps=4"}, {{16, 0.5}}));
    QCOMPARE(judged("coincide = 2", runs).state, CheckState::met);
    QCOMPARE(judged("part = 2", runs).state, CheckState::missed);
    runs.push_back(run_with({"accumulation.steps=8"}, {{16, 0.6}}));
    QCOMPARE(judged("coincide = 3", runs).state, CheckState::missed);
    // The same spec trained again is no further run.
    runs.push_back(run_with({"accumulation.steps=8"}, {{16, 0.5}}));
    QCOMPARE(judged("coincide = 3", runs).state, CheckState::met);
    QCOMPARE(judged("coincide = 4", runs).state, CheckState::open);
  }

  void a_run_that_no_step_asks_for_is_not_counted() {
    const std::string answers = "answer = [[\"accumulation.steps=1\"], [\"accumulation.steps=2\"]]\n";
    const auto judged_of = [&answers](const std::string& what, const std::vector<RunFacts>& runs) {
      const LessonReading reading =
          parse_lesson(small_lesson(step + answers + "[[step.check]]\nsays = \"Seen.\"\n" + what + "\n"), "a");
      if (!reading.ok()) qFatal("%s", reading.findings.front().text().c_str());
      const LessonStep& first = reading.lesson.steps.front();
      return judge(first.checks.front(), first, reading.lesson, runs);
    };
    const auto run = [](const std::string& steps, double loss) {
      return run_with(std::vector<std::string>{"model.kind=linear", "accumulation.steps=" + steps}, {{8, loss}});
    };
    std::vector<RunFacts> runs{run("1", 1.0), run("4", 0.5)};
    const CheckResult waiting = judged_of("coincide = 2", runs);
    QCOMPARE(waiting.state, CheckState::open);
    QCOMPARE(QString::fromStdString(waiting.found),
             QStringLiteral("1 of 2 runs are there. The last run (Accumulation steps = 4) does not count."));
    runs.push_back(run("2", 0.9));
    QCOMPARE(judged_of("coincide = 2", runs).state, CheckState::missed);
    // A later run of the set-up takes the place of a wrong one, and what else was trained changes nothing.
    runs.push_back(run("2", 1.0));
    runs.push_back(run("8", 0.1));
    QCOMPARE(judged_of("coincide = 2", runs).state, CheckState::met);
    QCOMPARE(judged_of("loss = \"1.0\"", runs).state, CheckState::met);
    QCOMPARE(judged_of("loss = \"1.0\"", {run("8", 1.0)}).found,
             std::string("No such run has ended yet. The last run (Accumulation steps = 8) does not count."));
    RunFacts stopped = run("2", 1.0);
    stopped.outcome = "stopped";
    QCOMPARE(judged_of("loss = \"1.0\"", {stopped}).found,
             std::string("No such run has ended yet. The last run did not finish, so it does not count."));
    // Runs that train beside each other have fewer threads a rank: they count, and their threads are not named.
    const auto beside = [&run](const std::string& steps, double loss) {
      RunFacts pair = run(steps, loss);
      pair.spec = answered(pair.spec, {"launch.threads_per_rank=1"});
      return pair;
    };
    QCOMPARE(judged_of("coincide = 2", {beside("1", 1.0), beside("2", 1.0)}).state, CheckState::met);
    QCOMPARE(judged_of("coincide = 2", {run("1", 1.0), beside("1", 1.0)}).state, CheckState::open);
    QCOMPARE(judged_of("loss = \"1.0\"", {beside("8", 1.0)}).found,
             std::string("No such run has ended yet. The last run (Accumulation steps = 8) does not count."));
  }

  void a_run_for_another_step_or_with_a_long_value_says_what_sets_it_apart() {
    const std::string check = "[[step.check]]\nsays = \"Seen.\"\nloss = \"1.0\"\n";
    const LessonReading reading = parse_lesson(small_lesson(step + "answer = [[\"accumulation.steps=1\"]]\n" + check +
                                                            step + "answer = [[\"accumulation.steps=2\"]]\n" + check),
                                               "a");
    QVERIFY(reading.ok());
    const auto found = [&lesson = reading.lesson](const std::vector<RunFacts>& runs) {
      return judge(lesson.steps[1].checks.front(), lesson.steps[1], lesson, runs).found;
    };
    QCOMPARE(found({}), std::string("No such run has ended yet."));
    RunFacts first{answered(spec_of(reading.lesson, reading.lesson.steps[0]), {"accumulation.steps=1"})};
    first.outcome = "finished";
    QCOMPARE(found({first}),
             std::string("No such run has ended yet. The last run (Accumulation steps = 1) does not count."));
    RunFacts longer{answered(spec_of(reading.lesson, reading.lesson.steps[1]),
                             {"accumulation.steps=2", "data.sequences=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]"})};
    longer.outcome = "finished";
    QVERIFY2(QString::fromStdString(found({longer})).contains(QStringLiteral("= other values) does not count.")),
             found({longer}).c_str());
  }

  void what_is_not_a_number_coincides_with_nothing() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<RunFacts> runs{run_with({"accumulation.steps=2"}, {{8, 1.0}, {16, 0.5}}, {1.0, 2.0}),
                                     run_with({"accumulation.steps=4"}, {{8, 1.0}, {16, nan}}, {1.0, nan})};
    QCOMPARE(judged("coincide = 2", runs).state, CheckState::missed);
    QCOMPARE(judged("coincide = 2", runs).found, std::string("A value of one of the runs is not finite."));
    QCOMPARE(judged("part = 2", runs).state, CheckState::met);
    QCOMPARE(judged("same_weights = 2", runs).state, CheckState::missed);
  }

  void the_lamp_is_the_worst_check_with_its_reason() {
    RunFacts run = run_with({"accumulation.steps=2"}, {{8, 1.0}});
    run.take({.body = ExactnessCheck{.update = 1, .verdict = "exact"}});
    QCOMPARE(judged("lamp = \"exact\"", {run}).state, CheckState::met);
    run.take({.body = ExactnessCheck{.update = 2, .verdict = "not", .reason = "divisor", .message = "Divided by 4."}});
    QCOMPARE(judged("lamp = \"not exact\"\nreason = \"divisor\"", {run}).state, CheckState::met);
    QCOMPARE(judged("lamp = \"not exact\"\nreason = \"cleared\"", {run}).state, CheckState::missed);
    QCOMPARE(judged("lamp = \"exact\"", {run}).found, std::string("The lamp says: not exact. Divided by 4."));
  }

  void bits_are_asked_of_an_equal_processor_only() {
    RunFacts run = run_with({"accumulation.steps=2"}, {{8, 1.0}});
    run.processor = "CPU A, AVX2";
    QCOMPARE(judged("sha256 = \"abc\"", {run}, "CPU A, AVX2").state, CheckState::met);
    QCOMPARE(judged("sha256 = \"abd\"", {run}, "CPU A, AVX2").state, CheckState::missed);
    const CheckResult other = judged("sha256 = \"abd\"", {run}, "CPU B, AVX512");
    QCOMPARE(other.state, CheckState::not_here);
    QVERIFY2(QString::fromStdString(other.found).contains("this one is CPU A, AVX2"), other.found.c_str());
  }

  void the_clock_is_asked_of_the_plots_and_of_no_run() {
    const LessonReading reading = parse_lesson(check("clock = \"sample\""), "a.accrue-lesson");
    QVERIFY(reading.ok());
    const LessonStep& first = reading.lesson.steps.front();
    const auto seen = [&](const SeenClocks& clocks) {
      return judge(first.checks.front(), first, reading.lesson, {}, clocks).state;
    };
    QCOMPARE(seen(std::vector<std::string>{"micro_step"}), CheckState::open);
    QCOMPARE(seen(std::vector<std::string>{"micro_step", "sample", "update"}), CheckState::met);
    QCOMPARE(seen(std::nullopt), CheckState::not_here);
    QVERIFY(!is_done(first, reading.lesson, {}, std::vector<std::string>{}));
    QVERIFY(is_done(first, reading.lesson, {}, std::vector<std::string>{"sample"}));
  }

  void a_class_is_told_of_a_processor_with_other_bits() {
    LessonReading reading = parse_lesson(check("sha256 = \"abc\""), "a.accrue-lesson");
    QVERIFY(reading.ok());
    RunFacts run = run_with({"accumulation.steps=2"}, {{8, 1.0}});
    run.processor = "CPU A, AVX2";
    QCOMPARE(other_processor(reading.lesson, {run}), std::string());
    reading.lesson.printed_on = "CPU A, AVX2";
    QCOMPARE(other_processor(reading.lesson, {}), std::string());
    QCOMPARE(other_processor(reading.lesson, {run}), std::string());
    // The name alone does not make the bits: the instruction set does, too.
    run.processor = "CPU A, AVX512";
    QCOMPARE(other_processor(reading.lesson, {run}),
             std::string("This processor (CPU A, AVX512) is not the one that the lesson was printed on (CPU A, AVX2): "
                         "the printed digits agree, the last bits need not."));
  }

  void a_resumed_run_counts_an_update_once() {
    RunFacts run = run_with({"accumulation.steps=2"}, {{8, 1.0}, {16, 0.5}});
    run.take({.rank = 0, .body = Update{.update = 2, .samples = 16, .loss = 0.25}});
    QCOMPARE(run.updates.size(), std::size_t{2});
    QCOMPARE(run.updates.back().loss, 0.25);
  }

  void the_lessons_that_come_with_the_program_can_be_trained_data() {
    QTest::addColumn<QString>("file");
    const QDir folder(sourcePath("resources/lessons"));
    const QStringList files = folder.entryList({"*.accrue-lesson"}, QDir::Files, QDir::Name);
    QCOMPARE(files.size(), 8);
    for (const QString& file : files) QTest::addRow("%s", qPrintable(file)) << folder.filePath(file);
  }
  void the_lessons_that_come_with_the_program_can_be_trained() {
    QFETCH(QString, file);
    const LessonReading reading = read_lesson(file.toStdString());
    for (const Finding& finding : reading.findings) QVERIFY2(false, finding.text().c_str());
    const Lesson& lesson = reading.lesson;
    QVERIFY(lesson.number > 0 && lesson.minutes > 0 && !lesson.teaches.empty() && !lesson.fields.empty());
    // Equal digits on equal processors: the threads are fixed, and equal bits are required.
    QCOMPARE(lesson.spec.launch.threads_per_rank, std::optional<std::int64_t>(1));
    QVERIFY(!lesson.printed_on.empty());
    std::ptrdiff_t hashes = 0;
    for (const LessonStep& each : lesson.steps)
      for (const LessonCheck& check : each.checks)
        if (check.kind == CheckKind::sha256) {
          QVERIFY2(check.printed.front().size() == 64, check.printed.front().c_str());
          ++hashes;
        }
    QVERIFY(hashes >= 1);
    HostFacts host;
    host.cores = 4;
    host.memory_bytes = std::int64_t{16} << 30;
    host.backends = {"shm"};
    for (const LessonStep& each : lesson.steps) {
      QVERIFY2(!each.checks.empty(), each.title.c_str());
      for (const auto& answer : each.answer) {
        const Preflight plan = preflight_files(answered(spec_of(lesson, each), answer), host, {});
        QVERIFY2(plan.plan, plan.findings.empty() ? "" : plan.findings.front().text().c_str());
        // The lesson's form has every setting that the learner must change.
        for (const std::string& setting : answer) {
          const std::string key = setting.substr(0, setting.find('='));
          QVERIFY2(std::ranges::find(lesson.fields, key) != lesson.fields.end(), setting.c_str());
        }
      }
      QVERIFY2(!is_done(each, lesson, {}), each.title.c_str());
    }
  }
};

ACCRUE_TEST_MAIN(TestLesson)

}  // namespace test_lesson
#include "test_lesson.moc"

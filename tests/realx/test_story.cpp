// SPDX-License-Identifier: GPL-3.0-or-later
// A user's hour in a minute, on a real X server with a window manager: demo by a digit, pause and step by key, an edit,
// a second run over samples, the studio killed and the run resumed, a log-out, the window closed. What happened is read
// from the run folders, the settings and the window's title.
#include <signal.h>

#include <QDir>
#include <QJsonObject>
#include <QProcess>
#include <QTest>
#include <algorithm>

#include "studio_on_x.h"
#include "support/test_program.h"

namespace test_story {

class TestStory : public QObject, private StudioOnX {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QVERIFY(begin("accrue-fake-rank", "micro_ms=40"));
    QVERIFY(startStudio({}));
  }

  void the_window_manager_gives_focus_and_shortcuts() {
    // The digit of the start page's second card; pressed again until the page has it, as a person would.
    QVERIFY(waitUntil([this] {
      if (runs().isEmpty()) x_.key(QStringLiteral("2"));
      return !runs().isEmpty() && state(runs().first()) == QStringLiteral("running");
    }));
    QVERIFY(waitUntil([this] { return x_.title(window_).startsWith(QStringLiteral("Demo")); }));
    QVERIFY(waitUntil([this] { return events(runs().first(), QStringLiteral("update")).size() >= 2; }));
  }

  void pauses_after_micro_step_2_of_4_and_goes_on() {
    const QString run = runs().first();
    x_.key(QStringLiteral("F8"));
    // The title shows the state that the window has reached; a key pressed earlier would act in another state.
    const auto titled = [this](const char* word) { return x_.title(window_).contains(QLatin1String(word)); };
    QVERIFY(waitUntil([&] { return state(run) == QStringLiteral("paused") && titled("(Paused)"); }));
    const auto micro = [&] {
      return events(run, QStringLiteral("state")).last().value(QStringLiteral("micro_step")).toInteger();
    };
    while (micro() % 4 != 2) {
      const qint64 before = micro();
      QVERIFY(press("F11", [&] { return state(run) == QStringLiteral("paused") && micro() > before; }));
    }
    const qsizetype updates = events(run, QStringLiteral("update")).size();
    QCOMPARE(updates, micro() / 4);
    QVERIFY(press("F8", [&] { return state(run) == QStringLiteral("running"); }));
  }

  void stops_and_keeps_the_run() {
    const QString run = runs().first();
    x_.key(QStringLiteral("shift+F5"));
    QVERIFY(waitUntil([&] { return !events(run, QStringLiteral("run_finished")).isEmpty(); }));
    QVERIFY(waitUntil([this] { return !x_.title(window_).contains(QLatin1Char('(')); }));
    QCOMPARE(events(run, QStringLiteral("run_finished")).last().value(QStringLiteral("outcome")).toString(),
             QStringLiteral("stopped"));
  }

  void edits_n_and_runs_again() {
    const QString first = runs().first();
    x_.key(QStringLiteral("ctrl+f"));
    x_.type(QStringLiteral("gradient_accumulation_steps"));
    x_.key(QStringLiteral("Return"));  // to the field that was found
    x_.key(QStringLiteral("ctrl+a"));
    x_.type(QStringLiteral("16"));
    QVERIFY(waitUntil([this] { return x_.title(window_).contains(QLatin1Char('*')); }));
    x_.key(QStringLiteral("F5"));
    QVERIFY(waitUntil([this] { return runs().size() == 2; }));
    second_ = runs().first() == first ? runs().last() : runs().first();
    QVERIFY(waitUntil([&] { return events(second_, QStringLiteral("update")).size() >= 1; }));
    // One update of the second run takes four times the micro-steps.
    const qint64 boundary =
        events(second_, QStringLiteral("update")).first().value(QStringLiteral("micro_step")).toInteger();
    QCOMPARE(boundary, 16);
  }

  void a_killed_studio_leaves_a_run_to_resume() {
    const QString run = second_;
    const auto updates = [&] { return events(run, QStringLiteral("update")).size(); };
    QVERIFY(waitUntil([&] { return updates() >= 2; }));
    studio_.kill();
    QVERIFY(studio_.waitForFinished());
    QVERIFY(waitUntil([&] { return ranksAreGone(run); }, 35000));
    QVERIFY(events(run, QStringLiteral("run_finished")).isEmpty());
    QVERIFY(!QDir(run + QStringLiteral("/checkpoints")).entryList({QStringLiteral("step-*")}).isEmpty());
    const qsizetype kept = updates();
    const auto joined = [&] { return events(run, QStringLiteral("rank_ready")).size(); };
    const qsizetype before = joined();

    QVERIFY(startStudio({run}));
    QVERIFY(waitUntil([&] {
      if (joined() == before) x_.key(QStringLiteral("ctrl+shift+r"));
      return updates() > kept + 1;
    }));
    // Micro-steps that the ranks trained alone before they saved have no events, and the record says so.
    qint64 last = 0;
    for (const QJsonObject& update : events(run, QStringLiteral("update"))) {
      const qint64 number = update.value(QStringLiteral("update")).toInteger();
      if (number > last + 1) {
        const QString gap = last + 2 == number
                                ? QStringLiteral("update %1 has no events").arg(last + 1)
                                : QStringLiteral("updates %1 to %2 have no events").arg(last + 1).arg(number - 1);
        const QList<QJsonObject> warnings = events(run, QStringLiteral("warning"));
        QVERIFY2(std::any_of(warnings.begin(), warnings.end(),
                             [&](const QJsonObject& warning) {
                               return warning.value(QStringLiteral("message")).toString().startsWith(gap);
                             }),
                 qPrintable(gap));
      }
      last = number;
    }
  }

  void a_log_out_saves_the_run_and_the_newest_edit() {
    const QString run = second_;
    const qint64 finished = events(run, QStringLiteral("run_finished")).size();
    answer("accumulation.micro_batch=7");
    QVERIFY(waitUntil([this] { return x_.title(window_).contains(QLatin1Char('*')); }));
    ::kill(static_cast<pid_t>(studio_.processId()), SIGTERM);
    QVERIFY(studio_.waitForFinished(30000));
    QCOMPARE(studio_.exitStatus(), QProcess::NormalExit);
    QCOMPARE(studio_.exitCode(), 128 + SIGTERM);
    QVERIFY(ranksAreGone(run));
    QCOMPARE(events(run, QStringLiteral("run_finished")).size(), finished + 1);
    const QDir folder(home_.filePath(QStringLiteral(".local/state/accrue")));
    const QStringList drafts = folder.entryList({QStringLiteral("draft-*.accrue")});
    QCOMPARE(drafts.size(), 1);
    QFile draft(folder.filePath(drafts.first()));
    QVERIFY(draft.open(QIODevice::ReadOnly));
    QVERIFY(draft.readAll().contains("micro_batch = 7"));

    const qsizetype joined = events(run, QStringLiteral("rank_ready")).size();
    QVERIFY(startStudio({run}));
    QVERIFY(waitUntil([&] {
      if (events(run, QStringLiteral("rank_ready")).size() == joined) x_.key(QStringLiteral("ctrl+shift+r"));
      return events(run, QStringLiteral("rank_ready")).size() > joined && state(run) == QStringLiteral("running");
    }));
  }

  void closing_leaves_nobody_behind() {
    x_.key(QStringLiteral("ctrl+q"));
    const QString question = x_.window(QStringLiteral("A run is in progress"));
    QVERIFY(!question.isEmpty());
    QVERIFY(waitUntil([&] { return x_.tool({QStringLiteral("getactivewindow")}) == question; }));
    x_.key(QStringLiteral("Return"));  // checkpoint and stop
    QVERIFY(studio_.waitForFinished(60000));
    QCOMPARE(studio_.exitCode(), 0);
    for (const QString& run : runs()) QVERIFY(ranksAreGone(run));
  }

 private:
  QString second_;  ///< the run with N = 16
};

ACCRUE_TEST_MAIN(TestStory)

}  // namespace test_story
#include "test_story.moc"

// SPDX-License-Identifier: GPL-3.0-or-later
// The whole window with two fake ranks that report 20 000 events a second: how long until it is shown, how long from
// Run to the first point, how late its event loop is while idle and in the burst, how much memory the burst takes, and
// whether the window holds the same events as the run folder. It fails if a limit is exceeded. Run it by hand on an
// idle machine:
//   build/default/bench/bench_ui_window [seconds of the burst]
//   build/default/bench/bench_ui_window --hours 8
// The second form asks whether a long run takes more and more memory: as many events as so many hours bring at 100 a
// second go the same way, from ranks through the supervisor into series, strip and plots, and after each hour's events
// the resident memory is printed: anonymous, which only the program can give back, and total, with the pages of files,
// which the kernel may drop. Then the run folder is opened in a second window, once more with the memory of each hour.
#include <unistd.h>

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QTemporaryDir>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "accrue/run/events/event_reader.h"
#include "bench/limits.h"
#include "ui/studio_fixture.h"

using namespace accrue;
using namespace accrue::ui;

namespace {

/// Measures for a time how late a 5 ms timer fires.
std::vector<double> lateness(double seconds) {
  std::vector<double> late;
  QElapsedTimer since;
  QTimer beat;
  beat.setTimerType(Qt::PreciseTimer);
  QObject::connect(&beat, &QTimer::timeout, &beat, [&] {
    if (since.isValid()) late.push_back(std::max(static_cast<double>(since.nsecsElapsed()) * 1e-6 - 5.0, 0.0));
    since.start();
  });
  beat.start(5);
  QEventLoop loop;
  QTimer::singleShot(static_cast<int>(seconds * 1000), &loop, &QEventLoop::quit);
  loop.exec();
  std::sort(late.begin(), late.end());
  return late;
}

double at(const std::vector<double>& sorted, double part) {
  return sorted.empty() ? 0.0 : sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

void report(const char* what, const std::vector<double>& late) {
  std::printf("event loop delay %-8s median %6.2f ms   p99 %6.2f ms   max %6.2f ms\n", what, at(late, 0.5),
              at(late, 0.99), at(late, 1.0));
}

/// Micro-steps that all ranks reported, by the run folder.
std::size_t recorded(const QString& folder) {
  auto file = EventFile::open(QDir(folder).filePath(QStringLiteral("events.jsonl")).toStdString());
  std::map<std::int64_t, int> ranks_of;
  if (!file) return 0;
  do
    for (const RunEvent& event : file->poll())
      if (const auto* steps = std::get_if<MicroSteps>(&event.body))
        for (const std::int64_t step : steps->micro_step) ++ranks_of[step];
  while (!file->at_end());
  return static_cast<std::size_t>(
      std::count_if(ranks_of.begin(), ranks_of.end(), [](const auto& entry) { return entry.second == 2; }));
}

/// Resident memory of this process in MiB.
struct Resident {
  double anonymous = 0.0;
  double total = 0.0;  ///< with the pages of files
};

Resident resident() {
  QFile file(QStringLiteral("/proc/self/statm"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const QList<QByteArray> pages = file.readAll().split(' ');
  const double mebibytes = static_cast<double>(sysconf(_SC_PAGESIZE)) / 1048576.0;
  const double total = pages.value(1).toDouble() * mebibytes;
  return {total - pages.value(2).toDouble() * mebibytes, total};
}

constexpr std::int64_t hourlyEvents = 360'000;  // 100 a second

/// Prints the memory after each hour's events of a run, until it has taken all of them.
class HourTable {
 public:
  explicit HourTable(const char* what) { std::printf("%s\nhour    events   micro-steps  anonymous     total\n", what); }

  void look(const RunSeries& run) {
    if (run.eventsTaken() < hours_ * hourlyEvents) return;
    const Resident now = resident();
    std::printf("%4lld %9lld %13zu %6.1f MiB %6.1f MiB\n", static_cast<long long>(hours_),
                static_cast<long long>(run.eventsTaken()), run.series(Metric::microLoss).size(), now.anonymous,
                now.total);
    std::fflush(stdout);
    ++hours_;
  }
  std::int64_t hours() const { return hours_ - 1; }

 private:
  std::int64_t hours_ = 0;
};

/// A wait of any length, in turns of the event loop.
template <typename Condition>
bool waitLong(Condition condition) {
  QElapsedTimer clock;
  clock.start();
  while (!condition())
    if (clock.elapsed() > 3'600'000 || QTest::qWaitFor(condition, 1000)) break;
  return condition();
}

/// Opens the folder in a window of its own, as after a restart.
void reopen(const std::shared_ptr<QTemporaryDir>& home, const QString& folder) {
  StudioFixture studio(home, "rate=5000");
  studio.window->show();
  HourTable table("opened from its folder");
  RunSeries* opened = nullptr;
  bool loaded = false;
  QObject::connect(studio.library.get(), &RunLibrary::opened, studio.library.get(), [&](RunSeries* run) {
    opened = run;
    QObject::connect(run, &RunSeries::changed, run, [&table, run] { table.look(*run); });
  });
  QObject::connect(studio.library.get(), &RunLibrary::loaded, studio.library.get(), [&] { loaded = true; });
  QElapsedTimer clock;
  clock.start();
  studio.library->open(folder);
  if (!waitLong([&] { return loaded; })) return;
  std::printf("%zu micro-steps after %.1f s\n", opened->series(Metric::microLoss).size(),
              static_cast<double>(clock.elapsed()) * 1e-3);
}

int replayHours(std::int64_t hours) {
  auto home = std::make_shared<QTemporaryDir>();
  QString folder;
  {
    StudioFixture studio(home, "rate=5000");
    studio.window->show();
    if (!QTest::qWaitForWindowExposed(studio.window.get())) return 1;
    studio.document.reset(smallSpec(10'000'000), QStringLiteral("hours"));
    if (!QTest::qWaitFor([&] { return studio.preflight->isCurrent(); }, patience_ms)) return 1;
    HourTable table("trained");
    QObject::connect(studio.control.get(), &RunControl::changed, studio.control.get(), [&] {
      if (studio.control->run()) table.look(*studio.control->run());
    });
    studio.action("runAction")->trigger();
    if (!waitLong([&] { return table.hours() >= hours; })) return 1;
    studio.control->stop();
    if (!waitLong([&] { return !studio.control->isLive(); })) return 1;
    const RunSeries& run = *studio.control->run();
    folder = run.folder();
    std::printf("%zu micro-steps in the run folder, %zu in the window; %lld traces not drawn\n", recorded(folder),
                run.series(Metric::microLoss).size(), static_cast<long long>(run.tracesNotDrawn()));
  }
  reopen(home, folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  if (argc > 2 && std::strcmp(argv[1], "--hours") == 0) return replayHours(std::atoll(argv[2]));
  const double seconds = argc > 1 ? std::atof(argv[1]) : 6.0;
  QElapsedTimer clock;
  clock.start();
  StudioFixture studio("rate=10000");
  studio.window->show();
  if (!QTest::qWaitForWindowExposed(studio.window.get())) return 1;
  const double exposed = static_cast<double>(clock.nsecsElapsed()) * 1e-6;

  studio.document.reset(smallSpec(10'000'000), QStringLiteral("burst"));
  if (!QTest::qWaitFor([&] { return studio.preflight->isCurrent(); }, patience_ms)) return 1;
  const auto idle = lateness(6.0);
  clock.start();
  studio.action("runAction")->trigger();
  const auto steps = [&] {
    return studio.control->run() ? studio.control->run()->series(Metric::microLoss).size() : std::size_t{0};
  };
  if (!QTest::qWaitFor([&] { return steps() > 0; }, patience_ms)) return 1;
  std::printf("Run to the first point %lld ms\n", static_cast<long long>(clock.elapsed()));

  const std::size_t before = steps();
  std::vector<double> memory{resident().total};
  QTimer sampling;
  QObject::connect(&sampling, &QTimer::timeout, &sampling, [&] { memory.push_back(resident().total); });
  sampling.start(static_cast<int>(seconds * 100));
  const auto burst = lateness(seconds);
  sampling.stop();
  const double rate = static_cast<double>(steps() - before) / seconds;
  studio.control->stop();
  if (!QTest::qWaitFor([&] { return !studio.control->isLive(); }, patience_ms)) return 1;
  report("idle", idle);
  report("burst", burst);
  std::printf("MiB resident at each tenth of the burst:");
  for (const double each : memory) std::printf(" %.0f", each);
  std::printf("\n%.0f micro-steps of two ranks a second; %zu in the run folder, %zu in the window\n", rate,
              recorded(studio.control->run()->folder()), steps());
  accrue::bench::Limits limits;
  limits.most("window exposed", exposed, 300);
  limits.most("event loop delay in the burst, p99", at(burst, 0.99), 25);
  return limits.exit_status();
}

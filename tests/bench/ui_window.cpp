// SPDX-License-Identifier: GPL-3.0-or-later
// The whole window with two fake ranks that report 20 000 events a second: how long until it is shown, how long from
// Run to the first point, how late its event loop is while idle and in the burst, how much memory the burst takes, and
// whether the window holds the same events as the run folder. Run it by hand on an idle machine:
//   build/default/bench/bench_ui_window [seconds of the burst]
// 150 seconds are as many events as eight hours bring at 100 a second.
#include <unistd.h>

#include <QDir>
#include <QFile>
#include <algorithm>
#include <cstdio>
#include <map>

#include "accrue/run/event_reader.h"
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
double residentMebibytes() {
  QFile file(QStringLiteral("/proc/self/statm"));
  if (!file.open(QIODevice::ReadOnly)) return 0.0;
  return file.readAll().split(' ').value(1).toDouble() * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1048576.0;
}

}  // namespace

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 6.0;
  QElapsedTimer clock;
  clock.start();
  StudioFixture studio("rate=10000");
  studio.window->show();
  if (!QTest::qWaitForWindowExposed(studio.window.get())) return 1;
  std::printf("window exposed after %lld ms\n", static_cast<long long>(clock.elapsed()));

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
  std::vector<double> memory{residentMebibytes()};
  QTimer sampling;
  QObject::connect(&sampling, &QTimer::timeout, &sampling, [&] { memory.push_back(residentMebibytes()); });
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
  return 0;
}

// SPDX-License-Identifier: GPL-3.0-or-later
// The cost of a frame of the live plots: several plots, each with several series of 100 000 points, while batches
// arrive as the 33 ms timer would deliver them; and how late a timer fires while 20 000 events a second pass through
// the queue. Prints median, 95th percentile and maximum, and fails if a limit is exceeded; run it by hand:
//   QT_QPA_PLATFORM=offscreen ui_frame [points] [runs] [plots]
#include <QApplication>
#include <QElapsedTimer>
#include <QHBoxLayout>
#include <QTimer>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>

#include "accrue/run/events/event_queue.h"
#include "accrue/run/window/lr_curve.h"
#include "bench/limits.h"
#include "kit/theme.h"
#include "plots/plot_area.h"
#include "runs/event_log_model.h"
#include "ui/made_run.h"

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

constexpr int frames = 150;
constexpr std::int64_t slice = 25000;  // updates

/// Milliseconds that something took each time, from the shortest on.
struct Times {
  std::vector<double> sorted;
  double at(double part) const {
    return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
  }
};

Times report(const char* what, std::vector<double> milliseconds) {
  std::sort(milliseconds.begin(), milliseconds.end());
  const Times times{std::move(milliseconds)};
  std::printf("%-46s median %7.2f ms   p95 %7.2f ms   p99 %7.2f ms   max %7.2f ms\n", what, times.at(0.5),
              times.at(0.95), times.at(0.99), times.at(1.0));
  return times;
}

MadeRun madeRun(std::int64_t points, int index) {
  MadeRun made{.steps = 4, .ranks = 1, .updates = points / 4 + 1000, .batchesPerEpoch = 1 << 20};
  made.loss = [random = std::mt19937(static_cast<unsigned>(index)), noise = std::normal_distribution<double>(0.0, 0.1),
               index](std::int64_t m, std::int64_t) mutable {
    return 1.5 + 0.2 * index + 3.0 / (1.0 + 1e-4 * static_cast<double>(m)) + noise(random);
  };
  return made;
}

struct Scene {
  QWidget window;
  std::vector<PlotArea*> areas;
  std::vector<std::unique_ptr<RunSeries>> runs;
  std::vector<MadeRun> made;
  std::int64_t updates;
};

void build(Scene& scene, std::int64_t points, int runs, int plots) {
  auto* layout = new QHBoxLayout(&scene.window);
  QList<RunSeries*> shown;
  scene.updates = points / 4;
  for (int i = 0; i < runs; ++i) {
    scene.made.push_back(madeRun(points, i));
    scene.runs.push_back(std::make_unique<RunSeries>(QString::number(i), i));
    scene.runs.back()->setPlan(scene.made.back().plan());
    // In slices: all events of a million points at once would take gigabytes.
    for (std::int64_t from = 0; from < scene.updates; from += slice)
      scene.runs.back()->append(scene.made.back().events(std::min(from + slice, scene.updates), from));
    scene.runs.back()->setState(RunState::running);
    shown << scene.runs.back().get();
  }
  for (int i = 0; i < plots; ++i) {
    scene.areas.push_back(new PlotArea(&scene.window));
    scene.areas.back()->setRuns(shown);
    scene.areas.back()->setFocusedRun(shown.last());
    layout->addWidget(scene.areas.back());
  }
  scene.window.resize(640 * plots, 700);
  scene.window.show();
}

/// A whole frame, all plots in one turn of the event loop: take the batch, reduce, paint the buffers, paint the
/// widgets.
double frame(Scene& scene, const std::vector<std::vector<RunEvent>>& batches) {
  QElapsedTimer timer;
  timer.start();
  for (std::size_t i = 0; i < scene.runs.size(); ++i) scene.runs[i]->append(batches[i]);
  for (PlotArea* area : scene.areas) {
    area->tick();
    area->drawAll();
  }
  QCoreApplication::sendPostedEvents();
  QCoreApplication::processEvents();
  return static_cast<double>(timer.nsecsElapsed()) * 1e-6;
}

void measureFrames(Scene& scene, bench::Limits& limits) {
  std::vector<std::vector<std::vector<RunEvent>>> batches;
  std::vector<std::vector<RunEvent>> later;
  for (const MadeRun& made : scene.made) later.push_back(made.events(scene.updates + frames + 20, scene.updates));
  for (int f = 0; f < frames + 20; ++f) {
    std::vector<std::vector<RunEvent>> batch;
    for (const std::vector<RunEvent>& events : later) {
      const std::size_t each = events.size() / static_cast<std::size_t>(frames + 20);
      const auto begin = events.begin() + static_cast<std::ptrdiff_t>(each) * f;
      batch.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(each));
    }
    batches.push_back(std::move(batch));
  }
  std::vector<double> live;
  for (int f = 0; f < frames + 20; ++f) {
    const double cost = frame(scene, batches[static_cast<std::size_t>(f)]);
    if (f >= 20) live.push_back(cost);
  }
  report("frame, live", live);
  std::vector<double> smooth;
  for (PlotArea* area : scene.areas) area->setSmoothing(0.9);
  const std::vector<std::vector<RunEvent>> nothing(scene.runs.size());
  report("first frame after switching smoothing on", {frame(scene, nothing)});
  std::vector<double> zooming;
  for (int f = 0; f < frames; ++f) {
    for (PlotArea* area : scene.areas) area->zoomX(f % 40 < 20 ? 1.2 : 1.0 / 1.2);
    zooming.push_back(frame(scene, nothing));
  }
  const Times zoomed = report("frame, zooming, smoothed", zooming);
  std::vector<double> clocks;
  for (int f = 0; f < 35; ++f) {
    for (PlotArea* area : scene.areas) area->setClock(allClocks[static_cast<std::size_t>(f) % clockCount]);
    clocks.push_back(frame(scene, nothing));
  }
  const Times switched = report("frame, clock switched", clocks);
  std::vector<double> hover;
  for (int f = 0; f < 300; ++f) {
    QElapsedTimer timer;
    timer.start();
    scene.areas.front()->goTo(scene.runs.front()->latest(scene.areas.front()->clock()) * f / 300.0);
    hover.push_back(static_cast<double>(timer.nsecsElapsed()) * 1e-6);
  }
  report("cursor moved", hover);
  limits.most("frame, zooming, smoothed, p95", zoomed.at(0.95), 50);
  limits.most("frame, clock switched, p95", switched.at(0.95), 50);
}

/// 20 000 events a second from another thread through the queue; a 5 ms heartbeat says how late the loop is.
void measureBurst(Scene& scene, bench::Limits& limits) {
  EventQueue queue;
  EventLogModel log;
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> pushed = 0;
  RunSeries& run = *scene.runs.front();
  const std::int64_t before = run.eventsTaken();
  std::int64_t next = static_cast<std::int64_t>(run.latest(Clock::microStep)) + 1;
  std::thread producer([&] {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    auto due = begin;
    while (!stop) {
      for (int i = 0; i < 20; ++i, ++next) {
        queue.push({0, next, next * 1000,
                    MicroSteps{{next},
                               {(next - 1) / 4 + 1},
                               {(next - 1) % 4 + 1},
                               {4},
                               {0},
                               {next - 1},
                               {1.5},
                               {512},
                               {4},
                               {next * 1000000},
                               {900000}}});
        ++pushed;
      }
      due += std::chrono::milliseconds(1);
      std::this_thread::sleep_until(due);
    }
  });
  std::vector<double> late;
  QElapsedTimer beat;
  QTimer heart;
  heart.setTimerType(Qt::PreciseTimer);
  QObject::connect(&heart, &QTimer::timeout, [&] {
    if (beat.isValid()) late.push_back(std::max(static_cast<double>(beat.nsecsElapsed()) * 1e-6 - 5.0, 0.0));
    beat.start();
  });
  QTimer pump;
  QObject::connect(&pump, &QTimer::timeout, [&] {
    const std::vector<RunEvent> events = queue.drain();
    run.append(events);
    log.append(run.id(), events);
  });
  QTimer frames;  // of its own, as in the window
  QObject::connect(&frames, &QTimer::timeout, [&] {
    for (PlotArea* area : scene.areas) area->tick();
  });
  heart.start(5);
  pump.start(33);
  frames.start(33);
  QTimer::singleShot(6000, [&] {
    stop = true;
    QCoreApplication::quit();
  });
  QCoreApplication::exec();
  producer.join();
  pump.stop();
  frames.stop();
  heart.stop();
  run.append(queue.drain());
  limits.most("event loop delay at 20 000 events/s, p99", report("event loop delay at 20 000 events/s", late).at(0.99),
              25);
  std::printf("events pushed %lld, taken %lld, dropped by the queue %llu\n", static_cast<long long>(pushed.load()),
              static_cast<long long>(run.eventsTaken() - before), static_cast<unsigned long long>(queue.dropped()));
}

/// A picture of a plot stack at twice the pixels a side against one at the screen's: four times the pixels should cost
/// little more than four times.
void measureSharpness(Scene& scene) {
  PlotArea* const area = scene.areas.front();
  const auto paint = [area](double ratio) {
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
      QElapsedTimer timer;
      timer.start();
      area->renderImage(ratio);
      times.push_back(static_cast<double>(timer.nsecsElapsed()) * 1e-6);
    }
    std::ranges::nth_element(times, times.begin() + 4);
    return times[4];
  };
  const double one = paint(1.0);
  const double two = paint(2.0);
  std::printf("picture at device pixel ratio 2 : 1                median %7.2f ms : %.2f ms = %.1f\n", two, one,
              two / one);
}

}  // namespace

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  const std::int64_t points = argc > 1 ? std::atoll(argv[1]) : 100000;
  const int runs = argc > 2 ? std::atoi(argv[2]) : 4;
  const int plots = argc > 3 ? std::atoi(argv[3]) : 2;
  const Theme theme(application);
  Scene scene;
  build(scene, points, runs, plots);
  std::printf("%d stack(s) of three plots, %d runs of %lld micro-steps and %lld updates each\n", plots, runs,
              static_cast<long long>(points), static_cast<long long>(points / 4));
  accrue::bench::Limits limits;
  measureFrames(scene, limits);
  measureSharpness(scene);
  measureBurst(scene, limits);
  return limits.exit_status();
}

// SPDX-License-Identifier: Apache-2.0
#include <QElapsedTimer>
#include <QTest>
#include <array>
#include <thread>

#include "accrue/run/events/event_queue.h"
#include "support/test_program.h"

namespace test_event_queue {

using namespace accrue;

namespace {

RunEvent micro(std::int64_t seq) {
  return {0, seq, 0, MicroSteps{{seq}, {1}, {1}, {1}, {0}, {0}, {1.0}, {1}, {1}, {1}, {1}}};
}
RunEvent gauge(std::int64_t rank, std::int64_t bytes) {
  return {rank, 0, 0, Gauge{bytes, 0, 0, 0}};
}
RunEvent update(std::int64_t number) {
  Update body;
  body.update = number;
  return {0, number, 0, body};
}

}  // namespace

class TestEventQueue : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void answers_in_order_and_once() {
    EventQueue queue;
    for (int i = 0; i < 5; ++i) queue.push(update(i));
    const auto events = queue.drain();
    QCOMPARE(events.size(), std::size_t{5});
    for (int i = 0; i < 5; ++i) QCOMPARE(events[static_cast<std::size_t>(i)].seq, i);
    QVERIFY(queue.drain().empty());
    QCOMPARE(queue.dropped(), std::uint64_t{0});
  }

  void a_full_queue_drops_traces_and_says_how_many() {
    EventQueue queue(4);
    for (int i = 0; i < 10; ++i) queue.push(micro(i));
    QCOMPARE(queue.size(), std::size_t{4});
    QCOMPARE(queue.dropped(), std::uint64_t{6});
  }

  void a_full_queue_keeps_every_update() {
    EventQueue queue(4);
    for (int i = 0; i < 4; ++i) queue.push(micro(i));
    for (int i = 0; i < 10; ++i) queue.push(update(i));
    QCOMPARE(queue.size(), std::size_t{14});
    QCOMPARE(queue.dropped(), std::uint64_t{0});
  }

  void a_full_queue_keeps_the_latest_gauge_of_each_rank() {
    EventQueue queue(4);
    queue.push(gauge(0, 1));
    queue.push(gauge(1, 1));
    queue.push(update(0));
    queue.push(update(1));
    for (int i = 2; i < 50; ++i) queue.push(gauge(i % 2, i));
    const auto events = queue.drain();
    QCOMPARE(events.size(), std::size_t{4});
    std::map<std::int64_t, std::int64_t> latest;
    for (const auto& event : events)
      if (const auto* body = std::get_if<Gauge>(&event.body)) latest[event.rank] = body->rss_bytes;
    QCOMPARE(latest[0], 48);
    QCOMPARE(latest[1], 49);
  }

  void two_threads_lose_nothing() {
    EventQueue queue(1 << 20);
    constexpr int count = 50000;
    std::jthread producer([&queue] {
      for (int i = 0; i < count; ++i) queue.push(update(i));
    });
    std::int64_t next = 0;
    QElapsedTimer timer;
    timer.start();
    while (next < count && timer.elapsed() < 20000)
      for (const auto& event : queue.drain()) QCOMPARE(event.seq, next++);
    QCOMPARE(next, count);
  }

  void what_is_pushed_together_is_drained_together() {
    EventQueue queue(1 << 20);
    constexpr int count = 20000;
    std::jthread producer([&queue] {
      for (int i = 0; i < count; ++i) {
        std::array<RunEvent, 2> both{update(i), update(i)};
        queue.push(both);
      }
    });
    std::size_t taken = 0;
    QElapsedTimer timer;
    timer.start();
    while (taken < 2 * count && timer.elapsed() < 20000) {
      const auto events = queue.drain();
      QCOMPARE(events.size() % 2, std::size_t{0});
      taken += events.size();
    }
    QCOMPARE(taken, std::size_t{2 * count});
  }
};

ACCRUE_TEST_MAIN(TestEventQueue)

}  // namespace test_event_queue
#include "test_event_queue.moc"

// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules, checked by playing them: once with blocking transfers that meet (rendezvous), once with a clock.
#include <QTest>
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "accrue/run/window/pipeline_schedule.h"
#include "support/test_program.h"

namespace test_pipeline_schedule {

using namespace accrue;

namespace {

using Lists = std::vector<std::vector<PipelineOperation>>;
using enum PipelineAction;

bool computes(const PipelineOperation& operation) {
  return operation.action == forward || operation.action == backward;
}

bool sends(const PipelineOperation& operation) {
  return operation.action == send_output || operation.action == send_gradient;
}

PipelineAction counterpart(PipelineAction action) {
  return action == send_output ? receive_input : receive_gradient;
}

/// A tensor between model parts: the part that takes it, which micro-step, which way.
using Tensor = std::tuple<std::int64_t, std::int64_t, bool>;

Tensor sent(const PipelineShape& shape, std::int64_t stage, const PipelineOperation& operation) {
  const std::int64_t part = operation.chunk * shape.stages + stage;
  const bool onward = operation.action == send_output;
  return {part + (onward ? 1 : -1), operation.micro_step, onward};
}

Tensor received(const PipelineShape& shape, std::int64_t stage, const PipelineOperation& operation) {
  return {operation.chunk * shape.stages + stage, operation.micro_step, operation.action == receive_input};
}

/// Runs the lists with transfers that block both sides until they meet. Returns the place at which it stops; empty: it
/// does not.
QString run_by_rendezvous(const PipelineShape& shape, const Lists& lists) {
  std::vector<std::size_t> at(lists.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < lists.size(); ++s) {
      while (at[s] < lists[s].size() && computes(lists[s][at[s]])) {
        ++at[s];
        moved = true;
      }
      if (at[s] == lists[s].size() || !sends(lists[s][at[s]])) continue;
      const PipelineOperation& send = lists[s][at[s]];
      const auto peer = static_cast<std::size_t>(send.peer);
      if (at[peer] == lists[peer].size()) continue;
      const PipelineOperation& other = lists[peer][at[peer]];
      if (other.action != counterpart(send.action) || other.peer != static_cast<std::int64_t>(s)) continue;
      if (sent(shape, static_cast<std::int64_t>(s), send) != received(shape, send.peer, other))
        return QStringLiteral("stage %1 receives another tensor than stage %2 sends").arg(peer).arg(s);
      ++at[s];
      ++at[peer];
      moved = true;
    }
  }
  for (std::size_t s = 0; s < lists.size(); ++s)
    if (at[s] != lists[s].size()) return QStringLiteral("stage %1 waits at operation %2").arg(s).arg(at[s]);
  return {};
}

/// When the last stage is done, where sends do not block, transfers take no time and receives wait for their tensor.
double makespan(const PipelineShape& shape, const Lists& lists, double t_f, double t_b) {
  std::vector<std::size_t> at(lists.size(), 0);
  std::vector<double> clock(lists.size(), 0.0);
  std::map<Tensor, double> ready;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < lists.size(); ++s) {
      for (; at[s] < lists[s].size(); ++at[s], moved = true) {
        const PipelineOperation& operation = lists[s][at[s]];
        const auto stage = static_cast<std::int64_t>(s);
        if (computes(operation)) {
          clock[s] += (operation.action == forward ? t_f : t_b) / static_cast<double>(shape.chunks);
        } else if (sends(operation)) {
          ready[sent(shape, stage, operation)] = clock[s];
        } else {
          const auto found = ready.find(received(shape, stage, operation));
          if (found == ready.end()) break;
          clock[s] = std::max(clock[s], found->second);
        }
      }
    }
  }
  return *std::ranges::max_element(clock);
}

/// Every micro-step passes each chunk once each way, after what it needs. Says what is wrong.
QString check_order(const PipelineShape& shape, std::int64_t stage, const std::vector<PipelineOperation>& list) {
  std::set<std::tuple<PipelineAction, std::int64_t, std::int64_t>> done;
  const std::int64_t last = shape.stages * shape.chunks - 1;
  for (const PipelineOperation& operation : list) {
    const auto has = [&](PipelineAction action) {
      return done.contains({action, operation.micro_step, operation.chunk});
    };
    const std::int64_t part = operation.chunk * shape.stages + stage;
    bool fits = true;
    if (operation.action == forward) fits = part == 0 || has(receive_input);
    if (operation.action == backward) fits = has(forward) && (part == last || has(receive_gradient));
    if (operation.action == send_output) fits = has(forward) && part < last;
    if (operation.action == send_gradient) fits = has(backward) && part > 0;
    if (!fits) return QStringLiteral("an operation comes before what it needs");
    if (!done.insert({operation.action, operation.micro_step, operation.chunk}).second)
      return QStringLiteral("an operation comes twice");
  }
  for (const PipelineAction action : {forward, backward})
    if (std::ranges::count(list, action, &PipelineOperation::action) != shape.micro_steps * shape.chunks)
      return QStringLiteral("not every micro-step passes every chunk");
  return {};
}

std::int64_t most_in_flight(const std::vector<PipelineOperation>& list) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const PipelineOperation& operation : list) {
    now += operation.action == forward ? 1 : operation.action == backward ? -1 : 0;
    most = std::max(most, now);
  }
  return most;
}

std::vector<PipelineShape> shapes() {
  std::vector<PipelineShape> all;
  for (const std::int64_t p : {1, 2, 3, 4, 5, 8})
    for (const std::int64_t m : {1, 2, 3, 4, 5, 7, 8, 16, 33}) {
      all.push_back({PipelineSchedule::all_forward_all_backward, p, m});
      all.push_back({PipelineSchedule::one_forward_one_backward, p, m});
      if (p > 1) all.push_back({PipelineSchedule::all_forward_all_backward, p, m, 2});
      for (const std::int64_t v : {2, 3, 4})
        for (const std::int64_t g : {p, p + 1, 2 * p})
          if (p > 1 && m >= p && (m % g == 0 || m % g >= p)) all.push_back({PipelineSchedule::interleaved, p, m, v, g});
    }
  return all;
}

QString name_of(const PipelineShape& shape) {
  return QStringLiteral("schedule %1, p %2, m %3, v %4, g %5")
      .arg(static_cast<int>(shape.schedule))
      .arg(shape.stages)
      .arg(shape.micro_steps)
      .arg(shape.chunks)
      .arg(shape.group);
}

QString text_of(const std::vector<PipelineOperation>& list) {
  QStringList words;
  for (const PipelineOperation& operation : list)
    if (computes(operation))
      words << QStringLiteral("%1%2")
                   .arg(operation.action == forward ? QLatin1Char('F') : QLatin1Char('B'))
                   .arg(operation.micro_step);
  return words.join(QLatin1Char(' '));
}

}  // namespace

class TestPipelineSchedule : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void one_stage_is_the_plain_loop() {
    const Lists lists = pipeline_schedule({.micro_steps = 3}).value();
    QCOMPARE(lists.size(), std::size_t{1});
    QCOMPARE(lists[0].size(), std::size_t{6});
    QCOMPARE(text_of(lists[0]), QStringLiteral("F0 B0 F1 B1 F2 B2"));
  }

  void one_forward_one_backward_is_the_known_order() {
    const Lists lists =
        pipeline_schedule({PipelineSchedule::one_forward_one_backward, /*stages=*/3, /*micro_steps=*/4}).value();
    QCOMPARE(text_of(lists[0]), QStringLiteral("F0 F1 F2 B0 F3 B1 B2 B3"));
    QCOMPARE(text_of(lists[1]), QStringLiteral("F0 F1 B0 F2 B1 F3 B2 B3"));
    QCOMPARE(text_of(lists[2]), QStringLiteral("F0 B0 F1 B1 F2 B2 F3 B3"));
  }

  void interleaved_groups_take_turns_on_the_chunks() {
    const Lists lists = pipeline_schedule({PipelineSchedule::interleaved, 2, 5, 2, 3}).value();
    QString micro_steps;
    QString chunks;
    for (const PipelineOperation& operation : lists[0])
      if (operation.action == forward) {
        micro_steps += QString::number(operation.micro_step);
        chunks += QString::number(operation.chunk);
      }
    QCOMPARE(micro_steps, QStringLiteral("0120123434"));
    QCOMPARE(chunks, QStringLiteral("0001110011"));
  }

  void every_micro_step_passes_every_chunk_once_each_way() {
    for (const PipelineShape& shape : shapes()) {
      const Lists lists = pipeline_schedule(shape).value();
      QCOMPARE(lists.size(), static_cast<std::size_t>(shape.stages));
      for (std::size_t s = 0; s < lists.size(); ++s) {
        const QString wrong = check_order(shape, static_cast<std::int64_t>(s), lists[s]);
        QVERIFY2(wrong.isEmpty(), qPrintable(name_of(shape) + QStringLiteral(": ") + wrong));
      }
    }
  }

  void blocking_transfers_never_deadlock() {
    for (const PipelineShape& shape : shapes()) {
      const QString wrong = run_by_rendezvous(shape, pipeline_schedule(shape).value());
      QVERIFY2(wrong.isEmpty(), qPrintable(name_of(shape) + QStringLiteral(": ") + wrong));
    }
  }

  /// The check above can fail: stages that both send first never meet.
  void two_stages_that_send_first_are_seen_to_wait() {
    Lists lists = pipeline_schedule({PipelineSchedule::one_forward_one_backward, 2, 3}).value();
    for (auto& list : lists)
      for (std::size_t i = 0; i + 1 < list.size(); ++i)
        if (!computes(list[i]) && !sends(list[i]) && sends(list[i + 1])) std::swap(list[i], list[i + 1]);
    QVERIFY(!run_by_rendezvous({PipelineSchedule::one_forward_one_backward, 2, 3}, lists).isEmpty());
  }

  void activations_kept_are_those_of_the_formula() {
    for (const PipelineShape& shape : shapes()) {
      const Lists lists = pipeline_schedule(shape).value();
      for (std::size_t s = 0; s < lists.size(); ++s)
        QVERIFY2(most_in_flight(lists[s]) == pipeline_in_flight(shape, static_cast<std::int64_t>(s)),
                 qPrintable(name_of(shape)));
    }
    const PipelineShape plain{PipelineSchedule::one_forward_one_backward, 4, 8};
    const PipelineShape virtual_stages{PipelineSchedule::interleaved, 4, 8, 2};
    const PipelineShape all_forward{PipelineSchedule::all_forward_all_backward, 4, 8};
    for (std::int64_t s = 0; s < 4; ++s) {
      QCOMPARE(pipeline_in_flight(plain, s), 4 - s);
      QCOMPARE(pipeline_in_flight(virtual_stages, s), 11 - 2 * s);
      QCOMPARE(pipeline_in_flight(all_forward, s), 8);
    }
  }

  /// Forwards before a stage's first backward, but for the one that the steady phase begins with.
  void warm_ups_are_as_many_as_published_data() {
    QTest::addColumn<int>("micro_steps");
    QTest::addColumn<int>("chunks");
    QTest::addColumn<QList<int>>("expected");
    QTest::newRow("8 micro-steps, 2 chunks") << 8 << 2 << QList<int>{10, 8, 6, 4};
    QTest::newRow("8 micro-steps, 4 chunks") << 8 << 4 << QList<int>{18, 16, 14, 12};
    // Of 8 forwards on each stage, all are warm-up on the first two.
    QTest::newRow("4 micro-steps, 2 chunks") << 4 << 2 << QList<int>{8, 8, 6, 4};
  }
  void warm_ups_are_as_many_as_published() {
    QFETCH(int, micro_steps);
    QFETCH(int, chunks);
    QFETCH(QList<int>, expected);
    const Lists lists = pipeline_schedule({PipelineSchedule::interleaved, 4, micro_steps, chunks}).value();
    for (std::size_t s = 0; s < lists.size(); ++s) {
      const auto first = std::ranges::find(lists[s], backward, &PipelineOperation::action);
      const auto forwards =
          std::count_if(lists[s].begin(), first, [](const auto& operation) { return operation.action == forward; });
      const bool all = forwards == micro_steps * chunks;
      const bool steady = !all || expected[static_cast<qsizetype>(s)] < micro_steps * chunks;
      QCOMPARE(forwards - (steady ? 1 : 0), expected[static_cast<qsizetype>(s)]);
    }
  }

  void the_bubble_is_that_of_the_formula_data() {
    QTest::addColumn<PipelineShape>("shape");
    QTest::addColumn<double>("time");
    QTest::newRow("all forward") << PipelineShape{PipelineSchedule::all_forward_all_backward, 4, 8} << 33.0;
    QTest::newRow("1F1B") << PipelineShape{PipelineSchedule::one_forward_one_backward, 4, 8} << 33.0;
    QTest::newRow("two chunks") << PipelineShape{PipelineSchedule::interleaved, 4, 8, 2} << 28.5;
    QTest::newRow("four chunks") << PipelineShape{PipelineSchedule::interleaved, 4, 8, 4} << 26.25;
    QTest::newRow("one stage") << PipelineShape{PipelineSchedule::one_forward_one_backward, 1, 8} << 24.0;
  }
  void the_bubble_is_that_of_the_formula() {
    QFETCH(PipelineShape, shape);
    QFETCH(double, time);
    const double taken = makespan(shape, pipeline_schedule(shape).value(), 1.0, 2.0);
    QCOMPARE(taken, time);
    const double ideal = 3.0 * static_cast<double>(shape.micro_steps);
    QVERIFY(std::abs(pipeline_bubble(shape) - (taken - ideal) / taken) < 1e-12);
  }

  void a_spec_orders_its_windows() {
    using enum PipelineSchedule;
    ParallelSpec parallel{.pipeline = 2};
    QCOMPARE(pipeline_shape(parallel, 4), (PipelineShape{one_forward_one_backward, 2, 4}));
    parallel.pipeline_order = PipelineOrder::all_forward;
    QCOMPARE(pipeline_shape(parallel, 4), (PipelineShape{all_forward_all_backward, 2, 4}));
    parallel = {.pipeline = 2, .virtual_pipeline = 2, .pipeline_group = 3};
    QCOMPARE(pipeline_shape(parallel, 5), (PipelineShape{interleaved, 2, 5, 2, 3}));
    QCOMPARE(pipeline_shape(parallel, 4), (PipelineShape{all_forward_all_backward, 2, 4, 2}));
    parallel.pipeline_order = PipelineOrder::all_forward;
    QCOMPARE(pipeline_shape(parallel, 5), (PipelineShape{all_forward_all_backward, 2, 5, 2}));
    // One stage has nothing to order.
    parallel = {.pipeline_order = PipelineOrder::all_forward};
    QCOMPARE(pipeline_shape(parallel, 5), (PipelineShape{one_forward_one_backward, 1, 5}));
  }

  void shapes_without_a_schedule_are_refused_with_the_rule() {
    const auto refused = [](const PipelineShape& shape, const char* rule) {
      const auto lists = pipeline_schedule(shape);
      return !lists && lists.error().code == ErrorCode::config && lists.error().message.find(rule) != std::string::npos;
    };
    QVERIFY(refused({PipelineSchedule::one_forward_one_backward, 2, 4, 2}, "interleaved"));
    QVERIFY(refused({PipelineSchedule::interleaved, 1, 4, 2}, "at least 2 stages"));
    QVERIFY(refused({PipelineSchedule::interleaved, 4, 6, 2}, "6 in groups of 4"));
    QVERIFY(refused({PipelineSchedule::interleaved, 4, 3, 2}, "3 in groups of 4"));
    QVERIFY(refused({PipelineSchedule::one_forward_one_backward, 0, 4}, "at least 1"));
  }
};

ACCRUE_TEST_MAIN(TestPipelineSchedule)

}  // namespace test_pipeline_schedule
#include "test_pipeline_schedule.moc"

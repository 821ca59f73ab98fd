// SPDX-License-Identifier: Apache-2.0
// The clock of a pipeline's window, against published figures and small schedules that are drawn by hand.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "accrue/run/window/pipeline_timeline.h"
#include "support/test_program.h"

namespace test_pipeline_timeline {

using namespace accrue;

namespace {

using enum PipelineAction;

std::vector<std::int64_t> stashes(const PipelineTimeline& timeline) {
  std::vector<std::int64_t> all;
  for (std::size_t stage = 0; stage < timeline.lanes.size(); ++stage) all.push_back(timeline.stash(stage));
  return all;
}

}  // namespace

class TestPipelineTimeline : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Four stages, eight micro-steps, a forward of 1 and a backward of 2: the ideal is 24.
  void four_stages_take_the_published_time_data() {
    QTest::addColumn<PipelineShape>("shape");
    QTest::addColumn<double>("makespan");
    QTest::addColumn<std::vector<std::int64_t>>("stash");
    using enum PipelineSchedule;
    using Stash = std::vector<std::int64_t>;
    QTest::newRow("1F1B") << PipelineShape{one_forward_one_backward, 4, 8} << 33.0 << Stash{4, 3, 2, 1};
    QTest::newRow("two chunks") << PipelineShape{interleaved, 4, 8, 2} << 28.5 << Stash{11, 9, 7, 5};
    QTest::newRow("four chunks") << PipelineShape{interleaved, 4, 8, 4} << 26.25 << Stash{19, 17, 15, 13};
    QTest::newRow("all forward") << PipelineShape{all_forward_all_backward, 4, 8} << 33.0 << Stash{8, 8, 8, 8};
    QTest::newRow("one stage") << PipelineShape{one_forward_one_backward, 1, 8} << 24.0 << Stash{1};
  }
  void four_stages_take_the_published_time() {
    QFETCH(PipelineShape, shape);
    QFETCH(double, makespan);
    QFETCH(std::vector<std::int64_t>, stash);
    const PipelineTimeline timeline = pipeline_timeline(shape, {1.0, 2.0}).value();
    QCOMPARE(timeline.begin(), 0.0);
    QCOMPARE(timeline.end(), makespan);
    QVERIFY(std::abs(timeline.bubble() - (makespan - 24.0) / makespan) < 1e-12);
    QCOMPARE(stashes(timeline), stash);
    QCOMPARE(timeline.blocks(), static_cast<std::size_t>(2 * shape.stages * shape.micro_steps * shape.chunks));
  }

  /// Stage 0: F0 F1 . . B0 . B1 with a forward of 1, a backward of 2; stage 1: . F0 B0 F1 B1.
  void two_stages_are_those_drawn_by_hand() {
    const PipelineTimeline timeline =
        pipeline_timeline({PipelineSchedule::one_forward_one_backward, /*stages=*/2, /*micro_steps=*/2}).value();
    const std::vector<PipelineBlock> first{
        {forward, 0, 0, 0, 1}, {forward, 1, 0, 1, 2}, {backward, 0, 0, 4, 6}, {backward, 1, 0, 7, 9}};
    const std::vector<PipelineBlock> second{
        {forward, 0, 0, 1, 2}, {backward, 0, 0, 2, 4}, {forward, 1, 0, 4, 5}, {backward, 1, 0, 5, 7}};
    QCOMPARE(timeline.lanes.size(), std::size_t{2});
    QVERIFY(timeline.lanes[0] == first);
    QVERIFY(timeline.lanes[1] == second);
    QVERIFY(std::abs(timeline.bubble() - 6.0 / 18.0) < 1e-12);
  }

  void one_stage_never_waits() {
    const PipelineTimeline timeline = pipeline_timeline({.micro_steps = 3}, {0.5, 0.25}).value();
    QCOMPARE(timeline.end(), 2.25);
    QCOMPARE(timeline.bubble(), 0.0);
  }

  void no_block_runs_before_what_it_needs_and_none_over_another() {
    for (const std::int64_t p : {2, 3, 4, 8})
      for (const std::int64_t v : {1, 2, 3}) {
        const PipelineShape shape{v == 1 ? PipelineSchedule::one_forward_one_backward : PipelineSchedule::interleaved,
                                  p, 2 * p, v};
        const PipelineTimeline timeline = pipeline_timeline(shape, {1.0, 1.7}).value();
        std::map<std::tuple<std::int64_t, std::int64_t, bool>, double> done;  // part, micro-step, forward
        for (std::size_t s = 0; s < timeline.lanes.size(); ++s)
          for (const PipelineBlock& block : timeline.lanes[s])
            done[{block.chunk * p + static_cast<std::int64_t>(s), block.micro_step, block.action == forward}] =
                block.end;
        for (std::size_t s = 0; s < timeline.lanes.size(); ++s) {
          double free = 0.0;
          for (const PipelineBlock& block : timeline.lanes[s]) {
            const std::int64_t part = block.chunk * p + static_cast<std::int64_t>(s);
            const bool onward = block.action == forward;
            double needed = free;
            if (onward && part > 0) needed = std::max(needed, done.at({part - 1, block.micro_step, true}));
            if (!onward) needed = std::max(needed, done.at({part, block.micro_step, true}));
            if (!onward && part < p * v - 1) needed = std::max(needed, done.at({part + 1, block.micro_step, false}));
            QVERIFY(block.begin > needed - 1e-9);
            // A wait of a stage ends when the block that it waits for ends on another stage.
            const bool waited = block.begin > free + 1e-9;
            const auto ends_there = [&](const auto& entry) { return std::abs(entry.second - block.begin) < 1e-9; };
            QVERIFY(!waited || std::ranges::any_of(done, ends_there));
            free = block.end;
          }
        }
      }
  }

  void a_shape_without_a_schedule_has_no_timeline() {
    const auto refused = pipeline_timeline({PipelineSchedule::interleaved, 4, 6, 2});
    QVERIFY(!refused);
    QVERIFY(refused.error().message.find("6 in groups of 4") != std::string::npos);
  }

  void an_empty_window_has_no_bubble() {
    const PipelineTimeline none;
    QCOMPARE(none.end() - none.begin(), 0.0);
    QCOMPARE(none.bubble(), 0.0);
  }
};

ACCRUE_TEST_MAIN(TestPipelineTimeline)

}  // namespace test_pipeline_timeline
#include "test_pipeline_timeline.moc"

// SPDX-License-Identifier: Apache-2.0
// Computations that use the threads of idle stages, compared with schedules drawn by hand: a forward takes 1, a
// backward 2.
#include <QTest>
#include <algorithm>
#include <tuple>

#include "accrue/run/window/pipeline_threads.h"
#include "accrue/run/window/pipeline_timeline.h"
#include "support/test_program.h"

namespace test_pipeline_threads {

using namespace accrue;

namespace {

using enum PipelineAction;
using enum PipelineSchedule;

std::vector<LentThreads> lent(const PipelineShape& shape, std::int64_t stage, const StageHost& host) {
  return pipeline_threads(shape, stage, host).value();
}

/// Threads of a block's rank.
std::int64_t threads_of(const PipelineBlock& block, const std::vector<LentThreads>& more, const StageHost& host) {
  const auto found = std::ranges::find_if(more, [&](const LentThreads& each) {
    return std::tie(each.action, each.micro_step, each.chunk) == std::tie(block.action, block.micro_step, block.chunk);
  });
  return found == more.end() ? host.threads : found->threads;
}

}  // namespace

class TestPipelineThreads : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Stage 0: F0 F1 . . B0 B0 F2 ... . B3 B3; stage 1: . F0 B0 B0 F1 B1 B1 ...
  void of_two_stages_the_one_that_the_other_waits_for_has_both_threads() {
    const PipelineShape shape{one_forward_one_backward, 2, 4};
    const StageHost host{.threads = 1, .ranks = 1, .cores = 2};
    QVERIFY((lent(shape, 0, host) == std::vector<LentThreads>{{forward, 0, 0, 2}, {backward, 3, 0, 2}}));
    QVERIFY((lent(shape, 1, host) == std::vector<LentThreads>{{backward, 0, 0, 2}}));
  }

  /// Time 0: one stage has a forward; 1: two; 2: three. At 4 stage 3 alone has the first backward, at 6 stage 2 has it
  /// beside stage 3's next forward. At 29 stages 1 and 0 have the backwards that are left, at 31 stage 0 alone.
  void four_stages_share_what_is_idle() {
    const PipelineShape shape{one_forward_one_backward, 4, 8};
    const StageHost host{.threads = 1, .ranks = 1, .cores = 4};
    const std::vector<std::vector<LentThreads>> by_hand{{{forward, 0, 0, 4}, {forward, 1, 0, 2}, {backward, 7, 0, 4}},
                                                        {{forward, 0, 0, 2}, {backward, 7, 0, 2}},
                                                        {{backward, 0, 0, 2}},
                                                        {{backward, 0, 0, 4}, {forward, 1, 0, 2}}};
    for (std::int64_t stage = 0; stage < 4; ++stage)
      QVERIFY2(lent(shape, stage, host) == by_hand[static_cast<std::size_t>(stage)],
               qPrintable(QString("stage %1").arg(stage)));
  }

  void nothing_is_lent_without_a_core_for_it() {
    const PipelineShape shape{one_forward_one_backward, 2, 4};
    QVERIFY(lent(shape, 0, {.threads = 1, .ranks = 1, .cores = 1}).empty());
    QVERIFY(lent(shape, 0, {.threads = 1, .ranks = 4, .cores = 4}).empty());
    QVERIFY(lent(shape, 0, {.threads = 2, .ranks = 1, .cores = 2}).empty());
    QCOMPARE(lent(shape, 0, {.threads = 1, .ranks = 2, .cores = 4}).front().threads, 2);
    // Three cores for the threads of four stages: one that computes alone has all three.
    const PipelineShape four{one_forward_one_backward, 4, 8};
    QCOMPARE(lent(four, 0, {.threads = 1, .ranks = 1, .cores = 3}).front().threads, 3);
  }

  /// Their teams would change size around each task.
  void ranks_with_threads_of_their_own_borrow_none() {
    const PipelineShape shape{one_forward_one_backward, 2, 4};
    QVERIFY(lent(shape, 0, {.threads = 2, .ranks = 1, .cores = 64}).empty());
    QVERIFY(lent(shape, 1, {.threads = 3, .ranks = 2, .cores = 64}).empty());
  }

  void one_stage_has_nobody_to_borrow_from() { QVERIFY(lent({.micro_steps = 3}, 0, {.cores = 8}).empty()); }

  void stages_together_never_use_more_than_their_threads() {
    const StageHost host{.threads = 1, .ranks = 1, .cores = 64};
    for (const std::int64_t p : {2, 3, 4, 5})
      for (const std::int64_t v : {1, 2, 3})
        for (const auto schedule : {one_forward_one_backward, interleaved, all_forward_all_backward}) {
          if ((schedule == interleaved) != (v > 1) && schedule != all_forward_all_backward) continue;
          const PipelineShape shape{schedule, p, 2 * p, v};
          const auto pace = static_cast<double>(v);
          const PipelineTimeline timeline = pipeline_timeline(shape, {pace, 2 * pace}).value();
          std::int64_t most = 0;
          for (double now = 0.5; now < timeline.end(); now += 1.0) {
            std::int64_t in_use = 0;
            for (std::int64_t stage = 0; stage < p; ++stage) {
              const auto more = lent(shape, stage, host);
              for (const PipelineBlock& block : timeline.lanes[static_cast<std::size_t>(stage)])
                if (block.begin < now && now < block.end) in_use += threads_of(block, more, host);
            }
            most = std::max(most, in_use);
            QVERIFY(in_use <= p * host.threads);
          }
          QCOMPARE(most, p * host.threads);
        }
  }

  void a_shape_without_a_schedule_lends_nothing() { QVERIFY(!pipeline_threads({interleaved, 4, 6, 2}, 0, {})); }
};

ACCRUE_TEST_MAIN(TestPipelineThreads)

}  // namespace test_pipeline_threads
#include "test_pipeline_threads.moc"

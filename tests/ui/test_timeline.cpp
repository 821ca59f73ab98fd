// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>
#include <random>

#include "made_run.h"
#include "points/sync_timeline.h"
#include "support/test_program.h"

namespace test_timeline {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

SyncTimeline timelineOf(const std::vector<RunEvent>& events) {
  SyncTimeline timeline;
  for (const RunEvent& event : events) {
    if (const auto* body = std::get_if<Operations>(&event.body)) timeline.take(event.rank, *body);
    if (const auto* body = std::get_if<Sync>(&event.body)) timeline.take(event.rank, *body);
  }
  return timeline;
}

/// A rank that takes from 1 to 4 s for a forward and twice that for a backward, and reduces 64 bytes every fourth
/// micro-step, for a second, after which it agrees with others for as long as told. It tells one micro-step at a time.
class LongRun {
 public:
  explicit LongRun(std::int64_t agreeing = 0) : agreeing_(agreeing) {}
  void train(SyncTimeline& timeline, std::int64_t micros) {
    for (const std::int64_t last = done_ + micros; done_ < last;) {
      const std::int64_t micro = ++done_;
      const std::int64_t forward = 1 + micro * 7 % 4;
      begins_.push_back(now_);
      const std::int64_t middle = now_ + forward, end = middle + 2 * forward;
      timeline.take(0, Operations{{ComputeKind::forward, ComputeKind::backward},
                                  {micro, micro},
                                  {0, 0},
                                  {ns(now_), ns(middle)},
                                  {ns(middle), ns(end)}});
      now_ = end;
      if (micro % 4 != 0) continue;
      timeline.take(0, Sync{{micro / 4},
                            {micro},
                            {"data"},
                            {"all_reduce"},
                            {CollectivePurpose::gradients},
                            {64},
                            {ns(end)},
                            {ns(end + 1)}});
      now_ = end + 1;
      if (agreeing_ == 0) continue;
      timeline.take(0, Sync{{micro / 4},
                            {micro},
                            {"data"},
                            {"all_reduce"},
                            {CollectivePurpose::agreement},
                            {8},
                            {ns(now_)},
                            {ns(now_ + agreeing_)}});
      now_ += agreeing_;
    }
  }
  /// Seconds of forwards in the first so many micro-steps.
  static double forwards(std::int64_t micros) {
    double sum = 0.0;
    for (std::int64_t micro = 1; micro <= micros; ++micro) sum += static_cast<double>(1 + micro * 7 % 4);
    return sum;
  }
  /// When a micro-step began; that of the one after the last is the present.
  double beginOf(std::int64_t micro) const {
    const auto at = static_cast<std::size_t>(micro - 1);
    return static_cast<double>(at < begins_.size() ? begins_[at] : now_);
  }

 private:
  static std::int64_t ns(std::int64_t seconds) { return seconds * 1'000'000'000; }
  std::int64_t agreeing_;
  std::int64_t done_ = 0;
  std::int64_t now_ = 0;
  std::vector<std::int64_t> begins_;
};

/// So many of 8 bytes each over data, in micro-step 4.
Sync reductions(std::size_t count) {
  return {std::vector<std::int64_t>(count, 1),
          std::vector<std::int64_t>(count, 4),
          std::vector<std::string>(count, "data"),
          std::vector<std::string>(count, "all_reduce"),
          std::vector(count, CollectivePurpose::gradients),
          std::vector<std::int64_t>(count, 8),
          std::vector<std::int64_t>(count, 0),
          std::vector<std::int64_t>(count, 1)};
}

constexpr auto kept = static_cast<std::int64_t>(Lane::leastKept);

}  // namespace

class TestTimeline : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void each_rank_has_a_lane_with_its_spans() {
    const MadeRun made{.ranks = 3, .updates = 10};
    const SyncTimeline timeline = timelineOf(made.events(10));
    QCOMPARE(timeline.lanes().size(), std::size_t{3});
    for (const auto& [rank, lane] : timeline.lanes()) {
      QCOMPARE(lane.micro.size(), static_cast<std::size_t>(made.plan().totals.micro_steps));
      QCOMPARE(lane.sync.size(), std::size_t{10});
      QCOMPARE(lane.step.size(), std::size_t{10});
    }
  }

  void bytes_are_those_of_the_collectives() {
    const MadeRun made{.ranks = 2, .updates = 10};
    const SyncTimeline timeline = timelineOf(made.events(10));
    QCOMPARE(timeline.collectives(), 20);
    QCOMPARE(timeline.bytes(), 20 * 4096);
    QCOMPARE(timeline.largestBytes(), 4096);
  }

  void a_message_is_no_collective_and_counts_once() {
    SyncTimeline timeline;
    Sync sent, received;
    const auto add = [](Sync& to, const char* op, std::int64_t bytes) {
      to.axis.emplace_back("pipeline");
      to.op.emplace_back(op);
      to.purpose.push_back(CollectivePurpose::activations);
      to.bytes.push_back(bytes);
      to.begin_ns.push_back(1000 * std::int64_t(to.op.size()));
      to.end_ns.push_back(to.begin_ns.back() + 500);
      to.update.push_back(1);
      to.micro_step.push_back(1);
    };
    add(sent, "send", 64);
    add(received, "receive", 64);
    for (Sync* side : {&sent, &received}) add(*side, "all_reduce", 8);
    timeline.take(0, sent);
    timeline.take(1, received);
    QCOMPARE(timeline.messages(), 1);
    QCOMPARE(timeline.collectives(), 2);
    QCOMPARE(timeline.bytes(), 2 * 64 + 2 * 8);
  }

  void the_step_lies_between_the_reduction_and_the_update() {
    const MadeRun made{.updates = 4};
    const SyncTimeline timeline = timelineOf(made.events(4));
    const Lane& lane = timeline.lanes().at(1);
    for (std::size_t i = 0; i < lane.step.size(); ++i) {
      QVERIFY(std::abs(lane.step[i].begin - lane.sync[i].end) < 1e-8);
      QVERIFY(std::abs(lane.step[i].end() - lane.step[i].begin - made.step) < 1e-8);
    }
  }

  void shares_add_up_to_what_was_spent() {
    const MadeRun made{.updates = 10};
    const SyncTimeline timeline = timelineOf(made.events(10));
    const Lane& lane = timeline.lanes().at(0);
    const LaneShare all = lane.spent(1e9);
    const auto micros = static_cast<double>(lane.micro.size());
    QVERIFY(std::abs(all.forward - micros * made.forward) < 1e-5);
    QVERIFY(std::abs(all.backward - micros * made.backward) < 1e-5);
    QVERIFY(std::abs(all.collective - 10.0 * made.collective) < 1e-5);
    QVERIFY(std::abs(all.step - 10.0 * made.step) < 1e-5);
    const LaneShare none = lane.spent(0.0);
    QCOMPARE(none.forward + none.backward + none.collective + none.step, 0.0);
  }

  void nothing_is_counted_twice_over_a_division() {
    const MadeRun made{.updates = 20};
    const SyncTimeline timeline = timelineOf(made.events(20));
    const Lane& lane = timeline.lanes().at(0);
    std::mt19937 random(9);
    std::uniform_real_distribution<double> moment(0.0, lane.end());
    for (int trial = 0; trial < 500; ++trial) {
      double expected = 0.0;
      const double until = moment(random);
      for (const ComputeSpan& span : lane.forward)
        expected += std::clamp(until - span.begin, 0.0, static_cast<double>(span.seconds));
      QVERIFY(std::abs(lane.spent(until).forward - expected) < 1e-6);
    }
  }

  void rewinding_forgets_later_spans() {
    const MadeRun made{.updates = 20};
    SyncTimeline timeline = timelineOf(made.events(20));
    const std::vector<RunEvent> first = made.events(8);
    const SyncTimeline expected = timelineOf(first);
    timeline.rewind(expected.lanes().at(0).micro.back().microStep);
    QCOMPARE(timeline.lanes().at(0).micro.size(), expected.lanes().at(0).micro.size());
    QCOMPARE(timeline.lanes().at(0).sync.size(), expected.lanes().at(0).sync.size());
    QCOMPARE(timeline.end(), expected.end());
    QCOMPARE(timeline.collectives(), expected.collectives());
    QCOMPARE(timeline.bytes(), expected.bytes());
    QCOMPARE(timeline.lanes().at(0).spent(1e9).backward, expected.lanes().at(0).spent(1e9).backward);
  }

  void a_long_run_keeps_the_spans_of_its_newest_micro_steps() {
    SyncTimeline timeline;
    LongRun run;
    run.train(timeline, 8 * kept);
    const Lane& lane = timeline.lanes().at(0);
    QCOMPARE(lane.microSteps(), 8 * kept);
    QVERIFY(lane.micro.size() <= 2 * Lane::leastKept + Lane::mostPast);
    QVERIFY(lane.forward.size() >= Lane::leastKept && lane.forward.size() <= 2 * Lane::leastKept);
    QVERIFY(lane.sync.size() <= Lane::leastKept);
    QCOMPARE(lane.forward.back().microStep, 8 * kept);
    // Nothing is missing from what was counted, and each micro-step has a place.
    QCOMPARE(timeline.collectives(), 2 * kept);
    QCOMPARE(timeline.bytes(), 2 * kept * 64);
    QCOMPARE(timeline.reducingMicroSteps(), 2 * kept);
    std::int64_t next = 1;
    for (const MicroPlace& place : lane.micro) {
      QCOMPARE(place.microStep, next);
      next = place.last() + 1;
    }
    QCOMPARE(next, 8 * kept + 1);
  }

  void the_time_spent_stays_true_where_spans_are_gone() {
    SyncTimeline timeline;
    LongRun run(2);
    run.train(timeline, 8 * kept);
    const Lane& lane = timeline.lanes().at(0);
    QVERIFY(lane.condensedTo() >= 6 * kept);
    for (const MicroPlace& place : lane.micro) {
      if (place.microStep % 1013 > 16) continue;
      QCOMPARE(place.begin, run.beginOf(place.microStep));
      const LaneShare share = lane.spent(place.begin);
      QCOMPARE(share.forward, LongRun::forwards(place.microStep - 1));
      QCOMPARE(share.backward, 2.0 * LongRun::forwards(place.microStep - 1));
      QCOMPARE(share.collective, static_cast<double>((place.microStep - 1) / 4));
      QCOMPARE(share.aside, 2.0 * share.collective);
      QCOMPARE(lane.uses.front().time.training(place.begin), share.collective);
      QCOMPARE(lane.uses.front().time.aside(place.begin), share.aside);
    }
    QCOMPARE(lane.spent(1e12).forward, LongRun::forwards(8 * kept));
    // Inside a place the time is spread evenly.
    const MicroPlace& first = lane.micro.front();
    QVERIFY(first.count > 1);
    const double half = lane.spent((first.begin + lane.micro[1].begin) / 2.0).forward;
    QCOMPARE(half, LongRun::forwards(first.last()) / 2.0);
  }

  void a_long_run_may_be_resumed_from_far_back() {
    SyncTimeline timeline;
    LongRun run;
    run.train(timeline, 8 * kept);
    timeline.rewind(kept);
    const Lane& lane = timeline.lanes().at(0);
    QCOMPARE(lane.microSteps(), kept);
    QCOMPARE(lane.micro.back().last(), kept);
    QVERIFY(lane.forward.empty() && lane.sync.empty());
    QCOMPARE(timeline.collectives(), kept / 4);
    QVERIFY(std::abs(timeline.bytes() - kept / 4 * 64) < 64);  // an average of windows, within one of them
    const double longest = 16.0 * 14.0;                        // of a place's micro-steps
    QVERIFY(std::abs(lane.spent(1e12).forward - LongRun::forwards(kept)) < longest);
    // Repeated micro-steps are added from there on.
    const double before = lane.spent(1e12).forward;
    LongRun again;
    SyncTimeline skipped;
    again.train(skipped, kept);
    timeline.setTimeOffset(lane.end() + 10.0 - again.beginOf(kept + 1));
    again.train(timeline, 3 * kept);
    QCOMPARE(lane.microSteps(), 4 * kept);
    QCOMPARE(timeline.collectives(), kept);
    const double added = LongRun::forwards(4 * kept) - LongRun::forwards(kept);
    QVERIFY(std::abs(lane.spent(1e12).forward - before - added) < 1e-3);
  }

  void a_rank_waits_until_the_last_of_its_group_has_begun() {
    // Two groups along data, {0, 2} and {1, 3}, in the same micro-step.
    SyncTimeline timeline;
    timeline.setGrid({.data = 2, .tensor = 2});
    const auto reduce = [&](std::int64_t rank, std::int64_t beginMs, std::int64_t endMs) {
      timeline.take(rank, Sync{{1},
                               {4},
                               {"data"},
                               {"all_reduce"},
                               {CollectivePurpose::gradients},
                               {8},
                               {beginMs * 1'000'000},
                               {endMs * 1'000'000}});
    };
    reduce(0, 1000, 4000);
    QCOMPARE(timeline.lanes().at(0).spent(100.0).collective, 0.0);  // no other rank had arrived yet
    reduce(1, 1500, 2500);
    reduce(3, 2000, 2500);
    QCOMPARE(timeline.lanes().at(1).sync.front().transfer, 2.0);
    QCOMPARE(timeline.lanes().at(0).sync.front().transfer, 4.0);
    reduce(2, 3000, 4000);
    QCOMPARE(timeline.lanes().at(0).sync.front().transfer, 3.0);
    QCOMPARE(timeline.lanes().at(2).sync.front().transfer, 3.0);
    QCOMPARE(timeline.lanes().at(0).spent(100.0).collective, 1.0);
    QCOMPARE(timeline.lanes().at(1).spent(100.0).collective, 0.5);
    QCOMPARE(timeline.lanes().at(3).spent(100.0).collective, 0.5);
  }

  void what_trains_no_weights_has_a_share_of_its_own() {
    using enum CollectivePurpose;
    SyncTimeline timeline;
    timeline.setGrid({.data = 2});
    const auto call = [&](CollectivePurpose purpose, std::int64_t begin0, std::int64_t begin1, std::int64_t end) {
      for (const std::int64_t rank : {0, 1})
        timeline.take(rank, Sync{{1},
                                 {4},
                                 {"data"},
                                 {"all_reduce"},
                                 {purpose},
                                 {8},
                                 {(rank == 0 ? begin0 : begin1) * 1'000'000'000},
                                 {end * 1'000'000'000}});
    };
    call(gradients, 1, 3, 4);       // rank 0 waits 2 s, then both transfer for 1 s
    call(check, 5, 7, 9);           // waits 2 s, 2 s
    call(agreement, 10, 10, 11);    // 1 s
    call(evaluation, 11, 11, 14);   // 3 s
    call(checkpoint, 15, 15, 19);   // 4 s
    call(gradients, 20, 20, 24);    // 4 s, the last two beside an agreement of 5 s
    call(agreement, 22, 22, 27);    // of which 3 s are its own
    call(activations, 30, 30, 31);  // 1 s
    call(parameters, 31, 31, 33);   // 2 s
    call(unknown, 33, 33, 36);      // 3 s: what a record does not name may train
    const Lane& lane = timeline.lanes().at(0);
    const auto micros = [](double training, double aside) {
      return std::pair(std::round(1e6 * training), std::round(1e6 * aside));
    };
    const auto spent = [&](double time) { return micros(lane.spent(time).collective, lane.spent(time).aside); };
    QCOMPARE(spent(3.0), micros(0.0, 0.0));
    QCOMPARE(spent(7.0), micros(1.0, 0.0));
    QCOMPARE(spent(8.0), micros(1.0, 1.0));
    QCOMPARE(spent(19.0), micros(1.0, 10.0));
    QCOMPARE(spent(23.0), micros(4.0, 10.0));
    QCOMPARE(spent(25.0), micros(5.0, 11.0));
    QCOMPARE(spent(100.0), micros(11.0, 13.0));
    const TransferTime& data = lane.uses.front().time;
    QCOMPARE(micros(data.training(100.0), data.aside(100.0)), micros(11.0, 13.0));
  }

  void an_exactness_check_is_not_counted_as_a_gradient_reduction() {
    SyncTimeline timeline;
    Sync all = reductions(4);
    all.purpose[2] = CollectivePurpose::check;
    all.purpose[3] = CollectivePurpose::agreement;
    timeline.take(0, all);
    QCOMPARE(timeline.reductions(), 2);
    QCOMPARE(timeline.reducedBytes(), 16);
    QCOMPARE(timeline.collectives(), 4);
    QCOMPARE(timeline.bytes(), 32);
    timeline.rewind(4);
    QCOMPARE(timeline.reductions(), 2);
    QVERIFY(timeline.saysPurposes());
  }

  void of_a_record_that_does_not_say_what_calls_are_for_every_sum_over_data_counts() {
    SyncTimeline timeline;
    Sync all = reductions(3);
    all.purpose.assign(3, CollectivePurpose::unknown);
    all.op[1] = "all_gather";
    all.axis[2] = "tensor";
    timeline.take(0, all);
    QCOMPARE(timeline.reductions(), 1);
    QVERIFY(!timeline.saysPurposes());
  }

  void calls_of_one_micro_step_are_told_apart_by_their_order() {
    SyncTimeline timeline;
    timeline.setGrid({.data = 2});
    Sync early = reductions(2), late = early;
    early.begin_ns = {0, 2'000'000'000};
    late.begin_ns = {1'000'000'000, 4'000'000'000};
    early.end_ns = late.end_ns = {2'000'000'000, 5'000'000'000};
    timeline.take(0, early);
    timeline.take(1, late);
    QCOMPARE(timeline.lanes().at(0).sync[0].transfer, 1.0);
    QCOMPARE(timeline.lanes().at(0).sync[1].transfer, 4.0);
    QCOMPARE(timeline.lanes().at(1).sync[1].transfer, 4.0);
  }

  void names_of_axes_are_kept_once() {
    SyncTimeline timeline;
    timeline.take(0, Sync{{1, 1, 1},
                          {4, 4, 4},
                          {"data", "tensor", "data"},
                          {"all_reduce", "all_reduce", "broadcast"},
                          std::vector(3, CollectivePurpose::parameters),
                          {1, 2, 3},
                          {0, 10, 20},
                          {5, 15, 25}});
    QCOMPARE(timeline.axes().size(), std::size_t{2});
    QCOMPARE(timeline.ops().size(), std::size_t{2});
    const SyncSpan last = timeline.lanes().at(0).sync.back();
    QCOMPARE(timeline.axes()[last.axis], QStringLiteral("data"));
    QCOMPARE(timeline.ops()[last.op], QStringLiteral("broadcast"));
  }

  void a_pipelines_operations_keep_their_own_spans() {
    // One forward ahead of the backwards: F1 F2 B1 F3 B2 B3.
    SyncTimeline timeline;
    using enum ComputeKind;
    timeline.take(
        0, Operations{{forward, forward, backward, forward, backward, backward},
                      {1, 2, 1, 3, 2, 3},
                      {0, 0, 0, 0, 0, 0},
                      {0, 1'000'000'000, 2'000'000'000, 4'000'000'000, 5'000'000'000, 7'000'000'000},
                      {1'000'000'000, 2'000'000'000, 4'000'000'000, 5'000'000'000, 7'000'000'000, 9'000'000'000}});
    const Lane& lane = timeline.lanes().at(0);
    QCOMPARE(lane.forward.size(), std::size_t{3});
    QCOMPARE(lane.backward.size(), std::size_t{3});
    QCOMPARE(lane.micro.size(), std::size_t{3});
    QCOMPARE(lane.micro[1].begin, 1.0);
    QVERIFY(std::abs(lane.spent(4.0).backward - 2.0) < 1e-6);
    QVERIFY(std::abs(lane.spent(100.0).forward - 3.0) < 1e-6);
    timeline.rewind(2);
    QCOMPARE(timeline.lanes().at(0).forward.size(), std::size_t{2});
    QCOMPARE(timeline.lanes().at(0).micro.size(), std::size_t{2});
  }

  void collectives_that_overlap_are_kept_and_their_time_counts_once() {
    // A reduction over data from 1 to 5 s overlaps two over tensor, and is reported last.
    SyncTimeline timeline;
    timeline.take(0, Sync{{1, 1, 1},
                          {4, 4, 4},
                          {"tensor", "tensor", "data"},
                          {"all_reduce", "all_reduce", "reduce_scatter"},
                          std::vector(3, CollectivePurpose::activations),
                          {1, 2, 3},
                          {2'000'000'000, 4'000'000'000, 1'000'000'000},
                          {3'000'000'000, 6'000'000'000, 5'000'000'000}});
    const Lane& lane = timeline.lanes().at(0);
    QCOMPARE(lane.sync.size(), std::size_t{3});
    QCOMPARE(lane.sync.front().bytes, 3);
    QCOMPARE(lane.begin(), 1.0);
    QCOMPARE(lane.end(), 6.0);
    QCOMPARE(lane.spent(4.5).collective, 3.5);
    QCOMPARE(lane.spent(100.0).collective, 5.0);
    for (const AxisUse& use : lane.uses) {
      const bool data = timeline.axes()[use.axis] == QStringLiteral("data");
      QCOMPARE(use.time.training(100.0), data ? 4.0 : 3.0);
      QCOMPARE(use.time.training(4.5), data ? 3.5 : 1.5);
    }
    // At 3.5 s the reduction over data is still under way, though one that began later is over.
    QCOMPARE(lane.syncReaching(3.5)->bytes, 3);
    QVERIFY(lane.syncReaching(6.5) == lane.sync.end());
  }
};

ACCRUE_TEST_MAIN(TestTimeline)

}  // namespace test_timeline
#include "test_timeline.moc"

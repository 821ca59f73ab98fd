// SPDX-License-Identifier: Apache-2.0
#include <QTest>

#include <cmath>
#include <set>

#include "accrue/run/cost/rank_grid.h"
#include "accrue/run/facts/sample_order.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/window/lr_curve.h"
#include "accrue/run/window/weight_decay.h"
#include "support/test_program.h"

namespace test_curves_and_order {

using namespace accrue;

namespace {

LrCurve curve(ScheduleKind kind, double lr, std::int64_t warmup, std::int64_t total, double min_lr = 0.0) {
  LrCurve c;
  c.kind = kind;
  c.lr = lr;
  c.warmup = static_cast<double>(warmup);
  c.total = total;
  c.min_lr = min_lr;
  return c;
}

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::abs(b);
}

using Rows = std::vector<std::vector<std::int64_t>>;

Rows batches(const SampleOrder& order, std::int64_t rank, std::int64_t epoch = 0) {
  Rows rows;
  for (std::int64_t b = 0; b < order.batches_per_epoch(); ++b) rows.push_back(order.batch(epoch, b, rank));
  return rows;
}

SampleOrder plain(std::int64_t samples, std::int64_t micro_batch, std::int64_t world, UnevenRanks uneven) {
  return {.samples = samples, .micro_batch = micro_batch, .world = world, .shuffle = false, .uneven = uneven};
}

}  // namespace

class TestCurvesAndOrder : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void linear_warm_up_and_decay_hit_their_corner_points() {
    const LrCurve c = curve(ScheduleKind::linear, 0.1, 5, 20);
    QCOMPARE(lr_at(c, 0), 0.1 / 6);
    QCOMPARE(lr_at(c, 5), 0.1);
    QCOMPARE(lr_at(c, 19), 0.1 / 15);
    QCOMPARE(lr_at(c, 20), 0.0);
    QCOMPARE(lr_at(c, 500), 0.0);
  }
  void exponential_is_a_power_of_gamma() {
    LrCurve c = curve(ScheduleKind::exponential, 0.005, 0, 10);
    c.gamma = 0.9;
    QCOMPARE(lr_at(c, 2), 0.00405);
  }
  void cosine_starts_at_the_peak_and_ends_at_the_minimum() {
    const LrCurve c = curve(ScheduleKind::cosine, 3e-3, 20, 300, 3e-4);
    QCOMPARE(lr_at(c, 20), 3e-3);
    QCOMPARE(lr_at(c, 160), (3e-3 + 3e-4) / 2);
    QCOMPARE(lr_at(c, 300), 3e-4);
  }
  void inverse_square_root_is_continuous_at_the_end_of_the_warm_up() {
    const LrCurve c = curve(ScheduleKind::inverse_square_root, 1.0, 9, 1000);
    QCOMPARE(lr_at(c, 9), 1.0);
    QCOMPARE(lr_at(c, 39), 0.5);
  }
  void wsd_is_flat_until_its_last_part() {
    LrCurve c = curve(ScheduleKind::wsd, 1.0, 0, 100);
    c.decay_tail = DecayTail::linear;
    QCOMPARE(lr_at(c, 80), 1.0);
    QCOMPARE(lr_at(c, 90), 0.5);
    QCOMPARE(lr_at(c, 100), 0.0);
    // By default it falls exponentially.
    for (const DecayTail usual : {LrCurve().decay_tail, ScheduleSpec().decay_tail})
      QCOMPARE(usual, DecayTail::exponential);
  }
  void no_curve_ever_exceeds_its_peak_or_goes_below_zero() {
    for (int kind = 0; kind < int(choice_names<ScheduleKind>().size()); ++kind)
      for (std::int64_t position = 0; position < 400; ++position) {
        const double lr = lr_at(curve(ScheduleKind(kind), 0.5, 30, 300), position);
        QVERIFY(lr >= 0.0 && lr <= 0.5);
      }
  }

  void rates_over_samples_are_megatrons_data() {
    QTest::addColumn<int>("kind");
    QTest::addColumn<QVector<double>>("rates");
    const auto row = [](const char* name, ScheduleKind kind, QVector<double> rates) {
      QTest::newRow(name) << int(kind) << rates;
    };
    // At 0, 50, 100, 325, 550, 1000 and 1001 samples.
    row("constant", ScheduleKind::constant, {0, 5e-4, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3});
    row("linear", ScheduleKind::linear, {0, 5e-4, 1e-3, 7.75e-4, 5.5e-4, 1e-4, 1e-4});
    row("cosine", ScheduleKind::cosine, {0, 5e-4, 1e-3, 8.681980515339464e-4, 5.5e-4, 1e-4, 1e-4});
    row("inverse square root", ScheduleKind::inverse_square_root,
        {0, 5e-4, 1e-3, 5.547001962252292e-4, 4.264014327112208e-4, 3.1622776601683794e-4, 1e-4});
  }
  void rates_over_samples_are_megatrons() {
    QFETCH(int, kind);
    QFETCH(QVector<double>, rates);
    LrCurve c = curve(ScheduleKind(kind), 1e-3, 100, 1000, 1e-4);
    c.clock = RateClock::samples;
    for (int i = 0; const std::int64_t n : {0, 50, 100, 325, 550, 1000, 1001})
      QVERIFY2(near(lr_at(c, n), rates[i++]), qPrintable(QString::number(lr_at(c, n), 'g', 17)));
  }

  void tails_over_samples_are_megatrons_data() {
    QTest::addColumn<int>("tail");
    QTest::addColumn<QVector<double>>("rates");
    const auto row = [](const char* name, DecayTail tail, QVector<double> rates) {
      QTest::newRow(name) << int(tail) << rates;
    };
    // At 550, 800, 850, 900, 950, 1000 and 1001 samples; the last 200 of 1000 decay.
    row("linear", DecayTail::linear, {1e-3, 1e-3, 7.75e-4, 5.5e-4, 3.25e-4, 1e-4, 1e-4});
    row("cosine", DecayTail::cosine, {1e-3, 1e-3, 8.681980515339464e-4, 5.5e-4, 2.3180194846605365e-4, 1e-4, 1e-4});
    row("exponential", DecayTail::exponential,
        {1e-3, 1e-3, 7.136135474566861e-4, 4.727922061357856e-4, 2.702864035024489e-4, 1e-4, 1e-4});
    row("minus square root", DecayTail::minus_square_root,
        {1e-3, 1e-3, 5.5e-4, 3.636038969321072e-4, 2.2057713659400527e-4, 1e-4, 1e-4});
  }
  void tails_over_samples_are_megatrons() {
    QFETCH(int, tail);
    QFETCH(QVector<double>, rates);
    LrCurve c = curve(ScheduleKind::wsd, 1e-3, 100, 1000, 1e-4);
    c.clock = RateClock::samples;
    c.decay_tail = DecayTail(tail);
    for (int i = 0; const std::int64_t n : {550, 800, 850, 900, 950, 1000, 1001})
      QVERIFY2(near(lr_at(c, n), rates[i++]), qPrintable(QString::number(lr_at(c, n), 'g', 17)));
  }

  void a_warm_up_over_samples_may_start_above_zero_and_end_between_two_samples() {
    LrCurve c = curve(ScheduleKind::linear, 1e-3, 100, 1000, 1e-4);
    c.clock = RateClock::samples;
    c.init_lr = 2e-4;
    QVERIFY(near(lr_at(c, 25), 4e-4));
    const OptimizerSpec optimizer{.lr = 1.0};
    const ScheduleSpec schedule{.kind = ScheduleKind::linear, .clock = RateClock::samples, .warmup_fraction = 0.25};
    const LrCurve part = make_curve(optimizer, schedule, 10);
    QCOMPARE(part.warmup, 2.5);
    QVERIFY(near(lr_at(part, 2), 0.8));
    QVERIFY(near(lr_at(part, 4), 0.8));  // (4 - 2.5) of 7.5 on its way down
  }

  void tails_and_a_fractional_warm_up_hold_for_positions_too() {
    LrCurve c = curve(ScheduleKind::wsd, 1.0, 0, 100);
    c.decay_tail = DecayTail::minus_square_root;
    QCOMPARE(lr_at(c, 80), 1.0);
    QVERIFY(near(lr_at(c, 85), 0.5));
    const LrCurve part = make_curve({.lr = 1.0}, {.warmup_fraction = 0.05}, 50);
    QVERIFY(near(lr_at(part, 1), 2.0 / 3.5));
    QCOMPARE(lr_at(part, 3), 1.0);
  }

  void embeddings_follow_the_same_course_between_rates_of_their_own() {
    LrCurve c = curve(ScheduleKind::linear, 1e-3, 100, 1000, 1e-4);
    c.clock = RateClock::samples;
    const LrCurve own = decoupled_curve(c, {.decoupled_lr = 1e-2, .decoupled_min_lr = 2e-3});
    QVERIFY(near(lr_at(own, 50), 5e-3));
    QVERIFY(near(lr_at(own, 550), 6e-3));
    QVERIFY(near(lr_at(own, 1000), 2e-3));
    QVERIFY(near(lr_at(decoupled_curve(c, {.decoupled_lr = 1e-2}), 1000), 1e-4));
    QCOMPARE(decoupled_curve(c, {}), c);
  }

  void weight_decay_over_samples_is_megatrons() {
    WeightDecayCurve c{.style = WeightDecayStyle::linear, .start = 0.0, .end = 0.1, .samples = 1000};
    const auto at = [&c](std::int64_t n) { return weight_decay_at(c, n); };
    QVERIFY(near(at(250), 0.025) && near(at(500), 0.05) && near(at(1000), 0.1));
    QCOMPARE(at(0), 0.0);
    QCOMPARE(at(1001), 0.1);
    c.style = WeightDecayStyle::cosine;
    QVERIFY(near(at(250), 0.014644660940672627) && near(at(500), 0.05) && near(at(1000), 0.1));
    QCOMPARE(at(1001), 0.1);
    const WeightDecayCurve constant = make_weight_decay({.weight_decay = 0.3}, 1000);
    QCOMPARE(weight_decay_at(constant, 0), 0.3);
    QCOMPARE(weight_decay_at(constant, 5000), 0.3);
  }

  void grid_coordinates_and_groups_are_each_others_inverse() {
    const RankGrid grid{.data = 2, .pipeline = 3, .tensor = 4, .context = 2};
    std::set<std::int64_t> seen;
    for (std::int64_t rank = 0; rank < grid.world(); ++rank) {
      QCOMPARE(grid.rank(grid.coordinate(rank)), rank);
      for (const Axis axis : {Axis::data, Axis::pipeline, Axis::tensor, Axis::context, Axis::model, Axis::world}) {
        const auto group = grid.group(axis, rank);
        QCOMPARE(std::int64_t(group.size()), grid.size(axis));
        QVERIFY(std::find(group.begin(), group.end(), rank) != group.end());
      }
      seen.insert(rank);
    }
    QCOMPARE(grid.group(Axis::tensor, 5), (RankList{4, 5, 6, 7}));
    QCOMPARE(grid.group(Axis::context, 5), (RankList{1, 5}));
    QCOMPARE(grid.group(Axis::data, 5), (RankList{5, 13}));
    QCOMPARE(grid.group(Axis::pipeline, 5), (RankList{5, 21, 37}));
  }

  /// Megatron's numbering: 16 ranks, two-way tensor, four stages.
  void groups_are_those_of_megatron() {
    using Groups = std::vector<RankList>;
    const RankGrid grid{.data = 2, .pipeline = 4, .tensor = 2};
    QCOMPARE(grid.groups(Axis::tensor), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
    QCOMPARE(grid.groups(Axis::data), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
    QCOMPARE(grid.groups(Axis::pipeline), (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
    QCOMPARE(grid.groups(Axis::model), (Groups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}}));
    QCOMPARE(grid.groups(Axis::embedding), (Groups{{0, 12}, {1, 13}, {2, 14}, {3, 15}}));
    QCOMPARE(grid.groups(Axis::position_embedding), (Groups{{0}, {1}, {2}, {3}}));
    QCOMPARE(grid.group(Axis::embedding, 4), RankList());
    QCOMPARE(std::int64_t(grid.groups(Axis::context).size()), grid.world());
    QCOMPARE(std::int64_t(grid.groups(Axis::world).at(0).size()), grid.world());
  }

  /// A decoder that begins at stage 2 of 4 embeds its own tokens.
  void the_stage_at_a_split_has_embeddings() {
    using Groups = std::vector<RankList>;
    const RankGrid grid{.pipeline = 4, .tensor = 2, .split = 2};
    QCOMPARE(grid.groups(Axis::embedding), (Groups{{0, 4, 6}, {1, 5, 7}}));
    QCOMPARE(grid.groups(Axis::position_embedding), (Groups{{0, 4}, {1, 5}}));
    RunSpec spec;
    spec.parallel.pipeline = 4;
    QCOMPARE(make_grid(spec).split, 0);
    spec.model.kind = ModelKind::t5;
    QCOMPARE(make_grid(spec).split, 2);
    spec.parallel.split_stage = 1;
    QCOMPARE(make_grid(spec).split, 1);
  }

  void one_stage_embeds_alone() {
    const RankGrid grid{.data = 2};
    QCOMPARE(grid.groups(Axis::embedding), (std::vector<RankList>{{0}, {1}}));
    QCOMPARE(grid.groups(Axis::data), grid.groups(Axis::world));
  }

  void repeat_completes_the_tail_from_the_start_as_even_batches_does() {
    QCOMPARE(batches(plain(21, 3, 2, UnevenRanks::repeat), 0),
             (Rows{{0, 1, 2}, {6, 7, 8}, {12, 13, 14}, {18, 19, 20}}));
    QCOMPARE(batches(plain(21, 3, 2, UnevenRanks::repeat), 1), (Rows{{3, 4, 5}, {9, 10, 11}, {15, 16, 17}, {0, 1, 2}}));
    QCOMPARE(batches(plain(22, 3, 2, UnevenRanks::repeat), 1).back(), (std::vector<std::int64_t>{21, 0, 1}));
    QCOMPARE(plain(21, 3, 2, UnevenRanks::repeat).repeated_per_epoch(), 3);
  }
  void a_lone_rank_keeps_its_short_last_batch() {
    QCOMPARE(batches(plain(5, 2, 1, UnevenRanks::repeat), 0), (Rows{{0, 1}, {2, 3}, {4}}));
    QCOMPARE(batches(plain(5, 2, 1, UnevenRanks::drop), 0), (Rows{{0, 1}, {2, 3}, {4}}));
  }
  void empty_micro_steps_give_every_rank_the_same_number_of_batches() {
    QCOMPARE(batches(plain(21, 3, 2, UnevenRanks::empty_micro_steps), 1),
             (Rows{{3, 4, 5}, {9, 10, 11}, {15, 16, 17}, {}}));
    QCOMPARE(plain(21, 3, 2, UnevenRanks::empty_micro_steps).samples_in_batch(3), 3);
  }
  void drop_keeps_only_full_rounds() { QCOMPARE(plain(21, 3, 2, UnevenRanks::drop).batches_per_epoch(), 3); }

  // Two ranks, 11 samples in batches of 2: shards of 4.
  void a_cyclic_order_is_that_of_the_sampler_at_any_place() {
    SampleOrder order = plain(11, 2, 2, UnevenRanks::empty_micro_steps);
    order.cyclic = true;
    QCOMPARE(order.batches_per_epoch(), std::int64_t{2});
    QCOMPARE(order.samples_in_batch(1), std::int64_t{4});
    for (const std::int64_t rank : {0, 1}) {
      CyclicSampler sampler = order.sampler(rank);
      for (std::int64_t epoch = 0; epoch < 3; ++epoch)
        for (std::int64_t batch = 0; batch < 2; ++batch) QCOMPARE(order.batch(epoch, batch, rank), sampler.next());
    }
    // torch.randperm(4) of a generator with the epoch as seed gives 0 1 3 2, then 1 3 2 0; rank 1 has those after 4.
    QCOMPARE(batches(order, 0, 0), (Rows{{0, 1}, {3, 2}}));
    QCOMPARE(batches(order, 0, 1), (Rows{{1, 3}, {2, 0}}));
    QCOMPARE(batches(order, 1, 0), (Rows{{4, 5}, {7, 6}}));
    QCOMPARE(batches(order, 1, 1), (Rows{{5, 7}, {6, 4}}));
    std::vector<std::int64_t> seen;
    for (const std::int64_t rank : {0, 1})
      for (const auto& batch : batches(order, rank, 1)) seen.insert(seen.end(), batch.begin(), batch.end());
    std::ranges::sort(seen);
    QCOMPARE(seen, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
    // After 4 + 2 * 8 samples the second batch of the third epoch comes next.
    SampleOrder later = order;
    later.consumed = 20;
    QCOMPARE(later.batch(0, 0, 1), order.batch(2, 1, 1));
    QCOMPARE(later.batch(0, 1, 1), order.batch(3, 0, 1));
    SampleOrder turns = order;
    turns.sharding = false;
    // torch.randperm(10) begins with 4 1 7 5 3 9 0 8.
    QCOMPARE(batches(turns, 0), (Rows{{4, 7}, {3, 0}}));
    QCOMPARE(batches(turns, 1), (Rows{{1, 5}, {9, 8}}));
  }

  void every_epoch_sees_every_sample_once_and_in_another_order() {
    for (const std::int64_t samples : {1, 2, 3, 7, 64, 1000}) {
      SampleOrder order = plain(samples, 4, 1, UnevenRanks::empty_micro_steps);
      order.shuffle = true;
      order.seed = 11;
      Rows epochs;
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        std::vector<std::int64_t> flat;
        for (const auto& batch : batches(order, 0, epoch)) flat.insert(flat.end(), batch.begin(), batch.end());
        const std::set<std::int64_t> unique(flat.begin(), flat.end());
        QCOMPARE(std::int64_t(flat.size()), samples);
        QCOMPARE(std::int64_t(unique.size()), samples);
        epochs.push_back(flat);
      }
      if (samples >= 64) QVERIFY(epochs[0] != epochs[1]);
    }
  }
  void layouts_with_the_same_global_batch_see_the_same_samples_in_each_window() {
    SampleOrder one = plain(100, 4, 1, UnevenRanks::empty_micro_steps);
    one.shuffle = true;
    SampleOrder two = one;
    two.world = 2;
    for (std::int64_t window = 0; window < 3; ++window) {
      std::multiset<std::int64_t> alone, together;
      for (std::int64_t m = 0; m < 8; ++m)
        for (const auto i : one.batch(0, window * 8 + m, 0)) alone.insert(i);
      for (std::int64_t m = 0; m < 4; ++m)
        for (std::int64_t rank = 0; rank < 2; ++rank)
          for (const auto i : two.batch(0, window * 4 + m, rank)) together.insert(i);
      QVERIFY(alone == together);
    }
  }
};

ACCRUE_TEST_MAIN(TestCurvesAndOrder)

}  // namespace test_curves_and_order
#include "test_curves_and_order.moc"

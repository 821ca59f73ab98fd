// SPDX-License-Identifier: Apache-2.0
// Values that follow an edit of N, the micro-batch or the ranks while the samples are locked: some cases by hand, then
// random specs compared with a search through every whole number.
#include <QTest>
#include <array>
#include <random>

#include "accrue/run/fields/sample_lock.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_sample_lock {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

RunSpec spec_of(std::int64_t micro, std::int64_t steps, std::int64_t ranks, std::int64_t updates = 240) {
  RunSpec spec;
  spec.accumulation.micro_batch = micro;
  spec.accumulation.steps = steps;
  spec.parallel.data = ranks;
  spec.run.updates = updates;
  return spec;
}

std::int64_t samples_of(const RunSpec& spec) {
  return spec.accumulation.micro_batch * spec.accumulation.steps * spec.parallel.data;
}

void set_factor(RunSpec& spec, int factor, std::int64_t value) {
  (factor == 0 ? spec.accumulation.steps : factor == 1 ? spec.accumulation.micro_batch : spec.parallel.data) = value;
}

constexpr std::array<const char*, 3> keys = {"accumulation.steps", "accumulation.micro_batch", "parallel.data"};

}  // namespace

class TestSampleLock : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_edit_is_followed_data() {
    // Of 4 micro x 4 accum x 2 ranks = 32 samples per update: the factor, its new value, micro, N, ranks.
    const Rows<int, int, int, int, int> row;
    row("N up, micro down", 0, 16, 1, 16, 2);
    row("N down, micro up", 0, 1, 16, 1, 2);
    row("micro up, N down", 1, 8, 8, 2, 2);
    row("micro down, N up", 1, 1, 1, 16, 2);
    row("more ranks, N down", 2, 8, 4, 1, 8);
    row("fewer ranks, N up", 2, 1, 4, 8, 1);
    row("so many ranks that the micro-batch follows", 2, 16, 0, 0, 0);
  }
  void an_edit_is_followed() {
    const auto [factor, value, micro, steps, ranks] = current_row<int, int, int, int, int>();
    RunSpec edited = spec_of(4, 4, 2);
    const std::int64_t samples = locked_samples(edited, SampleLock::per_update);
    QCOMPARE(samples, 32);
    set_factor(edited, factor, value);
    const auto kept = keep_samples(edited, keys[static_cast<std::size_t>(factor)], SampleLock::per_update, samples);
    if (micro == 0) {
      // 32 / (4 x 16) is no whole number of micro-steps, 32 / (4 x 16) none of samples.
      QVERIFY(!kept);
      return;
    }
    QVERIFY(kept);
    QVERIFY(*kept == spec_of(micro, steps, ranks));
  }

  void the_updates_follow_where_the_total_is_kept() {
    RunSpec edited = spec_of(4, 4, 2, 240);
    const std::int64_t samples = locked_samples(edited, SampleLock::in_total);
    QCOMPARE(samples, 7680);
    edited.accumulation.steps = 16;
    QVERIFY(keep_samples(edited, keys[0], SampleLock::in_total, samples) == std::optional(spec_of(4, 16, 2, 60)));
    edited.accumulation.steps = 7;  // 7680 / 56 is no whole number
    QVERIFY(!keep_samples(edited, keys[0], SampleLock::in_total, samples));
    QCOMPARE(nearest_kept(edited, keys[0], SampleLock::in_total, samples), (std::vector<std::int64_t>{6, 8}));
  }

  void a_run_that_counts_samples_keeps_them_without_a_lock() {
    RunSpec spec = spec_of(4, 4, 2);
    spec.run.updates.reset();
    QCOMPARE(locked_samples(spec, SampleLock::in_total), 32 * 200);  // left out: 200 updates
    spec.run.samples = 10'000;
    QCOMPARE(locked_samples(spec, SampleLock::in_total), 0);
  }

  void numbers_beyond_counting_are_not_locked() {
    QCOMPARE(locked_samples(spec_of(1'048'576, 1'048'576, 1024, 100'000'000), SampleLock::in_total), 0);
    QCOMPARE(locked_samples(spec_of(0, 4, 2), SampleLock::per_update), 0);
  }

  // 2000 edits, each against every number from 1 to 200.
  void random_edits_keep_the_samples_or_say_the_nearest() {
    std::mt19937_64 random(7);
    const auto draw = [&random](std::int64_t most) {
      return std::uniform_int_distribution<std::int64_t>(1, most)(random);
    };
    for (int round = 0; round < 2000; ++round) {
      const SampleLock lock = round % 2 == 0 ? SampleLock::per_update : SampleLock::in_total;
      RunSpec spec = spec_of(draw(12), draw(12), draw(4), draw(40));
      const std::int64_t samples = locked_samples(spec, lock);
      const int factor = static_cast<int>(draw(3)) - 1;
      const char* key = keys[static_cast<std::size_t>(factor)];
      const std::int64_t value = draw(200);
      const auto holds = [&](std::int64_t each) {
        RunSpec edited = spec;
        set_factor(edited, factor, each);
        const auto kept = keep_samples(edited, key, lock, samples);
        if (kept && (locked_samples(*kept, lock) != samples || *kept == spec) && each != value) return false;
        return kept.has_value();
      };
      set_factor(spec, factor, value);
      const auto kept = keep_samples(spec, key, lock, samples);
      const auto nearest = nearest_kept(spec, key, lock, samples);
      if (kept) {
        QCOMPARE(locked_samples(*kept, lock), samples);
        if (lock == SampleLock::in_total) QCOMPARE(samples_of(*kept), samples_of(spec));
      } else if (lock == SampleLock::in_total) {
        QVERIFY(samples % samples_of(spec) != 0);
      }
      for (const std::int64_t near : nearest) QVERIFY(near != value && holds(near));
      std::int64_t below = 0;
      std::int64_t above = 0;
      for (std::int64_t each = 1; each <= 200; ++each) {
        if (each < value && holds(each)) below = each;
        if (each > value && above == 0 && holds(each)) above = each;
      }
      if (below > 0) QCOMPARE(nearest.front(), below);
      if (above > 0) QCOMPARE(nearest.back(), above);
    }
  }
};

ACCRUE_TEST_MAIN(TestSampleLock)

}  // namespace test_sample_lock
#include "test_sample_lock.moc"

// SPDX-License-Identifier: Apache-2.0
// The ways in which an update's size is found, against the numbers of Megatron-LM's calculators.
#include <QTest>

#include "accrue/run/window/batch_size.h"
#include "support/test_program.h"

namespace test_batch_size {

using namespace accrue;

namespace {

QString problem(const RampUp& ramp) {
  const std::string_view text = ramp_problem(ramp);
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

/// "[from, batch] ..." up to that many samples.
QString changes(const RampUp& ramp, std::int64_t end) {
  QString text;
  for (std::int64_t at = 0; at < end; at = next_batch_change(ramp, at))
    text += QString("[%1, %2] ").arg(at).arg(batch_at(ramp, at));
  return text.trimmed();
}

}  // namespace

class TestBatchSize : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_constant_batch_is_cut_in_micro_steps() {
    QCOMPARE(constant_batch(32, 8 * 2).value(), (RunningBatch{32, 2}));
    QCOMPARE(constant_batch(32, 8 * 3, true).value(), (RunningBatch{24, 1}));
    QCOMPARE(constant_batch(33, 8 * 2, true).value(), (RunningBatch{32, 2}));
    QCOMPARE(constant_batch(33, 8 * 2).error().message,
             std::string("an update of 33 samples is not a whole number of micro-steps of 16"));
    QVERIFY(!constant_batch(15, 16, true));  // not even one micro-step
  }

  void a_ramp_rises_at_the_samples_where_megatrons_does() {
    const RampUp ramp{16, 8, 96, 32};
    QCOMPARE(batch_at(ramp, 0) / (4 * 2), 2);
    QCOMPARE(batch_at(ramp, 47) / (4 * 2), 2);
    QCOMPARE(batch_at(ramp, 48) / (4 * 2), 3);
    QCOMPARE(changes(ramp, 1000), QString("[0, 16] [48, 24] [96, 32]"));
    QVERIFY(!constant_batch(batch_at(ramp, 49), 8 * 2));  // three half micro-steps: the ranks could not cut it
    // An increment every 142.86 samples.
    QCOMPARE(changes({4, 4, 1000, 32}, 5000),
             QString("[0, 4] [143, 8] [286, 12] [429, 16] [572, 20] [715, 24] [858, 28] [1000, 32]"));
  }

  // By the loop of Megatron-LM's update_train_iters, written out.
  void samples_make_as_many_updates_as_megatrons_do() {
    const auto by_loop = [](std::int64_t samples, std::int64_t full, const std::optional<RampUp>& ramp) {
      UpdatesOfSamples made;
      while (ramp && made.samples <= ramp->samples && made.samples <= samples)
        made.samples += batch_at(*ramp, made.samples), ++made.updates;
      for (; made.samples + full <= samples; made.samples += full) ++made.updates;
      return made;
    };
    QCOMPARE(updates_of_samples(30, 4, {}), (UpdatesOfSamples{7, 28}));
    QCOMPARE(updates_of_samples(32, 4, {}), (UpdatesOfSamples{8, 32}));
    QCOMPARE(updates_of_samples(3, 4, {}), (UpdatesOfSamples{0, 0}));
    QCOMPARE(updates_of_samples(70, 16, RampUp{4, 4, 24, 16}), (UpdatesOfSamples{6, 60}));
    QCOMPARE(updates_of_samples(8, 16, RampUp{4, 4, 24, 16}), (UpdatesOfSamples{3, 16}));  // the third begins at 8
    for (const RampUp& ramp : {RampUp{4, 4, 24, 16}, RampUp{1, 1, 977, 31}, RampUp{3, 7, 10, 80}})
      for (std::int64_t samples = 1; samples < 1200; ++samples)
        QCOMPARE(updates_of_samples(samples, ramp.full, ramp), by_loop(samples, ramp.full, ramp));
    const std::int64_t many = std::int64_t{1} << 50;
    QCOMPARE(updates_of_samples(many, 16, RampUp{4, 4, many, 16}).samples > many, true);  // in no time
  }

  void no_change_is_missed_between_two_changes() {
    for (const RampUp& ramp : {RampUp{1, 1, 977, 31}, RampUp{3, 7, 10, 80}, RampUp{2, 2, 3, 20}})
      for (std::int64_t at = 0; at < 1200; ++at) {
        std::int64_t expected = never_changes;
        for (std::int64_t next = at + 1; next < 1300 && expected == never_changes; ++next)
          if (batch_at(ramp, next) != batch_at(ramp, at)) expected = next;
        QCOMPARE(next_batch_change(ramp, at), expected);
      }
  }

  void a_ramp_that_leads_nowhere_is_none() {
    QCOMPARE(problem({16, 8, 96, 32}), QString());
    QCOMPARE(problem({32, 8, 96, 32}), QString("starts with the full batch or more"));
    QCOMPARE(problem({16, 8, 0, 32}), QString("has a number below 1"));
    QCOMPARE(problem({16, 5, 96, 32}), QString("does not come to the full batch in whole increments"));
  }
};

ACCRUE_TEST_MAIN(TestBatchSize)

}  // namespace test_batch_size
#include "test_batch_size.moc"

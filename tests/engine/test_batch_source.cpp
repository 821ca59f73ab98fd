// SPDX-License-Identifier: Apache-2.0
// Loaders of LibTorch and plain ranges as sources of batches, and under Colossal-AI's loader, which stops early.
#include <QTest>
#include <forward_list>
#include <vector>

#include "accrue/accumulation/batch_source.h"
#include "accrue/accumulation/colossalai_loader.h"
#include "support/squares.h"
#include "support/test_program.h"

namespace test_batch_source {

using namespace accrue;
using namespace accrue::test;

namespace {

template <typename Source>
std::vector<std::vector<int>> epoch_of(Source& source) {
  std::vector<std::vector<int>> batches;
  source.reset();
  while (auto batch = source.next()) batches.push_back(*batch);
  return batches;
}

template <typename Source>
std::vector<int> epoch_of_numbers(Source& source) {
  std::vector<int> numbers;
  source.reset();
  while (auto number = source.next()) numbers.push_back(*number);
  return numbers;
}

const std::vector<std::vector<int>> five_batches{{0, 1}, {4, 9}, {16, 25}, {36, 49}, {64, 81}};

}  // namespace

class TestBatchSource : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_range_is_read_again_each_epoch() {
    const std::vector<int> numbers{3, 1, 2};
    auto source = source_of(numbers, 3);
    for (int epoch = 0; epoch < 2; ++epoch) {
      source.reset();
      for (const int each : numbers) QCOMPARE(source.next(), std::optional<int>(each));
      QCOMPARE(source.next(), std::optional<int>());
      QCOMPARE(source.next(), std::optional<int>());
    }
    QVERIFY(source.drained_when_cut());
    QCOMPARE(source_of(numbers).length(), std::optional<std::int64_t>(3));
    const std::forward_list<int> chain(numbers.begin(), numbers.end());
    QVERIFY(!source_of(chain).length());
  }

  void a_loader_of_libtorch_is_a_source_data() {
    QTest::addColumn<int>("workers");
    QTest::newRow("without workers") << 0;
    QTest::newRow("with two workers") << 2;
  }
  void a_loader_of_libtorch_is_a_source() {
    QFETCH(int, workers);
    auto loader = squares_loader(10, static_cast<std::size_t>(workers));
    auto source = source_of(*loader, 5);
    QVERIFY(!source.drained_when_cut());
    for (int epoch = 0; epoch < 3; ++epoch) QCOMPARE(epoch_of(source), five_batches);
  }

  void an_epoch_that_ends_early_can_be_followed_by_another_data() { a_loader_of_libtorch_is_a_source_data(); }
  void an_epoch_that_ends_early_can_be_followed_by_another() {
    QFETCH(int, workers);
    auto loader = squares_loader(10, static_cast<std::size_t>(workers));
    auto source = source_of(*loader, 5);
    colossalai::GradAccumDataloader<std::vector<int>> whole_groups(source, 2);
    const std::vector<std::vector<int>> kept(five_batches.begin(), five_batches.begin() + 4);
    for (int epoch = 0; epoch < 3; ++epoch) QCOMPARE(epoch_of(whole_groups), kept);
  }

  void an_epoch_that_is_left_early_can_be_followed_by_another_data() { a_loader_of_libtorch_is_a_source_data(); }
  void an_epoch_that_is_left_early_can_be_followed_by_another() {
    QFETCH(int, workers);
    auto loader = squares_loader(10, static_cast<std::size_t>(workers));
    {
      auto source = source_of(*loader, 5);
      for (std::size_t read = 0; read <= five_batches.size(); ++read) {
        source.reset();
        for (std::size_t i = 0; i < read; ++i) QCOMPARE(source.next().value(), five_batches[i]);
      }
      colossalai::GradAccumDataloader<std::vector<int>> whole_groups(source, 2);
      for (int epoch = 0; epoch < 2; ++epoch) {
        whole_groups.reset();
        QCOMPARE(whole_groups.next().value(), five_batches[0]);
      }
    }
    auto again = source_of(*loader, 5);  // the one before was left early, too
    QCOMPARE(epoch_of(again), five_batches);
  }

  void only_sources_that_are_no_loaders_of_libtorch_lose_a_batch_to_the_early_drain() {
    const Replays early{Replay::drain_early};
    const std::vector<int> numbers{1, 2, 3, 4, 5};
    auto plain = source_of(numbers, 5);
    colossalai::GradAccumDataloader<int> first(plain, 2, early);
    QCOMPARE(epoch_of_numbers(first), (std::vector<int>{1, 2, 3}));
    for (const std::size_t workers : {0, 2}) {
      auto loader = squares_loader(10, workers);
      auto source = source_of(*loader, 5);
      colossalai::GradAccumDataloader<std::vector<int>> second(source, 2, early);
      for (int epoch = 0; epoch < 2; ++epoch) QCOMPARE(epoch_of(second).size(), std::size_t{4});
    }
  }
};

ACCRUE_TEST_MAIN(TestBatchSource)

}  // namespace test_batch_source
#include "test_batch_source.moc"

// SPDX-License-Identifier: Apache-2.0
// Overlap of two cuts of one tensor, compared with copying element by element.
#include <QTest>
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "accrue/checkpoint/tensor_slice.h"
#include "support/test_program.h"

namespace test_tensor_slice {

using namespace accrue;

namespace {

using Shape = std::vector<std::int64_t>;

/// The tensor's elements, by their place in the whole, in the order in which the slice holds them.
Shape elements_of(const TensorSlice& slice) {
  Shape elements;
  Shape at = slice.offset;
  const std::int64_t count =
      std::accumulate(slice.extent.begin(), slice.extent.end(), std::int64_t{1}, std::multiplies());
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = 0;
    for (std::size_t dim = 0; dim < at.size(); ++dim) place = place * slice.shape[dim] + at[dim];
    if (i >= slice.range.offset && i < slice.range.offset + slice.range.size) elements.push_back(place);
    for (std::size_t dim = at.size(); dim-- > 0;) {
      if (++at[dim] < slice.offset[dim] + slice.extent[dim]) break;
      at[dim] = slice.offset[dim];
    }
  }
  return elements;
}

class Draw {
 public:
  std::int64_t upto(std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(random_); }
  Shape shape() {
    Shape sizes(static_cast<std::size_t>(upto(4)));
    for (auto& size : sizes) size = 1 + upto(5);
    return sizes;
  }
  TensorSlice slice(const Shape& shape) {
    TensorSlice part = whole_slice(shape);
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      part.offset[dim] = upto(shape[dim] - 1);
      part.extent[dim] = 1 + upto(shape[dim] - part.offset[dim] - 1);
      if (upto(9) == 0) part.extent[dim] = 0;
      if (upto(1) == 0)
        std::tie(part.offset[dim], part.extent[dim]) = std::pair<std::int64_t, std::int64_t>(0, shape[dim]);
    }
    const std::int64_t count =
        std::accumulate(part.extent.begin(), part.extent.end(), std::int64_t{1}, std::multiplies());
    part.range = {0, count};
    if (upto(1) == 0) part.range.offset = upto(count);
    if (upto(1) == 0) part.range.size = upto(count - part.range.offset);
    part.range.size = std::min(part.range.size, count - part.range.offset);
    return part;
  }

 private:
  std::mt19937 random_{20261122};
};

}  // namespace

class TestTensorSlice : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void common_runs_carry_every_common_element_to_its_place_and_nothing_else() {
    Draw draw;
    std::int64_t met = 0;
    for (int round = 0; round < 20'000; ++round) {
      const Shape shape = draw.shape();
      const TensorSlice from = draw.slice(shape);
      const TensorSlice to = draw.slice(shape);
      QVERIFY(check_slice(from).has_value() && check_slice(to).has_value());
      const Shape source = elements_of(from);
      const Shape wanted = elements_of(to);
      Shape got(wanted.size(), -1);
      for_each_common_run(from, to, [&](std::int64_t at, std::int64_t into, std::int64_t size) {
        QVERIFY(size > 0 && at >= 0 && into >= 0);
        QVERIFY(at + size <= std::ssize(source) && into + size <= std::ssize(got));
        std::copy_n(source.begin() + at, size, got.begin() + into);
      });
      std::int64_t common = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const bool held = std::ranges::find(source, wanted[i]) != source.end();
        QCOMPARE(got[i], held ? wanted[i] : -1);
        common += held;
      }
      QCOMPARE(common_elements(from, to), common);
      met += common;
    }
    QVERIFY(met > 10'000);
  }

  void a_whole_tensor_is_one_run() {
    int runs = 0;
    const TensorSlice whole = whole_slice({7, 5, 3});
    for_each_common_run(whole, whole, [&runs](std::int64_t from, std::int64_t to, std::int64_t size) {
      QCOMPARE(from, 0);
      QCOMPARE(to, 0);
      QCOMPARE(size, 105);
      ++runs;
    });
    QCOMPARE(runs, 1);
    QCOMPARE(common_elements(whole_slice({}), whole_slice({})), 1);
    QCOMPARE(common_elements(whole_slice({3, 0}), whole_slice({3, 0})), 0);
  }

  void equal_parts_along_a_dim() {
    const TensorSlice right = split_slice({4, 6}, 1, 2, 3);
    QVERIFY(right.offset == Shape({0, 4}) && right.extent == Shape({4, 2}));
    QVERIFY(right.is_box() && !right.is_whole());
    QCOMPARE(right.range.size, 8);
    QVERIFY(split_slice({4, 6}, 0, 0, 1).is_whole());
  }

  void what_lies_outside_or_cannot_be_counted_is_refused() {
    constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
    const TensorSlice sound = split_slice({4, 6}, 0, 1, 2);
    QVERIFY(check_slice(sound).has_value());
    const auto refused = [&sound](auto&& change) {
      TensorSlice slice = sound;
      change(slice);
      return !check_slice(slice).has_value();
    };
    QVERIFY(refused([](TensorSlice& s) { s.shape = {4, -6}; }));
    QVERIFY(refused([](TensorSlice& s) { s.shape = {huge, huge}; }));
    QVERIFY(refused([](TensorSlice& s) { s.shape = {4}; }));
    QVERIFY(refused([](TensorSlice& s) { s.offset = {3, 0}; }));
    QVERIFY(refused([](TensorSlice& s) { s.offset = {-1, 0}; }));
    QVERIFY(refused([](TensorSlice& s) { s.offset = {huge, 0}; }));
    QVERIFY(refused([](TensorSlice& s) { s.extent = {huge, 6}; }));
    QVERIFY(refused([](TensorSlice& s) { s.extent = {-2, 6}; }));
    QVERIFY(refused([](TensorSlice& s) { s.range = {0, 13}; }));
    QVERIFY(refused([](TensorSlice& s) { s.range = {huge, 1}; }));
    QVERIFY(refused([](TensorSlice& s) { s.range = {1, huge}; }));
    QVERIFY(refused([](TensorSlice& s) { s.range = {-1, 1}; }));
  }
};

ACCRUE_TEST_MAIN(TestTensorSlice)

}  // namespace test_tensor_slice
#include "test_tensor_slice.moc"

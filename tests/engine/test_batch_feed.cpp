// SPDX-License-Identifier: Apache-2.0
// Batches that a rank fetches without training on them.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <QTest>

#include <numeric>
#include <set>

#include "accrue/run/data/torch_random.h"
#include "support/table.h"
#include "support/test_program.h"
#include "support/training_body.h"
#include "train/batch_feed.h"

namespace test_batch_feed {

using namespace accrue;
using namespace accrue::test;

namespace {

/// Remembers the requested samples.
class WatchedSource final : public DataSource {
 public:
  std::int64_t size(Split) const override { return 10; }
  Batch batch(Split, std::span<const std::int64_t> samples) override {
    fetched.insert(samples.begin(), samples.end());
    last.assign(samples.begin(), samples.end());
    return {.inputs = {}, .targets = {}, .samples = std::ssize(samples), .items = std::ssize(samples)};
  }
  std::multiset<std::int64_t> fetched;
  std::vector<std::int64_t> last;
};

std::vector<std::int64_t> randperm(std::int64_t size, std::uint64_t seed) {
  const at::Tensor order = at::randperm(size, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kLong));
  return {order.const_data_ptr<std::int64_t>(), order.const_data_ptr<std::int64_t>() + size};
}

MicroPlan place(std::int64_t epoch, std::int64_t batch) {
  MicroPlan micro;
  micro.epoch = epoch;
  micro.batch = batch;
  return micro;
}

RunPlan plan_with(const char* tail) {
  const std::string spec =
      std::string("accrue = 1\n[model]\nkind = \"linear\"\n[data]\nkind = \"inline\"\n") +
      "shuffle = false\nx = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0]]\n"
      "y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0]]\n"
      "[accumulation]\nsteps = 4\nmicro_batch = 1\ntail = \"" +
      tail + "\"\n[run]\nepochs = 1\n";
  return order_for({.spec = spec}).plan;
}

}  // namespace

class TestBatchFeed : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void permutations_are_those_of_torch_randperm() {
    for (const std::int64_t size : {1, 2, 3, 10, 257, 10000})
      for (const std::uint64_t seed : {0, 1, 7, 1234567}) QCOMPARE(torch_randperm(size, seed), randperm(size, seed));
  }

  // The loop of PyTorch's randperm_cpu() for lists from 2^32 / 20 on, here from 1 on, with the draws of a generator.
  void permutations_of_long_lists_are_made_inside_out() {
    for (const std::int64_t size : {1, 2, 3, 10, 257})
      for (const std::uint64_t seed : {0, 7}) {
        at::Generator generator = at::detail::createCPUGenerator(seed);
        std::vector<std::int64_t> order(static_cast<std::size_t>(size));
        std::iota(order.begin(), order.end(), std::int64_t{0});
        for (std::size_t i = 0; i < order.size(); ++i) {
          const std::size_t z = at::check_generator<at::CPUGeneratorImpl>(generator)->random64() % (i + 1);
          order[i] = order[z];
          order[z] = static_cast<std::int64_t>(i);
        }
        QCOMPARE(torch_randperm(size, seed, 1), order);
        if (size == 257) QVERIFY(order != torch_randperm(size, seed));
      }
    QCOMPARE(long_randperm, std::int64_t{214748364});
  }

  // The random sampler of Megatron-LM's data_samplers.py, written out: 11 samples, two ranks, batches of 2.
  void a_cyclic_feed_reads_what_upstream_would() {
    for (const bool sharding : {true, false})
      for (const std::int64_t rank : {0, 1}) {
        RunPlan plan = plan_with("flush");
        plan.order = {.samples = 11, .micro_batch = 2, .world = 2, .cyclic = true, .sharding = sharding};
        WatchedSource source;
        BatchFeed feed(plan, source, rank);
        for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
          std::vector<std::int64_t> expected;
          const auto order = randperm(sharding ? 11 / 4 * 2 : 11 / 2 * 2, static_cast<std::uint64_t>(epoch));
          for (std::size_t i = 0; i < 4; ++i)
            expected.push_back(sharding ? rank * 4 + order[i] : order[2 * i + static_cast<std::size_t>(rank)]);
          for (std::int64_t batch = 0; batch < 2; ++batch) {
            source.last.clear();
            feed.batch(place(epoch, batch));
            const auto from = expected.begin() + 2 * batch;
            QCOMPARE(source.last, std::vector<std::int64_t>(from, from + 2));
          }
        }
        // Back into the midst of an epoch, as a resumed run begins.
        BatchFeed resumed(plan, source, rank);
        source.last.clear();
        resumed.batch(place(2, 1));
        const std::vector<std::int64_t> again = source.last;
        source.last.clear();
        feed.batch(place(2, 1));
        QCOMPARE(source.last, again);
      }
  }

  void the_dropped_tail_is_fetched_where_it_is_drained_data() {
    const Rows<QString, int> row;
    row("stop", "drop_stop", 8);
    row("drain", "drop_drain", 10);
    row("flush", "flush", 10);
  }
  void the_dropped_tail_is_fetched_where_it_is_drained() {
    const auto [tail, fetched] = current_row<QString, int>();
    const RunPlan plan = plan_with(tail.toUtf8());
    WatchedSource source;
    BatchFeed feed(plan, source, 0);
    AccumulationWindow window(plan.window);
    std::int64_t trained = 0;
    while (const auto micro = window.next()) {
      trained += feed.batch(*micro).samples;
      if (micro->epoch_ends) feed.drain(*micro);
    }
    QCOMPARE(trained, tail == "flush" ? 10 : 8);
    QCOMPARE(std::ssize(source.fetched), std::ptrdiff_t(fetched));
    QVERIFY2(std::set(source.fetched.begin(), source.fetched.end()).size() == source.fetched.size(), "none twice");
  }
};

ACCRUE_TEST_MAIN(TestBatchFeed)

}  // namespace test_batch_feed
#include "test_batch_feed.moc"

// SPDX-License-Identifier: Apache-2.0
// Sources of batches under a prepared loader: which rank gets which, as Accelerate shares any loader, and what cannot
// be had is refused. One process plays the ranks one after another.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <torch/data/samplers/sequential.h>

#include <QTest>
#include <numeric>
#include <string>
#include <vector>

#include "accrue/accumulation/accelerate/prepared_loader.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_prepared_sources {

using namespace accrue;
using namespace accrue::accelerate;
using namespace accrue::test;

namespace {

/// Rank `rank_` of an axis whose other ranks do the same as this one, unless they count `others` more.
class Alike final : public Communicator {
 public:
  Alike(std::int64_t rank, std::int64_t size, std::int64_t others = 0) : rank_(rank), size_(size), others_(others) {}
  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }
  std::string axis() const override { return "data"; }
  std::string backend() const override { return "alike"; }

 protected:
  using Call = std::unique_ptr<PendingCall>;
  Call do_all_reduce(at::Tensor tensor, Reduce op, Waits) override {
    if (op == Reduce::sum) tensor.mul_(size_);
    return {};
  }
  Call do_broadcast(at::Tensor, std::int64_t) override { return {}; }
  Call do_all_gather(at::Tensor out, at::Tensor in, Waits) override {
    for (std::int64_t rank = 0; rank < size_; ++rank) out[rank].copy_(rank == rank_ ? in : in + others_);
    return {};
  }
  Call do_barrier() override { return {}; }
  Call do_reduce_scatter(at::Tensor, at::Tensor, Waits) override { return refused(); }
  Call do_send(at::Tensor, std::int64_t, MessageLabel) override { return refused(); }
  Call do_receive(at::Tensor, std::int64_t, MessageLabel) override { return refused(); }

 private:
  static Call refused() { throw std::logic_error("a source has no use for this"); }
  std::int64_t rank_, size_, others_;
};

struct Numbers : torch::data::datasets::Dataset<Numbers, int> {
  explicit Numbers(int size) : count(size) {}
  int get(std::size_t index) override { return static_cast<int>(index); }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(count); }
  int count;
};

auto numbers_loader(int size, std::size_t batch, std::size_t workers = 0) {
  return torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Numbers(size), torch::data::DataLoaderOptions().batch_size(batch).workers(workers));
}

/// 0, 1, ... as batches of `batch`, the last one shorter if necessary.
std::vector<at::Tensor> rows(std::int64_t samples, std::int64_t batch) {
  const at::Tensor all = at::arange(samples, at::kLong);
  std::vector<at::Tensor> batches;
  for (std::int64_t i = 0; i < samples; i += batch) batches.push_back(all.narrow(0, i, std::min(batch, samples - i)));
  return batches;
}

std::string text(const std::vector<int>& batch) {
  std::string numbers;
  for (const int each : batch) numbers += (numbers.empty() ? "" : " ") + std::to_string(each);
  return numbers;
}
std::string text(const at::Tensor& batch) {
  const auto* first = batch.const_data_ptr<std::int64_t>();
  return text(std::vector<int>(first, first + batch.numel()));
}
std::string text(const std::string& batch) {
  return batch;
}

struct Setup {
  std::int64_t world = 2;
  LoaderOptions options;
  AcceleratorOptions accelerator;
};

/// Returns the batches that every rank of `setup` gets in one epoch: "0 1|4 5" is two batches.
template <typename Range>
std::vector<std::string> shared(Range& range, const Setup& setup) {
  std::vector<std::string> ranks;
  for (std::int64_t rank = 0; rank < setup.world; ++rank) {
    GradientState state(setup.accelerator, setup.world);
    Alike axis(rank, setup.world);
    auto source = source_of(range);
    PreparedLoader loader(source, setup.options, state, axis);
    std::string batches;
    for (auto& batch : loader) batches += (batches.empty() ? "" : "|") + text(batch);
    ranks.push_back(batches);
  }
  return ranks;
}

using Ranks = std::vector<std::string>;
const AcceleratorOptions uneven{.even_batches = false}, split{.split_batches = true};

}  // namespace

class TestPreparedSources : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ranks_share_a_loader_of_libtorch_data() {
    QTest::addColumn<int>("workers");
    QTest::newRow("without workers") << 0;
    QTest::newRow("with two workers") << 2;
  }
  void ranks_share_a_loader_of_libtorch() {
    QFETCH(int, workers);
    auto loader = numbers_loader(8, 2, static_cast<std::size_t>(workers));
    QCOMPARE(shared(*loader, {}), (Ranks{"0 1|4 5", "2 3|6 7"}));
  }

  void an_epoch_that_is_left_early_is_followed_by_a_whole_one_data() { ranks_share_a_loader_of_libtorch_data(); }
  void an_epoch_that_is_left_early_is_followed_by_a_whole_one() {
    QFETCH(int, workers);
    for (const std::int64_t world : {1, 2}) {
      auto data = numbers_loader(12, 2, static_cast<std::size_t>(workers));
      GradientState state({}, world);
      Alike axis(0, world);
      auto source = source_of(*data);
      PreparedLoader loader(source, LoaderOptions{}, state, axis);
      for (const auto& batch : loader) {
        QCOMPARE(batch, (std::vector<int>{0, 1}));
        break;
      }
      std::size_t samples = 0;
      for (const auto& batch : loader) samples += batch.size();
      QCOMPARE(samples, static_cast<std::size_t>(12 / world));
    }
  }

  void the_last_round_is_made_even_as_upstream_does_it() {
    auto of = [](std::int64_t samples, std::int64_t batch, const Setup& setup) {
      auto batches = rows(samples, batch);
      return shared(batches, setup);
    };
    QCOMPARE(of(21, 3, {}), (Ranks{"0 1 2|6 7 8|12 13 14|18 19 20", "3 4 5|9 10 11|15 16 17|0 1 2"}));
    QCOMPARE(of(22, 3, {}).at(1), std::string("3 4 5|9 10 11|15 16 17|21 0 1"));
    QCOMPARE(of(19, 3, {}), (Ranks{"0 1 2|6 7 8|12 13 14|18 0 1", "3 4 5|9 10 11|15 16 17|2 3 4"}));
    QCOMPARE(of(2, 3, {}), (Ranks{"0 1", "0 1"}));
    QCOMPARE(of(4, 2, {.world = 4}), (Ranks{"0 1", "2 3", "0 1", "2 3"}));
    QCOMPARE(of(5, 2, {.world = 1}), (Ranks{"0 1|2 3|4"}));
  }

  void uneven_ranks_do_what_the_option_says() {
    auto of = [](UnevenRanks how) {
      auto batches = rows(10, 2);
      return shared(batches, {.options = {.uneven_ranks = how}});
    };
    QCOMPARE(of(UnevenRanks::join), (Ranks{"0 1|4 5|8 9", "2 3|6 7|"}));
    QCOMPARE(of(UnevenRanks::empty_micro_steps), (Ranks{"0 1|4 5|8 9", "2 3|6 7|"}));
    QCOMPARE(of(UnevenRanks::drop), (Ranks{"0 1|4 5", "2 3|6 7"}));
    auto batches = rows(10, 2);
    QCOMPARE(shared(batches, {.accelerator = uneven}), (Ranks{"0 1|4 5|8 9", "2 3|6 7|"}));
  }

  void batches_that_cannot_be_cut_are_repeated_whole() {
    std::vector<std::string> words{"a", "b", "c", "d"};
    QCOMPARE(shared(words, {.world = 3}), (Ranks{"a|d", "b|a", "c|b"}));
    std::vector<at::Tensor> ragged{at::arange(4, at::kLong).view({2, 2}), at::arange(3, at::kLong).view({1, 3}),
                                   at::arange(5, at::kLong).view({1, 5})};
    QCOMPARE(shared(ragged, {}), (Ranks{"0 1 2 3|0 1 2 3 4", "0 1 2|0 1 2 3"}));
  }

  void split_batches_gives_each_rank_its_part_of_every_batch() {
    auto of = [](std::int64_t samples, UnevenRanks how) {
      auto batches = rows(samples, 4);
      return shared(batches, {.options = {.uneven_ranks = how}, .accelerator = split});
    };
    QCOMPARE(of(8, UnevenRanks::repeat), (Ranks{"0 1|4 5", "2 3|6 7"}));
    QCOMPARE(of(9, UnevenRanks::repeat), (Ranks{"0 1|4 5|8 0", "2 3|6 7|1 2"}));
    QCOMPARE(of(9, UnevenRanks::join), (Ranks{"0 1|4 5|8", "2 3|6 7|"}));
    QCOMPARE(of(9, UnevenRanks::empty_micro_steps), (Ranks{"0 1|4 5|8", "2 3|6 7|"}));
    QCOMPARE(of(9, UnevenRanks::drop), (Ranks{"0 1|4 5", "2 3|6 7"}));
    auto loader = numbers_loader(9, 4);
    QCOMPARE(shared(*loader, {.accelerator = split}), (Ranks{"0 1|4 5|8 0", "2 3|6 7|1 2"}));
  }

  void batches_made_of_several_tensors_are_cut_together() {
    using Pair = std::pair<at::Tensor, std::tuple<at::Tensor, std::vector<int>>>;
    const at::Tensor five = at::arange(5, at::kLong);
    const Pair batch{five, {five * 10, {0, 1, 2, 3, 4}}};
    const Pair part = BatchRows<Pair>::range(batch, 3, 2);
    const Pair both = BatchRows<Pair>::joined(part, BatchRows<Pair>::range(batch, 0, 1)).value();
    QCOMPARE(text(both.first), std::string("3 4 0"));
    QCOMPARE(text(std::get<0>(both.second)), std::string("30 40 0"));
    QCOMPARE(text(std::get<1>(both.second)), std::string("3 4 0"));
    QCOMPARE(rows_of(batch), std::optional<std::int64_t>(5));
    QCOMPARE(rows_of(Pair{five, {five, {1}}}), std::optional<std::int64_t>());
    using Example = torch::data::Example<>;
    const Example example = BatchRows<Example>::range(Example(five, five * 2), 1, 2);
    QCOMPARE(text(example.target), std::string("2 4"));
    QCOMPARE(text(BatchRows<torch::data::TensorExample>::range(torch::data::TensorExample(five), 4, 1).data),
             std::string("4"));
    QVERIFY(!HasRows<std::string> && !HasRows<int> && !(HasRows<std::pair<at::Tensor, int>>));
    QCOMPARE(rows_of(at::zeros({})), std::optional<std::int64_t>());
  }

  void a_source_that_is_sharded_already_is_read_as_it_is() {
    auto batches = rows(6, 2);
    QCOMPARE(shared(batches, {.options = {.already_sharded = true}}), (Ranks{"0 1|2 3|4 5", "0 1|2 3|4 5"}));
    QCOMPARE(shared(batches, {.options = {.already_sharded = true}, .accelerator = split}).at(1),
             std::string("0 1|2 3|4 5"));
  }

  void lengths_and_the_last_batch_are_known() {
    auto batches = rows(19, 3);
    auto source = source_of(batches, 7);
    GradientState state({}, 2);
    Alike axis(1, 2);
    PreparedLoader loader(source, LoaderOptions{}, state, axis);
    QCOMPARE(loader.length(), std::optional<std::int64_t>(4));
    std::vector<std::int64_t> remainders;
    for (const at::Tensor& x : loader) {
      Q_UNUSED(x)
      remainders.push_back(state.remainder());
      QCOMPARE(state.end_of_dataloader(), loader.position() == 4);
    }
    QCOMPARE(remainders.back(), std::int64_t{1});  // of the six samples, five are there for the second time
    loader.skip_first_batches(3);
    QCOMPARE(text(*loader.begin()), std::string("2 3 4"));
    LoaderOptions drop{.uneven_ranks = UnevenRanks::drop};
    QCOMPARE(PreparedLoader(source, drop, state, axis).length(), std::optional<std::int64_t>(3));
    QCOMPARE(PreparedLoader(source, {.already_sharded = true}, state, axis).length(), std::optional<std::int64_t>(7));
    QCOMPARE(source_of(batches).length(), std::optional<std::int64_t>(7));  // a vector knows
    QCOMPARE(&source.range(), &batches);
  }

  void a_rank_without_any_batch_is_known_to_all() {
    auto batches = rows(2, 2);
    auto source = source_of(batches);
    GradientState state(uneven, 2);
    Alike axis(0, 2);
    PreparedLoader loader(source, LoaderOptions{}, state, axis);
    auto pass = loader.begin();
    QVERIFY(state.some_rank_is_empty());
    QVERIFY(!state.on_empty_batch());
  }

  void what_a_source_cannot_follow_is_refused() {
    std::vector<std::string> words{"a", "b"};
    const auto answer = [&words](const Setup& setup) { return refused([&] { shared(words, setup); }); };
    QVERIFY(contains(answer({.options = {.batch_size = 0}}), "leave batch_size out"));
    QVERIFY(contains(answer({.options = {.shuffle = true}}), "shuffle where it is made"));
    QVERIFY(contains(answer({.options = {.drop_last = true}}), "drop its last one there"));
    for (const auto how : {UnevenRanks::join, UnevenRanks::empty_micro_steps})
      QVERIFY(contains(answer({.options = {.uneven_ranks = how}}), "no empty batch"));
    QVERIFY(contains(answer({.options = {.already_sharded = true}}), "no empty batch"));
    QVERIFY(contains(answer({.accelerator = uneven}), "no empty batch"));
    QVERIFY(contains(answer({.accelerator = split}), "do without split_batches"));
    for (const auto how : {UnevenRanks::repeat, UnevenRanks::empty_micro_steps})
      QVERIFY(contains(answer({.options = {.uneven_ranks = how, .already_sharded = true}}), "join or drop"));
    auto odd = rows(6, 3);
    QVERIFY(contains(refused([&] { shared(odd, {.accelerator = split}); }), "has 3 samples"));
    std::vector<at::Tensor> growing{at::arange(2), at::arange(4)};
    QVERIFY(contains(refused([&] { shared(growing, {.accelerator = split}); }), "a batch has 4 samples"));
    GradientState state({}, 2);
    Alike axis(0, 2);
    const auto map =
        map_loader(4, [](const std::vector<std::int64_t>& samples) { return samples; }, {.already_sharded = true});
    QVERIFY(contains(refused([&] { PreparedLoader(map, state, axis); }), "leave already_sharded"));
  }

  void ranks_with_different_sources_are_told_to_say_so() {
    auto batches = rows(4, 2);
    auto source = source_of(batches);
    GradientState state({}, 2);
    Alike axis(0, 2, 1);  // the other rank gets one batch more
    PreparedLoader loader(source, LoaderOptions{}, state, axis);
    QVERIFY(contains(refused([&] { (void)loader.begin(); }), "set already_sharded"));
  }
};

ACCRUE_TEST_MAIN(TestPreparedSources)

}  // namespace test_prepared_sources
#include "test_prepared_sources.moc"

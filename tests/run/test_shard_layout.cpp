// SPDX-License-Identifier: Apache-2.0
// The flat space of parameters, its buckets and shards, the parameters of each model, and what memory they take.
#include <QtTest>

#include <numeric>
#include <random>

#include "accrue/run/model_share.h"
#include "accrue/run/shard_layout.h"
#include "engine/run/plan/memory_estimate.h"
#include "parameter_totals.h"
#include "support/table.h"

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

std::int64_t count(const ModelSpec& model) {
  std::int64_t sum = 0;
  for (const ParameterShape& shape : parameter_shapes(model)) sum += shape.numel();
  return sum;
}

ModelSpec gpt(std::int64_t layers, std::int64_t width, std::int64_t context, std::int64_t vocabulary) {
  ModelSpec model;
  model.layers = layers;
  model.width = width;
  model.context = context;
  model.vocabulary = vocabulary;
  return model;
}

}  // namespace

class TestShardLayout : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void parameters_lie_in_the_order_in_which_backward_ends() {
    const std::vector<std::int64_t> numels = {20, 16, 1};
    const FlatLayout layout = flat_layout(numels, 4, 1 << 20);
    const std::vector<FlatRange> expected = {{32, 20}, {16, 16}, {0, 1}};
    QVERIFY(layout.parameters == expected);
    QCOMPARE(layout.numel, 64);
    QVERIFY(layout.buckets == std::vector<FlatRange>({{0, 64}}));
  }

  void buckets_cover_everything_once_whatever_the_sizes() {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::int64_t> numels(random() % 12);
      for (auto& numel : numels) numel = 1 + random() % 5000;
      const std::int64_t bucket_bytes = 1 + random() % 20000;
      const FlatLayout layout = flat_layout(numels, 4, bucket_bytes);
      std::int64_t end = 0;
      for (const FlatRange& bucket : layout.buckets) {
        QCOMPARE(bucket.offset, end);
        QVERIFY(bucket.size > 0);
        QVERIFY(bucket.size * 4 <= std::max<std::int64_t>(bucket_bytes, 64) + 64);
        end += bucket.size;
      }
      QCOMPARE(end, layout.numel);
      for (std::size_t i = 0; i < numels.size(); ++i) {
        QCOMPARE(layout.parameters[i].size, numels[i]);
        QCOMPARE(layout.parameters[i].offset % 16, 0);
        const std::int64_t next = i == 0 ? layout.numel : layout.parameters[i - 1].offset;
        QVERIFY(layout.parameters[i].offset + numels[i] <= next);
      }
    }
  }

  void buckets_are_never_more_than_can_be_listed() {
    const std::vector<std::int64_t> numels = {915'752LL * 524'288, 524'288, 7};
    const FlatLayout layout = flat_layout(numels, 4, 1024);
    QVERIFY(layout.buckets.size() <= 65'536);
    std::int64_t end = 0;
    for (const FlatRange& bucket : layout.buckets) {
      QCOMPARE(bucket.offset, end);
      end += bucket.size;
    }
    QCOMPARE(end, layout.numel);
  }

  void totals_are_those_of_the_whole_layout() {
    for (const std::int64_t layers : {1, 2, 3, 7}) {
      ModelSpec model = gpt(layers, 24, 5, 11);
      for (const ModelKind kind : {ModelKind::gpt, ModelKind::mlp, ModelKind::linear}) {
        model.kind = kind;
        model.hidden = {3, 17, 5};
        std::vector<std::int64_t> numels;
        for (const ParameterShape& shape : parameter_shapes(model)) numels.push_back(shape.numel());
        for (const std::int64_t bucket_bytes : {1, 128, 5000, 1 << 20}) {
          const FlatLayout layout = flat_layout(numels, 4, bucket_bytes);
          const ParameterTotals totals = parameter_totals(model);
          QCOMPARE(totals.numel, count(model));
          QCOMPARE(totals.padded_numel, layout.numel);
          QCOMPARE(bucket_count(totals.padded_numel, 4, bucket_bytes),
                   static_cast<std::int64_t>(layout.buckets.size()));
        }
      }
    }
    QCOMPARE(bucket_count(0, 4, 1024), 0);
  }

  void totals_of_a_model_of_any_size_are_arithmetic() {
    QCOMPARE(bucket_count(std::int64_t{1} << 50, 4, 64), 65'536);
    ModelSpec model = gpt(1 << 30, 16, 4, 8);
    const auto block = parameter_totals(gpt(2, 16, 4, 8)).numel - parameter_totals(gpt(1, 16, 4, 8)).numel;
    QCOMPARE(parameter_totals(model).numel, parameter_totals(gpt(1, 16, 4, 8)).numel + ((1 << 30) - 1) * block);
  }

  void nothing_has_an_empty_layout() {
    const FlatLayout layout = flat_layout({}, 4, 1024);
    QCOMPARE(layout.numel, 0);
    QVERIFY(layout.buckets.empty());
  }

  void shards_cover_everything_once_data() {
    const Rows<int, int> row;
    row("even", 12, 4);
    row("last one shorter", 10, 4);
    row("more ranks than elements", 3, 8);
    row("nothing", 0, 2);
    row("alone", 7, 1);
  }
  void shards_cover_everything_once() {
    const auto [numel, world] = current_row<int, int>();
    std::int64_t end = 0;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const FlatRange range = shard_range(numel, rank, world);
      QCOMPARE(range.offset, end);
      QVERIFY(range.size >= 0 && range.size <= (numel + world - 1) / world);
      end += range.size;
    }
    QCOMPARE(end, numel);
  }

  void an_all_reduce_sends_two_times_what_the_others_hold_data() {
    const Rows<qint64, qint64, qint64> row;
    row("one rank", qint64{100}, qint64{1}, qint64{0});
    row("two ranks", qint64{100}, qint64{2}, qint64{100});
    row("four ranks", qint64{100}, qint64{4}, qint64{150});
    row("rounded up", qint64{10}, qint64{3}, qint64{14});
    row("large", (qint64{1} << 60), qint64{2}, (qint64{1} << 60));
  }
  void an_all_reduce_sends_two_times_what_the_others_hold() {
    const auto [bytes, ranks, sent] = current_row<qint64, qint64, qint64>();
    QCOMPARE(all_reduce_wire_bytes(bytes, ranks), sent);
  }

  void a_gpt_has_the_parameters_of_gpt_2() {
    QCOMPARE(count(gpt(12, 768, 1024, 50257)), 124439808);  // as published for the smallest GPT-2
    const auto shapes = parameter_shapes(gpt(2, 8, 4, 10));
    QStringList names;
    for (const auto& shape : shapes) names << QString::fromStdString(shape.name);
    QCOMPARE(names.mid(0, 5),
             QStringList({"token_embedding.weight", "position_embedding.weight", "blocks.0.norm_1.weight",
                          "blocks.0.norm_1.bias", "blocks.0.attention.qkv.weight"}));
    QCOMPARE(names.mid(names.size() - 3),
             QStringList({"blocks.1.mlp.down.bias", "final_norm.weight", "final_norm.bias"}));
    QVERIFY(shapes[4].shape == std::vector<std::int64_t>({24, 8}));
    QVERIFY(shapes[4].decays && shapes[0].decays);
    QVERIFY(!shapes[2].decays && !shapes[3].decays);
  }

  /// gpt2-large with t = 2 and p = 2, as Accelerate's guide prints its stages.
  void stages_have_the_published_parameters() {
    ModelSpec model = gpt(36, 1280, 1024, 50432);
    model.heads = 20;
    const auto count_of = [&](std::int64_t part) {
      std::int64_t sum = 0;
      for (const ParameterShare& share : parameter_shares(model, {.tensor_ranks = 2, .parts = 2, .part = part}))
        sum += share.numel();
      return sum;
    };
    QCOMPARE(count_of(0), 210753280);
    QCOMPARE(count_of(1), 209445120);
    QCOMPARE(fullest_rank_totals(model, {.tensor = 2, .pipeline = 2}).numel, 210753280);
    QCOMPARE(fullest_rank_totals(model, {}).numel, count(model));
  }

  void shards_cut_every_bucket_into_equal_parts() {
    for (const std::int64_t world : {1, 2, 3, 4, 7})
      for (const std::int64_t bytes : {64, 1000, 1 << 20}) {
        const std::vector<std::int64_t> numels{100, 7, 4096, 33};
        const FlatLayout layout = flat_layout(numels, 4, bytes, world);
        std::int64_t padded = 0;
        for (const std::int64_t numel : numels) padded += padded_numel(numel);
        QCOMPARE(static_cast<std::int64_t>(layout.buckets.size()), bucket_count(padded, 4, bytes, world));
        // Every element has one owner.
        std::vector<int> owners(static_cast<std::size_t>(layout.numel));
        for (std::int64_t rank = 0; rank < world; ++rank)
          for (const FlatRange& owned : owned_ranges(layout, rank, world))
            for (std::int64_t i = owned.offset; i < owned.offset + owned.size; ++i)
              ++owners[static_cast<std::size_t>(i)];
        QVERIFY(std::ranges::all_of(owners, [](int count) { return count == 1; }));
      }
  }

  void a_rank_holds_its_box_of_a_parameter() {
    ModelSpec model = gpt(2, 8, 4, 10);
    model.heads = 2;
    const auto shares = parameter_shares(model, {.tensor_ranks = 2, .tensor_rank = 1, .parts = 2, .part = 1});
    const auto named = [&](const std::string& name) { return *std::ranges::find(shares, name, &ParameterShare::name); };
    using Sizes = std::vector<std::int64_t>;
    // The tied table comes first, as a copy; then block 1 alone, and the final norm.
    QVERIFY(shares.front().name == "token_embedding.weight" && shares.front().shared);
    QVERIFY(shares.front().shape == Sizes({5, 8}) && shares.front().offset == Sizes({5, 0}));
    QCOMPARE(shares[1].name, std::string("blocks.1.norm_1.weight"));
    QCOMPARE(shares.back().name, std::string("final_norm.bias"));
    // Packed queries, keys and values: the second half of each.
    const ParameterShare qkv = named("blocks.1.attention.qkv.weight");
    QVERIFY(qkv.whole == Sizes({3, 8, 8}) && qkv.offset == Sizes({0, 4, 0}) && qkv.extent == Sizes({3, 4, 8}));
    QVERIFY(qkv.shape == Sizes({12, 8}) && qkv.whole_shape == Sizes({24, 8}));
    const ParameterShare bias = named("blocks.1.attention.qkv.bias");
    QVERIFY(bias.whole == Sizes({3, 8}) && bias.extent == Sizes({3, 4}) && bias.divided && !bias.decays);
    // By columns; its bias is whole.
    const ParameterShare down = named("blocks.1.mlp.down.weight");
    QVERIFY(down.shape == Sizes({8, 16}) && down.offset == Sizes({0, 16}));
    const ParameterShare down_bias = named("blocks.1.mlp.down.bias");
    QVERIFY(!down_bias.divided && down_bias.on_rows && down_bias.shape == Sizes({8}));
  }

  void dense_models_have_what_they_say() {
    ModelSpec model;
    model.kind = ModelKind::linear;
    model.inputs = 3;
    model.outputs = 2;
    QCOMPARE(count(model), 8);
    model.bias = false;
    QCOMPARE(count(model), 6);
    QCOMPARE(parameter_shapes(model).front().name, std::string("weight"));
    model.kind = ModelKind::mlp;
    model.bias = true;
    model.hidden = {5, 4};
    QCOMPARE(count(model), 3 * 5 + 5 + 5 * 4 + 4 + 4 * 2 + 2);
    QCOMPARE(parameter_shapes(model).back().name, std::string("layers.2.bias"));
    model.hidden = {};
    QCOMPARE(count(model), 8);
  }

  void gradients_are_summed_in_the_type_that_was_asked_for() {
    QCOMPARE(gradient_bytes(Dtype::bfloat16, AccumulationDtype::parameter), 2);
    QCOMPARE(gradient_bytes(Dtype::bfloat16, AccumulationDtype::float32), 4);
    QCOMPARE(gradient_bytes(Dtype::float64, AccumulationDtype::float32), 8);
    QCOMPARE(gradient_bytes(Dtype::float32, AccumulationDtype::float32_compensated), 8);
  }

  void absurd_models_do_not_overflow() {
    RunSpec spec;
    spec.model = gpt(1000, 65536, 1048576, 4194304);
    spec.accumulation.micro_batch = 1048576;
    const MemoryEstimate memory = estimate_memory(spec);
    QVERIFY(memory.activations > 0);
    QVERIFY(memory.total() > 0);
  }
};

QTEST_GUILESS_MAIN(TestShardLayout)
#include "test_shard_layout.moc"

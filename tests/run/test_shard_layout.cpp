// SPDX-License-Identifier: Apache-2.0
// The flat space of parameters, its buckets and shards, the parameters of each model, and what memory they take.
#include <QTest>

#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"
#include "engine/run/cost/memory_estimate.h"
#include "parameter_totals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_shard_layout {

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
      model.decoder_layers = 8 - layers;
      for (const ModelKind kind :
           {ModelKind::gpt, ModelKind::llama, ModelKind::bert, ModelKind::t5, ModelKind::mlp, ModelKind::linear}) {
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

  /// A block has 12 D^2 + 13 D numbers, and 4 D^2 + 6 D more if it attends to an encoder.
  void a_bert_and_a_t5_have_the_parameters_of_their_layers() {
    constexpr std::int64_t width = 24, layers = 3, context = 5, tokens = 11, decoder = 2;
    constexpr std::int64_t square = width * width, block = 12 * square + 13 * width, norm = 2 * width;
    ModelSpec model = gpt(layers, width, context, tokens);
    const std::int64_t encoder = (tokens + context) * width + layers * block + norm;
    QCOMPARE(count(model), encoder);
    model.kind = ModelKind::bert;
    const std::int64_t head = square + width + norm + tokens;
    const std::int64_t order = 2 * width + square + width + 2 * width + 2;  // types, pooler, two classes
    QCOMPARE(count(model), encoder + head + order);
    model.binary_head = false;
    QCOMPARE(count(model), encoder + head);
    model.kind = ModelKind::t5;
    model.decoder_layers = decoder;
    QCOMPARE(count(model), encoder + decoder * (block + 4 * square + 6 * width) + norm + tokens);
    model.decoder_context = 7;
    QCOMPARE(count(model), encoder + 2 * width + decoder * (block + 4 * square + 6 * width) + norm + tokens);
  }

  /// In every layout the parts make up the model: each number occurs once, except in copies of the embeddings.
  void parts_of_a_bert_and_a_t5_make_the_whole() {
    struct Layout {
      std::int64_t tensor, stages, chunks, split;
    };
    for (const ModelKind kind : {ModelKind::bert, ModelKind::t5})
      for (const Layout& layout :
           {Layout{1, 1, 1, 0}, {2, 1, 1, 0}, {1, 2, 1, 0}, {2, 4, 1, 0}, {1, 2, 2, 0}, {2, 3, 1, 1}, {1, 4, 1, 2}}) {
        ModelSpec model = gpt(12, 24, 6, 32);
        model.heads = 4;
        model.kind = kind;
        ParallelSpec parallel{.tensor = layout.tensor, .pipeline = layout.stages, .virtual_pipeline = layout.chunks};
        if (layout.split > 0) parallel.split_stage = layout.split;
        const bool interleaved_t5 = kind == ModelKind::t5 && layout.chunks > 1;
        QCOMPARE(check_division(model, parallel).empty(), !interleaved_t5);
        if (interleaved_t5) continue;
        std::int64_t own = 0, most = 0;
        std::map<std::string, int> copies;
        for (std::int64_t stage = 0; stage < layout.stages; ++stage) {
          std::int64_t held = 0;
          for (std::int64_t chunk = 0; chunk < layout.chunks; ++chunk)
            for (std::int64_t rank = 0; rank < layout.tensor; ++rank)
              for (const ParameterShare& share :
                   parameter_shares(model, share_under(model, parallel, rank, stage, chunk))) {
                if (rank == 0) held += share.numel();
                if (share.shared)
                  copies[share.name] += rank == 0;
                else if (share.divided || rank == 0)
                  own += share.numel();
              }
          most = std::max(most, held);
        }
        QCOMPARE(own, count(model));
        QCOMPARE(fullest_rank_totals(model, parallel).numel, most);
        const int tables = layout.stages == 1 ? 0 : kind == ModelKind::t5 && layout.stages > 2 ? 2 : 1;
        QCOMPARE(copies["token_embedding.weight"], tables);
        QCOMPARE(copies["position_embedding.weight"], kind == ModelKind::t5 && layout.stages > 1 ? 1 : 0);
      }
  }

  void the_split_of_a_t5_leaves_stages_for_both() {
    ModelSpec model = gpt(4, 24, 6, 32);
    model.kind = ModelKind::t5;
    const auto wrong = [&model](std::int64_t stages, std::int64_t split) {
      return QString::fromStdString(check_share(model, 1, stages, split));
    };
    QCOMPARE(wrong(4, 0), QString());
    QCOMPARE(wrong(3, 1), QString());
    QVERIFY(wrong(2, 2).contains("leaves no stage for the decoder"));
    QVERIFY(wrong(4, 3).contains("model.layers 4 is not a multiple of the encoder's parallel.split_stage 3"));
    QVERIFY(wrong(4, 1).contains("model.decoder_layers 4 is not a multiple"));
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

  /// In 10^9: the parameter column of Megatron-LM's table of 2021 (A100), and the names of the models of its table of
  /// 2024 (H100), whose output layers are not tied to the embeddings.
  void models_have_the_published_parameters_data() {
    const Rows<int, int, double, bool> row;  // width, layers, parameters, tied
    row("1.7", 2304, 24, 1.7, true);
    row("3.6", 3072, 30, 3.6, true);
    row("7.5", 4096, 36, 7.5, true);
    row("18.4", 6144, 40, 18.4, true);
    row("39.1", 8192, 48, 39.1, true);
    row("76.1", 10240, 60, 76.1, true);
    row("145.6", 12288, 80, 145.6, true);
    row("310.1", 16384, 96, 310.1, true);
    row("529.6", 20480, 105, 529.6, true);
    row("1008", 25600, 128, 1008.0, true);
    row("7.1B", 4096, 30, 7.1, false);
    row("70B", 8192, 84, 70, false);
    row("177B", 12288, 96, 177, false);
    row("462B", 18432, 112, 462, false);
  }
  void models_have_the_published_parameters() {
    const auto [width, layers, published, tied] = current_row<int, int, double, bool>();
    const std::int64_t context = tied ? 2048 : 4096, vocabulary = tied ? 51200 : 131072;
    const ModelSpec model = gpt(layers, width, context, vocabulary);
    const double output = tied ? 0.0 : static_cast<double>(vocabulary) * width;
    const double step = tied || published < 10 ? 0.1 : 1.0;  // of the rounding
    QVERIFY(std::abs((static_cast<double>(count(model)) + output) / 1e9 - published) <= step / 2);
    // 12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L h)), and the last norm.
    const double h = width;
    QCOMPARE(static_cast<double>(count(model)),
             12 * layers * h * h + 13 * layers * h + static_cast<double>(vocabulary + context) * h + 2 * h);
  }

  void a_vocabulary_is_rounded_up_data() {
    QTest::addColumn<std::int64_t>("ranks");
    QTest::addColumn<std::int64_t>("megatron");
    QTest::newRow("one rank") << std::int64_t{1} << std::int64_t{50304};  // as Megatron-LM pads GPT-2's
    QTest::newRow("two ranks") << std::int64_t{2} << std::int64_t{50432};
    QTest::newRow("eight ranks") << std::int64_t{8} << std::int64_t{51200};
  }
  void a_vocabulary_is_rounded_up() {
    QFETCH(std::int64_t, ranks);
    QFETCH(std::int64_t, megatron);
    ModelSpec model = gpt(2, 16, 4, 50257);
    QCOMPARE(padded_vocabulary(model, 1), 50257);
    model.vocabulary_multiple = 128;
    QCOMPARE(padded_vocabulary(model, ranks), 50304);
    QCOMPARE(classes_of(model, ranks), 50257);
    QCOMPARE(parameter_shapes(model, ranks).front().shape.front(), 50257);
    model.vocabulary_padding = VocabularyPadding::megatron;
    QCOMPARE(padded_vocabulary(model, ranks), megatron);
    QCOMPARE(classes_of(model, ranks), megatron);
    QCOMPARE(parameter_shapes(model, ranks).front().shape.front(), megatron);
    const auto table = parameter_shares(model, {.tensor_ranks = ranks}).front();
    QCOMPARE(table.shape.front(), megatron / ranks);
    QCOMPARE(table.whole_shape.front(), 50257);
  }

  /// Ten tokens in 16 rows over four ranks: the last two hold two tokens, and none.
  void padding_is_no_part_of_a_table() {
    ModelSpec model = gpt(2, 8, 4, 10);
    model.heads = 4;
    model.vocabulary_multiple = 16;
    const auto table = [&](std::int64_t rank) {
      return parameter_shares(model, {.tensor_ranks = 4, .tensor_rank = rank}).front();
    };
    using Sizes = std::vector<std::int64_t>;
    QVERIFY(table(0).whole == Sizes({10, 8}) && table(0).extent == Sizes({4, 8}) && table(0).padded);
    QVERIFY(table(2).offset == Sizes({8, 0}) && table(2).extent == Sizes({2, 8}) && table(2).shape == Sizes({4, 8}));
    QVERIFY(table(3).offset == Sizes({10, 0}) && table(3).extent == Sizes({0, 8}) && table(3).numel() == 32);
    // Ranks hold the padding; the model's parameters are without.
    QCOMPARE(fullest_rank_totals(model, {}).numel - parameter_totals(model).numel, 6 * 8);
  }

  void blocks_are_recomputed_by_part() {
    const auto ranges = [](RecomputeMethod method, std::int64_t layers, std::int64_t blocks) {
      std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
      for (const BlockRange& range : recomputed_blocks(
               {.recompute = RecomputeKind::full, .recompute_method = method, .recompute_layers = layers}, blocks))
        pairs.emplace_back(range.first, range.last);
      return pairs;
    };
    using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
    QVERIFY(ranges(RecomputeMethod::uniform, 1, 2) == Pairs({{0, 1}, {1, 2}}));
    QVERIFY(ranges(RecomputeMethod::uniform, 2, 5) == Pairs({{0, 2}, {2, 4}, {4, 5}}));
    QVERIFY(ranges(RecomputeMethod::block, 2, 5) == Pairs({{0, 1}, {1, 2}}));
    QVERIFY(recomputed_blocks({.recompute = RecomputeKind::selective}, 5).empty());
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

  /// Wherever it stands among others, its buckets and shards lie in it alike.
  void a_parameter_that_is_alone_is_cut_alike_everywhere() {
    for (const std::int64_t world : {1, 2, 3, 4})
      for (const std::int64_t bytes : {64, 1000, 1 << 20}) {
        const auto cuts_of = [&](const std::vector<std::int64_t>& numels, std::size_t alone) {
          const FlatLayout layout = flat_layout(numels, 4, bytes, world, alone);
          const FlatRange place = layout.parameters[alone];
          std::vector<FlatRange> cuts;
          std::int64_t covered = 0;
          for (std::int64_t rank = 0; rank < world; ++rank)
            for (const FlatRange& owned : owned_ranges(layout, rank, world)) {
              const bool inside = owned.offset >= place.offset && owned.offset < place.offset + place.size;
              if (inside) cuts.push_back({owned.offset - place.offset, owned.size});
              covered += owned.size;
            }
          // No bucket holds it and another parameter.
          for (std::size_t i = 0; i < numels.size(); ++i)
            for (const FlatRange& bucket : layout.buckets) {
              const auto in = [&](const FlatRange& range) {
                return range.offset < bucket.offset + bucket.size && bucket.offset < range.offset + range.size;
              };
              if (i != alone && in(place) && in(layout.parameters[i])) cuts.clear();
            }
          return covered == layout.numel ? cuts : std::vector<FlatRange>();
        };
        const auto first = cuts_of({3000, 100, 7, 4096, 33}, 0);
        QVERIFY(!first.empty());
        QVERIFY(first == cuts_of({100, 3000, 5}, 1));
        QVERIFY(first == cuts_of({17, 20000, 3000}, 2));
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

ACCRUE_TEST_MAIN(TestShardLayout)

}  // namespace test_shard_layout
#include "test_shard_layout.moc"

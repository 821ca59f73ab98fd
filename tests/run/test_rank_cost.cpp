// SPDX-License-Identifier: Apache-2.0
// Bytes held and sent by each rank of a grid, worked out by hand or published. That they are what ranks really hold and
// send is test_measured's matter.
#include <QTest>

#include "accrue/run/cost/rank_cost.h"
#include "support/test_program.h"

namespace test_rank_cost {

using namespace accrue;

namespace {

RunSpec gpt(std::int64_t layers, std::int64_t width, std::int64_t context, std::int64_t vocabulary) {
  RunSpec spec;
  spec.model.layers = layers;
  spec.model.width = width;
  spec.model.heads = 2;
  spec.model.context = context;
  spec.model.vocabulary = vocabulary;
  spec.accumulation.micro_batch = 3;
  spec.accumulation.steps = 4;
  return spec;
}

RankCost only(const RunSpec& spec) {
  const auto costs = stage_costs(spec);
  if (costs.size() != 1) qFatal("one stage was expected");
  return costs.front();
}

}  // namespace

class TestRankCost : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void activations_are_counted_tensor_by_tensor() {
    RunSpec spec = gpt(2, 8, 4, 10);
    // 12 tokens. A fused block keeps two inputs, two pairs of statistics, qkv, attention, its log-sums, a hidden row.
    const std::int64_t block = 12 * (2 * 8 + 2 * 2 + 3 * 8 + 8 + 2 + 4 * 8);
    // The head keeps the gradients of its input, its norm and its table, and the loss.
    QCOMPARE(only(spec).activations, 4 * (2 * block + 12 * 8 + 2 * 8 + 10 * 8 + 1));
    spec.model.dtype = Dtype::float64;
    QCOMPARE(only(spec).activations, 8 * (2 * block + 12 * 8 + 2 * 8 + 10 * 8 + 1));
    // With operators also what the norms and GELU give, and the head's log-softmax in float32.
    spec.model.dtype = Dtype::bfloat16;
    const std::int64_t plain = block + 12 * (2 * 8 + 4 * 8);
    QCOMPARE(only(spec).activations, 2 * (2 * plain + 2 * 12 * 8 + 12 * 2) + 4 * (12 * 10 + 1));
    // Dropout: masks of the embedding and of each half; softmax, its mask and their product instead of the log-sums.
    spec.model.dtype = Dtype::float32;
    spec.model.dropout = 0.1;
    const std::int64_t dropped = plain + 12 * (2 * 8 - 2 + 3 * 2 * 4);
    QCOMPARE(only(spec).activations, 4 * (2 * dropped + 12 * 8 + 12 * 8 + 2 * 8 + 10 * 8 + 1));
  }

  void padded_rows_are_kept_where_logits_are_computed_of_them() {
    const auto bytes_of_classes = [](VocabularyPadding padding, std::int64_t ranks) {
      std::int64_t kept = 0;
      for (const std::int64_t multiple : {1, 8}) {
        RunSpec spec = gpt(2, 8, 4, 10);
        spec.model.vocabulary_padding = padding;
        spec.model.vocabulary_multiple = multiple;
        spec.parallel.tensor = ranks;
        kept = only(spec).activations - kept;
      }
      return kept;
    };
    const std::int64_t row = 8 * 4;                                       // of the table's gradient
    QCOMPARE(bytes_of_classes(VocabularyPadding::megatron, 1), 6 * row);  // 16 rows
    QCOMPARE(bytes_of_classes(VocabularyPadding::fixed, 1), 0);           // left out of the softmax
    QCOMPARE(bytes_of_classes(VocabularyPadding::megatron, 2), 3 * row);  // 16 rows, 8 on each
    QCOMPARE(bytes_of_classes(VocabularyPadding::fixed, 2), 3 * row);
  }

  void dense_layers_keep_what_their_activation_needs() {
    RunSpec spec;
    spec.model.kind = ModelKind::mlp;
    spec.model.hidden = {5, 7};
    spec.model.outputs = 2;
    spec.accumulation.micro_batch = 3;
    QCOMPARE(only(spec).activations, 4 * (3 * (5 + 7 + 2) + 2));
    spec.model.activation = Activation::gelu;
    QCOMPARE(only(spec).activations, 4 * (3 * (2 * (5 + 7) + 2) + 2));
  }

  void recomputation_keeps_inputs_instead_of_blocks() {
    RunSpec spec = gpt(6, 8, 4, 10);
    const std::int64_t ends = 4 * (12 * 8 + 2 * 8 + 10 * 8 + 1), input = 4 * 12 * 8;
    const std::int64_t block = (only(spec).activations - ends) / 6;
    const auto kept = [&](RecomputeMethod method, std::int64_t layers) {
      spec.parallel.recompute = RecomputeKind::full;
      spec.parallel.recompute_method = method;
      spec.parallel.recompute_layers = layers;
      return only(spec).activations - ends;
    };
    QCOMPARE(kept(RecomputeMethod::uniform, 1), 6 * input);
    QCOMPARE(kept(RecomputeMethod::uniform, 4), 2 * input);  // groups of 4 and 2
    QCOMPARE(kept(RecomputeMethod::block, 2), 2 * input + 4 * block);
    QCOMPARE(kept(RecomputeMethod::block, 6), 6 * input);
    // Two tensor ranks keep half of each input; ids and masks of the embedding come to it, half a block is each's.
    spec.parallel.tensor = 2;
    spec.parallel.recompute_layers = 1;
    spec.parallel.recompute_method = RecomputeMethod::uniform;
    const std::int64_t whole = only(spec).activations;
    spec.parallel.distribute_saved_activations = true;
    QCOMPARE(whole - only(spec).activations, 6 * input / 2);
  }

  void selective_recomputation_keeps_no_attention_weights() {
    RunSpec spec = gpt(6, 8, 4, 10);
    const std::int64_t fused = only(spec).activations;
    spec.model.dropout = 0.1;
    const std::int64_t dropped = only(spec).activations;
    spec.parallel.recompute = RecomputeKind::selective;
    const std::int64_t weights = 4 * 12 * 3 * 2 * 4, generator = 5056;  // whose state is kept to draw the same again
    QCOMPARE(dropped - only(spec).activations, 6 * (weights - generator));
    spec.model.dropout = 0;  // the fused attention keeps none
    QCOMPARE(only(spec).activations, fused);
  }

  void recomputation_sends_what_forwards_send_again() {
    RunSpec spec = gpt(4, 8, 4, 10);
    spec.parallel.tensor = 2;
    const std::int64_t activation = 12 * 8 * 4, steps = 4, once = only(spec).sent(Axis::tensor);
    spec.parallel.recompute = RecomputeKind::full;
    QCOMPARE(only(spec).sent(Axis::tensor) - once, steps * 4 * 2 * activation);  // two sums a block: 2 (t - 1) / t each
    spec.parallel.distribute_saved_activations = true;
    QCOMPARE(only(spec).sent(Axis::tensor) - once, steps * 4 * (2 * activation + activation / 2));
    spec.parallel.distribute_saved_activations = false;
    spec.parallel.recompute_method = RecomputeMethod::block;
    QCOMPARE(only(spec).sent(Axis::tensor) - once, steps * 2 * activation);
  }

  void parameters_of_a_stage_are_the_published_ones() {
    // gpt2-large at t = 2 and p = 2, as Accelerate's guide counts its stages.
    RunSpec spec = gpt(36, 1280, 1024, 50432);
    spec.model.heads = 20;
    spec.parallel.tensor = spec.parallel.pipeline = 2;
    const auto costs = stage_costs(spec);
    QCOMPARE(costs.at(0).parameters, std::int64_t{4} * 210753280);
    QCOMPARE(costs.at(1).parameters, std::int64_t{4} * 209445120);
  }

  /// Of bfloat16 the published 6 + 12 / d bytes a parameter. Megatron-LM's 4 + 16 / d of float16 have a second gradient
  /// in float32, which an update here does not make; its 8 + 8 / d of float32 have no packed copy of a rank's share.
  void zero_shares_masters_and_moments_data() {
    QTest::addColumn<Dtype>("dtype");
    QTest::addColumn<AccumulationDtype>("sums");
    QTest::addColumn<int>("whole");
    QTest::addColumn<int>("shared");
    QTest::addColumn<double>("eight");  // on 8 replicas
    QTest::newRow("float16") << Dtype::float16 << AccumulationDtype::parameter << 4 << 12 << 5.5;
    QTest::newRow("bfloat16, sums in float32") << Dtype::bfloat16 << AccumulationDtype::float32 << 6 << 12 << 7.5;
    QTest::newRow("float32") << Dtype::float32 << AccumulationDtype::parameter << 8 << 12 << 9.5;
  }
  void zero_shares_masters_and_moments() {
    QFETCH(Dtype, dtype);
    QFETCH(AccumulationDtype, sums);
    QFETCH(int, whole);
    QFETCH(int, shared);
    QFETCH(double, eight);
    RunSpec spec = gpt(4, 64, 16, 64);
    spec.model.dtype = dtype;
    spec.accumulation.knobs.accumulation_dtype = sums;
    spec.parallel.zero = 1;
    // All shapes are multiples of 16: 4 (12 D^2 + 13 D) + (V + T + 2) D.
    const std::int64_t parameters = 4 * (12 * 64 * 64 + 13 * 64) + (64 + 16 + 2) * 64;
    double bytes = 0;
    for (const std::int64_t d : {1, 2, 4, 8}) {
      spec.parallel.data = d;
      const RankCost cost = only(spec);
      QCOMPARE(cost.parameters + cost.gradients, parameters * whole);
      QCOMPARE(cost.optimizer * d, parameters * shared);
      bytes = static_cast<double>(cost.parameters + cost.gradients + cost.optimizer) / static_cast<double>(parameters);
    }
    QCOMPARE(bytes, eight);
  }

  void tensor_ranks_exchange_four_activations_a_block() {
    const auto sent_by_blocks = [](bool sequence) {
      RunSpec four = gpt(4, 8, 4, 12), two = gpt(2, 8, 4, 12);
      std::int64_t sent = 0;
      for (RunSpec* spec : {&four, &two}) {
        spec->model.heads = 4;
        spec->parallel.tensor = 4;
        spec->parallel.sequence = sequence;
        sent = only(*spec).sent(Axis::tensor) - sent;
      }
      return -sent;
    };
    const std::int64_t activation = 12 * 8 * 4, blocks = 2 * 4;  // bytes; 2 blocks more in 4 micro-steps
    QCOMPARE(sent_by_blocks(false), blocks * 8 * activation * 3 / 4);
    // Two gathers again, and 6 sums of the norms and row-parallel biases at the boundary.
    QCOMPARE(sent_by_blocks(true), blocks * 10 * activation * 3 / 4 + 2 * (2 * 6 * 8 * 4) * 3 / 4);
  }

  void stages_send_an_activation_each_way() {
    RunSpec spec = gpt(4, 8, 4, 10);
    spec.parallel.pipeline = 4;
    const auto costs = stage_costs(spec);
    const std::int64_t once = 4 * 12 * 8 * 4;  // a direction, in 4 micro-steps
    const std::int64_t words = 3 * 8 * (3 + 16);
    QCOMPARE(costs.at(0).sent(Axis::pipeline), once + words);
    QCOMPARE(costs.at(1).sent(Axis::pipeline), 2 * once + words);
    QCOMPARE(costs.at(3).sent(Axis::pipeline), once + words);
    QCOMPARE(costs.at(0).sent(Axis::embedding), 10 * 8 * 4);  // of two ranks, each sends what it has once
    QCOMPARE(costs.at(1).sent(Axis::embedding), 0);
    spec.parallel.data = 2;
    spec.parallel.zero = 1;  // of what each of two replicas owns
    QCOMPARE(stage_costs(spec).at(0).sent(Axis::embedding), 10 * 8 * 4 / 2);
  }

  void gradients_are_sent_twice_less_a_share() {
    RunSpec spec = gpt(4, 64, 16, 64);
    spec.parallel.data = 4;
    const std::int64_t bytes = only(spec).gradients, words = 3 * 8 * 16;
    QCOMPARE(only(spec).sent(Axis::data), 2 * bytes * 3 / 4 + words);
    spec.accumulation.knobs.reduce_when = ReduceWhen::every_micro_step;
    QCOMPARE(only(spec).sent(Axis::data), 4 * 2 * bytes * 3 / 4 + words);
    spec.accumulation.knobs.reduce_when = ReduceWhen::never;
    QCOMPARE(only(spec).sent(Axis::data), words);
    spec.accumulation.knobs.reduce_when.reset();
    spec.parallel.zero = 1;  // scattered and gathered; a flag for each of 4 x 12 + 4 parameters; the norm's words
    QCOMPARE(only(spec).sent(Axis::data), 2 * bytes * 3 / 4 + 2 * 4 * 52 * 3 / 4 + words + 3 * 8 * 3);
  }

  void a_stage_keeps_as_many_micro_steps_as_stages_follow() {
    RunSpec spec = gpt(4, 8, 4, 10);
    spec.parallel.pipeline = 4;
    spec.accumulation.steps = 8;
    const auto costs = stage_costs(spec);
    const std::int64_t block = 4 * 12 * (2 * 8 + 2 * 2 + 8 * 8 + 2), input = 4 * 12 * 8;
    for (std::int64_t stage = 0; stage < 3; ++stage) {
      QCOMPARE(costs.at(static_cast<std::size_t>(stage)).chunks_in_flight, 4 - stage);
      QCOMPARE(costs.at(static_cast<std::size_t>(stage)).activations, (4 - stage) * (block + input));
    }
    QCOMPARE(costs.at(3).activations, block + input + 4 * (2 * 8 + 10 * 8 + 1));
  }

  void ranks_of_a_stage_are_alike_in_the_order_of_the_grid() {
    RunSpec spec = gpt(4, 8, 4, 10);
    spec.parallel = {.data = 2, .tensor = 2, .pipeline = 2};
    const auto stages = stage_costs(spec), ranks = rank_costs(spec);
    QCOMPARE(ranks.size(), 8U);
    const RankGrid grid = make_grid(spec);
    for (std::int64_t rank = 0; rank < grid.world(); ++rank)
      QVERIFY(ranks[static_cast<std::size_t>(rank)] ==
              stages[static_cast<std::size_t>(grid.coordinate(rank).pipeline)]);
    QVERIFY(!(stages[0] == stages[1]));
  }

  void a_model_that_cannot_be_divided_has_no_costs() {
    RunSpec spec = gpt(3, 8, 4, 10);
    spec.parallel.pipeline = 2;
    QVERIFY(stage_costs(spec).empty());
    QVERIFY(rank_costs(spec).empty());
  }

  void axes_with_equal_groups_share_the_first_of_their_names() {
    constexpr Axis in_order[] = {Axis::data,  Axis::tensor,    Axis::pipeline,          Axis::model,
                                 Axis::world, Axis::embedding, Axis::position_embedding};
    for (std::int64_t cells = 0; cells < 256; ++cells) {
      RankGrid grid{.data = 1 + cells % 4, .pipeline = 1 + cells / 4 % 4, .tensor = 1 + cells / 16 % 4};
      grid.split = std::min(cells / 64, grid.pipeline - 1);
      for (const Axis axis : in_order) {
        if (grid.size(axis) == 1) continue;
        Axis carrier = axis;
        for (const Axis other : in_order)
          if (grid.groups(other) == grid.groups(axis)) {
            carrier = other;
            break;
          }
        QCOMPARE(carrier_of(axis, grid), carrier);
      }
    }
  }
};

ACCRUE_TEST_MAIN(TestRankCost)

}  // namespace test_rank_cost
#include "test_rank_cost.moc"

// SPDX-License-Identifier: Apache-2.0
// Blocks and attention that backward computes again: the same bits, and less memory in between.
#include <ATen/ATen.h>

#include <QTest>

#include "accrue/parallel/random_streams.h"
#include "accrue/parallel/recompute.h"
#include "models/buffer_pool.h"
#include "models/gpt_model.h"
#include "support/live_bytes.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_recompute {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::LiveBytes;
using accrue::test::Rows;

namespace {

constexpr std::int64_t sequences = 2, positions = 32, width = 32, heads = 4;

ModelSpec spec_of(std::int64_t layers, double dropout, Dtype dtype = Dtype::float32) {
  return {.kind = ModelKind::gpt,
          .dtype = dtype,
          .layers = layers,
          .width = width,
          .heads = heads,
          .context = positions,
          .vocabulary = 32,
          .dropout = dropout};
}

ParallelSpec full(RecomputeMethod method, std::int64_t layers) {
  return {.recompute = RecomputeKind::full, .recompute_method = method, .recompute_layers = layers};
}

const ParallelSpec none, selective{.recompute = RecomputeKind::selective};

std::shared_ptr<GptModel> model_of(const ModelSpec& spec, const ParallelSpec& parallel) {
  return std::dynamic_pointer_cast<GptModel>(make_model_part(spec, 3, {}, {}, parallel));
}

Batch batch_of() {
  at::manual_seed(5);
  return {at::randint(32, {sequences, positions}, at::kLong), at::randint(32, {sequences, positions}, at::kLong),
          sequences, sequences * positions};
}

/// Loss and gradients of two micro-steps whose forwards both come first, as on a pipeline.
std::vector<at::Tensor> trained(GptModel& model) {
  const Batch batch = batch_of();
  std::vector<at::Tensor> losses;
  for (const std::uint64_t key : {7, 8}) {
    at::manual_seed(key);
    losses.push_back(model.whole_loss(batch).sum);
  }
  std::vector<at::Tensor> all;
  for (const at::Tensor& loss : losses) {
    loss.backward();
    all.push_back(loss.detach());
  }
  for (const at::Tensor& parameter : model.parameters()) all.push_back(parameter.grad());
  all.push_back(at::rand({4}));  // shows the generator's state afterwards
  return all;
}

struct Kept {
  std::int64_t tensors;  ///< bytes that a forward leaves behind for backward
  std::int64_t most;     ///< bytes at once in forward and backward
};

Kept kept_by(std::int64_t layers, double dropout, const ParallelSpec& parallel) {
  const auto model = model_of(spec_of(layers, dropout), parallel);
  const Batch batch = batch_of();
  model->whole_loss(batch).sum.backward();  // gradients are there now, and stay
  LiveBytes live;
  const at::Tensor outputs = model->forward(batch, {});
  Kept kept{live.now(), 0};
  model->loss(outputs, batch).sum.backward();
  kept.most = live.most();
  return kept;
}

/// Measures the difference that one more block makes.
Kept kept_by_a_block(double dropout, const ParallelSpec& parallel) {
  const Kept few = kept_by(4, dropout, parallel), many = kept_by(12, dropout, parallel);
  return {(many.tensors - few.tensors) / 8, (many.most - few.most) / 8};
}

/// Of one activation [B, T, D].
constexpr std::int64_t input_bytes = sequences * positions * width * 4;
/// Of the attention's weights, [B, H, T, T].
constexpr std::int64_t weight_bytes = sequences * heads * positions * positions * 4;

/// Of what a generator is set back to.
std::int64_t generator_bytes() {
  return at::detail::getDefaultCPUGenerator().get_state().numel();
}

}  // namespace

class TestRecompute : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { at::set_num_threads(1); }  // tensors this small are not worth waking a thread

  /// First, while the pool has mapped nothing: it never gives memory back.
  void the_fused_blocks_need_less_memory_at_once() {
    constexpr std::int64_t layers = 12;
    (void)kept_by(layers, 0.0, full(RecomputeMethod::uniform, 1));
    const std::int64_t recomputed = activation_pool().mapped_bytes();
    (void)kept_by(layers, 0.0, none);
    // A block keeps ten activations for backward, or one.
    QVERIFY(activation_pool().mapped_bytes() - recomputed > (layers - 2) * 9 * input_bytes);
  }

  void what_is_recomputed_has_the_same_bits_data() {
    const Rows<ParallelSpec> row;
    row("attention", selective);
    row("each block", full(RecomputeMethod::uniform, 1));
    row("two blocks at a time", full(RecomputeMethod::uniform, 2));
    row("blocks that the number at a time does not divide", full(RecomputeMethod::uniform, 3));
    row("the first block", full(RecomputeMethod::block, 1));
    row("the first two blocks", full(RecomputeMethod::block, 2));
  }
  void what_is_recomputed_has_the_same_bits() {
    const auto [parallel] = current_row<ParallelSpec>();
    for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16})
      for (const double dropout : {0.0, 0.1})
        for (const bool plain : {false, true}) {
          const auto usual = model_of(spec_of(4, dropout, dtype), none);
          const auto again = model_of(spec_of(4, dropout, dtype), parallel);
          usual->use_plain_operators(plain);
          again->use_plain_operators(plain);
          const auto expected = trained(*usual), found = trained(*again);
          QCOMPARE(found.size(), expected.size());
          for (std::size_t i = 0; i < found.size(); ++i) QVERIFY(at::equal(found[i], expected[i]));
          if (dropout > 0.0) QVERIFY(!at::equal(found[0], found[1]));
        }
  }

  void a_recomputed_block_keeps_its_input() {
    const ParallelSpec one = full(RecomputeMethod::uniform, 1), four = full(RecomputeMethod::uniform, 4);
    const std::int64_t usual = kept_by_a_block(0.0, none).tensors;
    QVERIFY2(usual >= 10 * input_bytes && usual < 11 * input_bytes, qPrintable(QString::number(usual)));
    QCOMPARE(kept_by_a_block(0.0, one).tensors, input_bytes);
    QCOMPARE(kept_by_a_block(0.0, four).tensors, input_bytes / 4);
    // With dropout, plain operators, and what the generator is set back to.
    const Kept drawn = kept_by_a_block(0.1, one);
    QCOMPARE(drawn.tensors, input_bytes + generator_bytes());
    QCOMPARE(drawn.most, input_bytes + generator_bytes());
    QVERIFY(kept_by_a_block(0.1, none).most > 10 * input_bytes + 3 * weight_bytes);
  }

  void recomputed_attention_keeps_no_weights() {
    const Kept usual = kept_by_a_block(0.1, none), again = kept_by_a_block(0.1, selective);
    constexpr std::int64_t saved = 3 * weight_bytes;  // softmax, mask and their product
    QVERIFY(usual.tensors - again.tensors >= saved - generator_bytes());
    QVERIFY(usual.most - again.most >= saved - generator_bytes());
  }

  void an_evaluation_before_backward_changes_nothing() {
    const Batch batch = batch_of();
    const auto gradients = [&](const ParallelSpec& parallel) {
      const auto model = model_of(spec_of(2, 0.1), parallel);
      at::manual_seed(7);
      const at::Tensor loss = model->whole_loss(batch).sum;
      model->eval();
      loss.backward();
      return model->parameters().front().grad();
    };
    const at::Tensor expected = gradients(none);
    QVERIFY(at::equal(gradients(full(RecomputeMethod::uniform, 1)), expected));
    QVERIFY(at::equal(gradients(selective), expected));
  }

  void a_graph_keeps_the_model_that_it_runs_again() {
    const Batch batch = batch_of();
    const auto model_and_loss = [&] {
      auto model = model_of(spec_of(2, 0.0), full(RecomputeMethod::uniform, 1));
      return std::pair(model, model->whole_loss(batch).sum);
    };
    auto [model, loss] = model_and_loss();
    const auto [alike, its_loss] = model_and_loss();
    its_loss.backward();
    const std::vector<at::Tensor> parameters = model->parameters();
    const std::weak_ptr<GptModel> seen = model;
    model.reset();
    QVERIFY(!seen.expired());
    loss.backward();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      QVERIFY(at::equal(parameters[i].grad(), alike->parameters()[i].grad()));
    loss.reset();
    QVERIFY(seen.expired());
  }

  void without_a_graph_the_function_runs_once() {
    int runs = 0;
    const auto counted = [&](const at::Tensor& x) {
      ++runs;
      return x * 2;
    };
    const at::Tensor x = at::ones({3}).set_requires_grad(true);
    {
      const at::NoGradGuard no_grad;
      QVERIFY(!recomputed(counted, x).requires_grad());
    }
    QCOMPARE(runs, 1);
    recomputed(counted, x).sum().backward();
    QCOMPARE(runs, 3);
    QVERIFY(at::equal(x.grad(), at::full({3}, 2.0)));
  }

  void parameters_learn_where_the_input_has_no_gradient() {
    const at::Tensor weight = at::ones({3}).set_requires_grad(true), x = at::full({3}, 5.0);
    recomputed([&](const at::Tensor& in) { return in * weight; }, x).sum().backward();
    QVERIFY(at::equal(weight.grad(), x));
  }

  void every_stream_draws_again_what_it_drew() {
    const at::Device cpu(at::kCPU);
    random_streams().seed(tensor_stream, cpu, 1);
    const auto drawn = [&] {
      const at::Tensor standard = at::rand({5});
      const auto stream = random_streams().fork(tensor_stream, cpu);
      return at::stack({standard, at::rand({5})});
    };
    const auto state = random_streams().state(cpu);
    const at::Tensor first = drawn();
    at::Tensor again;
    {
      const RandomStreams::Replay replay(state);
      again = drawn();
    }
    const at::Tensor next = drawn();
    {
      const RandomStreams::Replay replay(state);
      (void)drawn();
      QVERIFY(at::equal(drawn(), next));
    }
    QVERIFY(at::equal(first, again));
    QVERIFY(!at::equal(first, next));
  }
};

ACCRUE_TEST_MAIN(TestRecompute)

}  // namespace test_recompute
#include "test_recompute.moc"

// SPDX-License-Identifier: Apache-2.0
// The fused GPT against plain operators and against finite differences, and its memory at rest.
#include <ATen/ATen.h>

#include <QScopeGuard>
#include <QTest>
#include <algorithm>
#include <vector>

#include "models/buffer_pool.h"
#include "models/fused_blocks.h"
#include "models/gpt_model.h"
#include "models/lent_threads.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_gpt_fused {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

struct Shape {
  std::int64_t rows, length, width, heads, vocabulary;
};

ModelSpec spec_of(const Shape& shape, Dtype dtype) {
  return {.kind = ModelKind::gpt,
          .dtype = dtype,
          .layers = 2,
          .width = shape.width,
          .heads = shape.heads,
          .context = shape.length,
          .vocabulary = shape.vocabulary};
}

std::shared_ptr<GptModel> model_of(const Shape& shape, Dtype dtype) {
  const auto model = std::dynamic_pointer_cast<GptModel>(make_model(spec_of(shape, dtype), 3));
  // Away from the start, where norms are one and biases zero and a mistake in them would not show.
  const at::NoGradGuard no_grad;
  at::manual_seed(4);
  for (at::Tensor& parameter : model->parameters()) parameter.add_(at::randn_like(parameter), 0.1);
  return model;
}

Batch batch_of(const Shape& shape) {
  at::manual_seed(5);
  Batch batch{at::randint(shape.vocabulary, {shape.rows, shape.length}, at::kLong),
              at::randint(shape.vocabulary, {shape.rows, shape.length}, at::kLong), shape.rows,
              shape.rows * shape.length};
  batch.targets[0][0] = -100;
  return batch;
}

double backward(GptModel& model, const Batch& batch, bool plain) {
  model.zero_grad();
  model.use_plain_operators(plain);
  const auto loss = model.whole_loss(batch);
  loss.sum.backward();
  return loss.sum.item<double>();
}

/// Largest difference relative to the larger tensor's own size.
double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max().clamp_min(1e-12)).item<double>();
}

/// Central differences of f with respect to every number of x.
template <typename F>
at::Tensor numeric_gradient(at::Tensor x, const F& f) {
  const at::NoGradGuard no_grad;
  constexpr double step = 1e-6;
  at::Tensor gradient = at::zeros_like(x);
  double* const numbers = x.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const double before = numbers[i];
    numbers[i] = before + step;
    const double above = f();
    numbers[i] = before - step;
    const double below = f();
    numbers[i] = before;
    gradient.mutable_data_ptr<double>()[i] = (above - below) / (2 * step);
  }
  return gradient;
}

}  // namespace

class TestGptFused : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void equals_plain_operators_data() {
    const Rows<int, int, int, int, int> row;
    row("whole tiles", 2, 96, 64, 2, 64);
    row("one position", 3, 1, 16, 2, 11);
    row("odd everything", 3, 37, 30, 3, 29);
    row("head of one number", 1, 7, 4, 4, 5);
    row("longer than a panel", 1, 203, 48, 2, 17);
    row("the reference head", 1, 256, 128, 2, 256);
  }
  void equals_plain_operators() {
    const auto [rows, length, width, heads, vocabulary] = current_row<int, int, int, int, int>();
    const Shape shape{rows, length, width, heads, vocabulary};
    for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
      const double tolerance = dtype == Dtype::float32 ? 1e-5 : 1e-12;
      const auto fused = model_of(shape, dtype), plain = model_of(shape, dtype);
      const double ours = backward(*fused, batch_of(shape), false), theirs = backward(*plain, batch_of(shape), true);
      QVERIFY2(std::abs(ours / theirs - 1.0) < tolerance, qPrintable(QString::number(ours / theirs - 1.0)));
      const auto named = fused->named_parameters(), expected = plain->named_parameters();
      for (std::size_t i = 0; i < named.size(); ++i) {
        const double apart = difference(named[i].value().grad(), expected[i].value().grad());
        QVERIFY2(apart < tolerance, qPrintable(QString("%1: %2").arg(named[i].key().c_str()).arg(apart)));
      }
    }
  }

  void gradients_are_those_of_finite_differences() {
    const Shape shape{2, 5, 6, 2, 7};
    const auto model = model_of(shape, Dtype::float64);
    const Batch batch = batch_of(shape);
    backward(*model, batch, false);
    for (const auto& named : model->named_parameters()) {
      const at::Tensor numeric =
          numeric_gradient(named.value().detach(), [&] { return model->whole_loss(batch).sum.item<double>(); });
      const double apart = difference(named.value().grad(), numeric);
      QVERIFY2(apart < 1e-6, qPrintable(QString("%1: %2").arg(named.key().c_str()).arg(apart)));
    }
  }

  void the_loss_may_be_divided_before_backward() {
    const Shape shape{2, 9, 16, 2, 13};
    const auto whole = model_of(shape, Dtype::float64), divided = model_of(shape, Dtype::float64);
    backward(*whole, batch_of(shape), false);
    (divided->whole_loss(batch_of(shape)).sum / 8).backward();
    for (std::size_t i = 0; i < whole->parameters().size(); ++i) {
      QVERIFY(difference(divided->parameters()[i].grad() * 8, whole->parameters()[i].grad()) < 1e-13);
    }
  }

  void gradients_add_up_over_micro_steps() {
    const Shape shape{2, 9, 16, 2, 13};
    const auto model = model_of(shape, Dtype::float32);
    backward(*model, batch_of(shape), false);
    std::vector<at::Tensor> once;
    for (const at::Tensor& parameter : model->parameters()) once.push_back(parameter.grad().clone());
    model->whole_loss(batch_of(shape)).sum.backward();
    for (std::size_t i = 0; i < once.size(); ++i) {
      QVERIFY(difference(model->parameters()[i].grad(), once[i] * 2) < 1e-6);
    }
  }

  void the_same_step_twice_gives_the_same_bits() {
    const Shape shape{3, 65, 48, 3, 50};
    const auto one = model_of(shape, Dtype::float32), two = model_of(shape, Dtype::float32);
    QCOMPARE(backward(*one, batch_of(shape), false), backward(*two, batch_of(shape), false));
    for (std::size_t i = 0; i < one->parameters().size(); ++i) {
      QVERIFY(at::equal(one->parameters()[i].grad(), two->parameters()[i].grad()));
    }
  }

  /// A pipeline's stages compute on more threads where others lend theirs, and end at the same weights.
  void lent_threads_change_no_bit_data() {
    const Rows<int, int, int, int, int> row;
    row("products in pieces", 4, 256, 384, 6, 256);
    row("many tokens, a narrow model", 16, 256, 32, 2, 64);
    row("odd everything", 5, 131, 90, 3, 101);
  }
  void lent_threads_change_no_bit() {
    const auto [rows, length, width, heads, vocabulary] = current_row<int, int, int, int, int>();
    const Shape shape{rows, length, width, heads, vocabulary};
    const int had = at::get_num_threads();
    at::set_num_threads(1);
    const auto restore = qScopeGuard([had] { at::set_num_threads(had); });
    const auto model = model_of(shape, Dtype::float32);
    const double loss = backward(*model, batch_of(shape), false);
    std::vector<at::Tensor> expected;
    for (const at::Tensor& parameter : model->parameters()) expected.push_back(parameter.grad().clone());
    for (const int threads : {2, 3, 4}) {
      const ThreadLoan loan(threads);
      QCOMPARE(backward(*model, batch_of(shape), false), loss);
      const auto named = model->named_parameters();
      for (std::size_t i = 0; i < named.size(); ++i)
        QVERIFY2(at::equal(named[i].value().grad(), expected[i]),
                 qPrintable(QString("%1, %2 threads").arg(named[i].key().c_str()).arg(threads)));
    }
  }

  void without_gradients_only_the_loss_is_made() {
    const Shape shape{2, 9, 16, 2, 13};
    const auto model = model_of(shape, Dtype::float32);
    const double with = model->whole_loss(batch_of(shape)).sum.item<double>();
    const at::NoGradGuard no_grad;
    const auto loss = model->whole_loss(batch_of(shape));
    QCOMPARE(loss.sum.item<double>(), with);
    QVERIFY(!loss.sum.requires_grad());
  }

  void extreme_scores_stay_finite() {
    const Shape shape{1, 40, 16, 2, 13};
    const auto model = model_of(shape, Dtype::float32);
    {
      const at::NoGradGuard no_grad;
      model->named_parameters()["blocks.0.attention.qkv.weight"].mul_(1e4);
    }
    const double loss = backward(*model, batch_of(shape), false);
    QVERIFY(std::isfinite(loss));
    for (const at::Tensor& parameter : model->parameters()) QVERIFY(at::isfinite(parameter.grad()).all().item<bool>());
  }

  void not_a_number_comes_through() {
    const Shape shape{1, 8, 16, 2, 13};
    const auto model = model_of(shape, Dtype::float32);
    {
      const at::NoGradGuard no_grad;
      model->named_parameters()["blocks.1.mlp.up.bias"][3] = std::numeric_limits<float>::quiet_NaN();
    }
    QVERIFY(std::isnan(backward(*model, batch_of(shape), false)));
  }

  void an_empty_micro_step_counts_nothing() {
    const Shape shape{2, 9, 16, 2, 13};
    const auto model = model_of(shape, Dtype::float32);
    const auto loss = model->whole_loss({at::empty({0, 9}, at::kLong), at::empty({0, 9}, at::kLong), 0, 0});
    QCOMPARE(loss.count, std::int64_t{0});
    QCOMPARE(loss.sum.item<double>(), 0.0);
    loss.sum.backward();
  }

  void labels_outside_the_vocabulary_are_refused() {
    const Shape shape{2, 9, 16, 2, 13};
    const auto model = model_of(shape, Dtype::float32);
    Batch batch = batch_of(shape);
    batch.targets[1][2] = 13;
    QVERIFY_EXCEPTION_THROWN(model->whole_loss(batch), std::invalid_argument);
  }

  void memory_stops_growing_after_three_steps() {
    const Shape shape{2, 64, 64, 4, 64};
    const auto model = model_of(shape, Dtype::float32);
    for (int step = 0; step < 3; ++step) model->whole_loss(batch_of(shape)).sum.backward();
    const auto mappings = activation_pool().mappings();
    const auto bytes = activation_pool().mapped_bytes();
    QVERIFY(mappings > 0);
    for (int step = 0; step < 10; ++step) model->whole_loss(batch_of(shape)).sum.backward();
    QCOMPARE(activation_pool().mappings(), mappings);
    QCOMPARE(activation_pool().mapped_bytes(), bytes);
  }

  void pooled_memory_is_used_again() {
    BufferPool pool;
    void* first = nullptr;
    {
      const at::Tensor tensor = pool.take({1000, 100}, at::kFloat);
      QCOMPARE(tensor.sizes().vec(), (std::vector<std::int64_t>{1000, 100}));
      first = tensor.data_ptr();
      const at::Tensor other = pool.take({1000, 100}, at::kFloat);
      QVERIFY(other.data_ptr() != first);
      const at::Tensor kept = tensor.view({-1});  // a view keeps the memory in use
    }
    QCOMPARE(pool.mappings(), std::int64_t{2});
    const at::Tensor again = pool.take({100, 900}, at::kFloat), third = pool.take({100, 1000}, at::kFloat);
    QCOMPARE(pool.mappings(), std::int64_t{2});
    const at::Tensor small = pool.take({3}, at::kFloat);  // too small for a block that size
    QCOMPARE(pool.mappings(), std::int64_t{3});
  }
};

ACCRUE_TEST_MAIN(TestGptFused)

}  // namespace test_gpt_fused
#include "test_gpt_fused.moc"

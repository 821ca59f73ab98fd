// SPDX-License-Identifier: Apache-2.0
// Layers that are divided over a tensor axis, by 1, 2 and 4 ranks as processes, against the undivided layer: outputs,
// input gradients and weight gradients, with and without sequence parallelism, over shared memory and Gloo.
#include <ATen/ATen.h>

#include <QTest>

#include "accrue/parallel/tensor_layers.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"
#include "support/refusals.h"

namespace test_tensor_parallel {

using namespace accrue;
using namespace accrue::test;

namespace {

const auto in_double = at::TensorOptions(at::kDouble);

at::Tensor numbers(at::IntArrayRef sizes, std::int64_t seed) {
  at::manual_seed(static_cast<std::uint64_t>(seed));
  return at::randn(sizes, in_double);
}

at::Tensor leaf(const at::Tensor& x) {
  return x.clone().set_requires_grad(true);
}

at::Tensor part(const at::Tensor& whole, std::int64_t dim, const TensorAxis& axis) {
  const std::int64_t size = whole.size(dim) / axis.size();
  return whole.narrow(dim, axis.rank() * size, size).contiguous();
}

bool close(const at::Tensor& a, const at::Tensor& b) {
  const double tolerance = a.scalar_type() == at::kDouble ? 1e-12 : 1e-6;
  return at::allclose(a.to(at::kDouble), b.to(at::kDouble), tolerance, tolerance);
}

/// rank + 1 of every rank, summed.
std::int64_t sum_of_ranks(const TensorAxis& axis) {
  return axis.size() * (axis.size() + 1) / 2;
}

/// Small whole numbers, so that sums are exact. The gradient of an operation's output is 1, 2, 3, ...
int every_pair(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const TensorAxis axis(*joined.data);
  const std::int64_t size = axis.size(), mine = axis.rank();
  const auto counted = [](at::IntArrayRef sizes) {
    return at::arange(1, 1 + c10::multiply_integers(sizes), in_double).view(sizes);
  };
  const auto gradient_of = [&](const at::Tensor& x, const at::Tensor& y) {
    y.backward(counted(y.sizes()));
    return x.grad();
  };
  const at::Tensor whole = counted({4 * size, 2 * size});
  {
    const at::Tensor x = leaf(whole), y = copy_to_tensor(x, axis);
    DEMAND(y.equal(whole));
    DEMAND(gradient_of(x, y).equal(whole * size));
  }
  {
    const at::Tensor x = leaf(whole * (mine + 1)), y = sum_from_tensor(x, axis);
    DEMAND(y.equal(whole * sum_of_ranks(axis)));
    DEMAND(gradient_of(x, y).equal(whole));
  }
  {
    const at::Tensor x = leaf(whole), y = scatter_last_dim(x, axis);
    DEMAND(y.equal(part(whole, 1, axis)));
    std::vector<at::Tensor> all(static_cast<std::size_t>(size), counted({4 * size, 2}));
    DEMAND(gradient_of(x, y).equal(at::cat(all, 1)));
  }
  {
    const at::Tensor x = leaf(part(whole, 1, axis)), y = gather_last_dim(x, axis);
    DEMAND(y.equal(whole));
    DEMAND(gradient_of(x, y).equal(part(whole, 1, axis)));
  }
  {
    const at::Tensor x = leaf(whole), y = scatter_rows(x, axis);
    DEMAND(y.equal(part(whole, 0, axis)));
    std::vector<at::Tensor> all(static_cast<std::size_t>(size), counted({4, 2 * size}));
    DEMAND(gradient_of(x, y).equal(at::cat(all, 0)));
  }
  {
    const at::Tensor x = leaf(part(whole, 0, axis)), y = gather_rows(x, axis, RowsAreUsedBy::divided_layer);
    DEMAND(y.equal(whole));
    DEMAND(gradient_of(x, y).equal(part(whole, 0, axis) * size));
  }
  {
    const at::Tensor x = leaf(part(whole, 0, axis)), y = gather_rows(x, axis, RowsAreUsedBy::every_rank);
    DEMAND(y.equal(whole));
    DEMAND(gradient_of(x, y).equal(part(whole, 0, axis)));
  }
  {
    const at::Tensor x = leaf(whole * (mine + 1)), y = sum_to_rows(x, axis);
    DEMAND(y.equal(part(whole, 0, axis) * sum_of_ranks(axis)));
    std::vector<at::Tensor> all(static_cast<std::size_t>(size), counted({4, 2 * size}));
    DEMAND(gradient_of(x, y).equal(at::cat(all, 0)));
  }
  if (size > 1) DEMAND(!refused([&] { (void)scatter_rows(at::ones({1 + size}), axis); }).empty());
  return 0;
}

/// A column-parallel layer, GELU, a row-parallel layer, on rows that are divided under sequence parallelism.
int column_and_row(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const TensorAxis axis(*joined.data, rank.arguments.at(1) == "sequence");
  constexpr std::int64_t length = 8, batch = 3, inputs = 5, hidden = 12, outputs = 7;
  const at::Tensor x = numbers({length, batch, inputs}, 1), dy = numbers({length, batch, outputs}, 2);

  at::manual_seed(3);
  ColumnParallelLinear column(inputs, hidden, axis);
  RowParallelLinear row(hidden, outputs, axis);
  column.to(at::kDouble);
  row.to(at::kDouble);
  at::manual_seed(3);
  const TensorAxis alone;
  ColumnParallelLinear whole_column(inputs, hidden, alone);
  RowParallelLinear whole_row(hidden, outputs, alone);
  whole_column.to(at::kDouble);
  whole_row.to(at::kDouble);

  const at::Tensor whole_x = leaf(x);
  const at::Tensor middle = at::linear(whole_x, whole_column.weight, whole_column.bias);
  const at::Tensor whole_y = at::linear(at::gelu(middle), whole_row.weight, whole_row.bias);
  whole_y.backward(dy);

  const bool sequence = axis.sequence();
  const at::Tensor own_x = leaf(sequence ? part(x, 0, axis) : x);
  const at::Tensor own_middle = column.forward(own_x);
  DEMAND(at::allclose(own_middle, part(middle, 2, axis), 0.0, 1e-14));
  const at::Tensor y = row.forward(at::gelu(own_middle));
  y.backward(sequence ? part(dy, 0, axis) : dy);

  DEMAND(close(y, sequence ? part(whole_y, 0, axis) : whole_y));
  DEMAND(close(own_x.grad(), sequence ? part(whole_x.grad(), 0, axis) : whole_x.grad()));
  DEMAND(close(column.weight.grad(), part(whole_column.weight.grad(), 0, axis)));
  DEMAND(close(column.bias.grad(), part(whole_column.bias.grad(), 0, axis)));
  DEMAND(close(row.weight.grad(), part(whole_row.weight.grad(), 1, axis)));
  at::Tensor bias_gradient = row.bias.grad().clone();
  if (sequence) axis.sum(bias_gradient);
  DEMAND(close(bias_gradient, whole_row.bias.grad()));

  if (axis.split()) {
    DEMAND(!refused([&] { ColumnParallelLinear(4, 1 + axis.size(), axis); }).empty());
    const TensorAxis by_rows(*joined.data, true);
    DEMAND(!refused([&] { ColumnParallelLinear(4, 8, by_rows, {.gather_output = true}); }).empty());
    DEMAND(!refused([&] { RowParallelLinear(8, 4, by_rows, {.input_is_parallel = false}); }).empty());
  }
  return 0;
}

/// Both layers between activations that are whole on every rank.
int whole_outside(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const TensorAxis axis(*joined.data);
  at::manual_seed(3);
  ColumnParallelLinear column(4, 8, axis, {.bias = false, .gather_output = true});
  RowParallelLinear row(8, 4, axis, {.bias = false, .input_is_parallel = false});
  at::manual_seed(3);
  ColumnParallelLinear whole_column(4, 8, TensorAxis(), {.bias = false});
  RowParallelLinear whole_row(8, 4, TensorAxis(), {.bias = false});
  for (torch::nn::Module* each : std::initializer_list<torch::nn::Module*>{&column, &row, &whole_column, &whole_row})
    each->to(at::kDouble);
  const at::Tensor own = leaf(numbers({6, 4}, 1)), whole = leaf(numbers({6, 4}, 1));
  const at::Tensor y = row.forward(column.forward(own)), expected = whole_row.forward(whole_column.forward(whole));
  DEMAND(close(y, expected));
  y.backward(numbers({6, 4}, 2));
  expected.backward(numbers({6, 4}, 2));
  DEMAND(close(own.grad(), whole.grad()));
  DEMAND(close(column.weight.grad(), part(whole_column.weight.grad(), 0, axis)));
  DEMAND(close(row.weight.grad(), part(whole_row.weight.grad(), 1, axis)));
  return 0;
}

int embedding(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const TensorAxis axis(*joined.data);
  at::manual_seed(3);
  VocabParallelEmbedding divided(16, 3, axis);
  at::manual_seed(3);
  const at::Tensor table = leaf(VocabParallelEmbedding(16, 3, TensorAxis()).weight.detach());
  const at::Tensor ids = at::tensor({0, 15, 3, 8, 8, 7, 4, 12}, at::kLong).view({2, 4});
  const at::Tensor y = divided.forward(ids), expected = at::embedding(table, ids);
  DEMAND(y.equal(expected));
  const at::Tensor dy = numbers({2, 4, 3}, 2).to(at::kFloat);
  y.backward(dy);
  expected.backward(dy);
  DEMAND(divided.weight.grad().equal(part(table.grad(), 0, axis)));
  return 0;
}

int cross_entropy(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const TensorAxis axis(*joined.data);
  constexpr std::int64_t classes = 16;
  const at::Tensor targets = at::tensor({0, 15, 3, 8, 5, 5}, at::kLong).view({2, 3});
  for (const auto& [type, smoothing] :
       {std::pair(at::kDouble, 0.0), {at::kDouble, 0.1}, {at::kFloat, 0.0}, {at::kFloat, 0.1}}) {
    const at::Tensor logits = (numbers({2, 3, classes}, 4) * 5).to(type);
    const at::Tensor whole = leaf(logits.to(at::kDouble)), own = leaf(part(logits, 2, axis));
    // By the definition: the target has 1 - s, every other class s / (K - 1).
    const at::Tensor shares = at::full({2, 3, classes}, smoothing / (classes - 1), in_double)
                                  .scatter(2, targets.unsqueeze(2), 1.0 - smoothing);
    const at::Tensor expected = -(shares * at::log_softmax(whole, 2)).sum(2);
    const at::Tensor loss = vocab_parallel_cross_entropy(own, targets, axis, smoothing);
    DEMAND(loss.scalar_type() == type && close(loss, expected));
    const at::Tensor gradient = numbers({2, 3}, 5).to(type);
    loss.backward(gradient);
    expected.backward(gradient.to(at::kDouble));
    DEMAND(own.grad().scalar_type() == type && close(own.grad(), part(whole.grad(), 2, axis)));
  }
  // A masked target is finite and leaves no gradient.
  const at::Tensor own = leaf(part(numbers({2, classes}, 6), 1, axis));
  const at::Tensor loss = vocab_parallel_cross_entropy(own, at::tensor({-100, -1}, at::kLong), axis);
  DEMAND(at::isfinite(loss).all().item<bool>());
  (loss * at::zeros({2}, in_double)).sum().backward();
  DEMAND(own.grad().count_nonzero().item<std::int64_t>() == 0);
  return 0;
}

/// 16 columns over the ranks, of which the first 9 or 3 are classes: as if there were no others.
int cross_entropy_of_padded_logits(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const TensorAxis axis(*joined.data);
  const at::Tensor targets = at::tensor({0, 2, 1, 1, 2, 0}, at::kLong).view({2, 3});
  for (const std::int64_t classes : {9, 3})
    for (const double smoothing : {0.0, 0.1}) {
      // A padded logit is the largest of all.
      const at::Tensor logits = at::cat({numbers({2, 3, classes}, 4) * 5, at::full({2, 3, 16 - classes}, 99.0)}, 2);
      const at::Tensor whole = leaf(logits), own = leaf(part(logits, 2, axis));
      const at::Tensor shares = at::full({2, 3, classes}, smoothing / static_cast<double>(classes - 1), in_double)
                                    .scatter(2, targets.unsqueeze(2), 1.0 - smoothing);
      const at::Tensor expected = -(shares * at::log_softmax(whole.narrow(2, 0, classes), 2)).sum(2);
      const at::Tensor loss = vocab_parallel_cross_entropy(own, targets, axis, smoothing, classes);
      DEMAND(close(loss, expected));
      const at::Tensor gradient = numbers({2, 3}, 5);
      loss.backward(gradient);
      expected.backward(gradient);
      DEMAND(close(own.grad(), part(whole.grad(), 2, axis)));
      DEMAND(own.equal(part(logits, 2, axis)));  // logits are read, not written
    }
  return 0;
}

/// Logits 0 to 7 over and over, 32 classes: log(4 sum exp(i)) - target mod 8. The logarithm is 8.844634.
int cross_entropy_by_hand(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const TensorAxis axis(*joined.data);
  const at::Tensor logits = at::arange(32, in_double).remainder(8).expand({16, 32});
  const at::Tensor targets = at::arange(0, 32, 2, at::kLong);
  const at::Tensor loss = vocab_parallel_cross_entropy(part(logits, 1, axis), targets, axis);
  for (std::int64_t row = 0; row < 16; ++row) {
    const double expected = 8.844634 - static_cast<double>(2 * row % 8);
    DEMAND(std::abs(loss[row].item<double>() - expected) < 1e-6);
  }
  return 0;
}

}  // namespace

class TestTensorParallel : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void by_any_number_of_ranks_data() {
    QTest::addColumn<QString>("body");
    QTest::addColumn<int>("world");
    QTest::addColumn<QString>("backend");
    QTest::addColumn<QString>("lies");
    for (const char* backend : {"shm", "gloo"})
      for (const int world : {1, 2, 4})
        for (const char* body : {"every_pair", "column_and_row", "column_and_row by rows", "whole_outside", "embedding",
                                 "cross_entropy", "cross_entropy_of_padded_logits", "cross_entropy_by_hand"}) {
          const QString text = body;
          QTest::addRow("%s, %d ranks, %s", body, world, backend)
              << text.section(' ', 0, 0) << world << backend << (text.endsWith("by rows") ? "sequence" : "whole");
        }
  }
  void by_any_number_of_ranks() {
    QFETCH(QString, body);
    QFETCH(int, world);
    QFETCH(QString, backend);
    QFETCH(QString, lies);
    RankGroup ranks(body.toStdString(), world, {.arguments = {backend.toStdString(), lies.toStdString()}});
    ACCRUE_ALL_RANKS_OK(ranks.finish(60s));
  }
};

ACCRUE_RANK_TEST_MAIN(TestTensorParallel, {{"every_pair", every_pair},
                                           {"column_and_row", column_and_row},
                                           {"whole_outside", whole_outside},
                                           {"embedding", embedding},
                                           {"cross_entropy", cross_entropy},
                                           {"cross_entropy_of_padded_logits", cross_entropy_of_padded_logits},
                                           {"cross_entropy_by_hand", cross_entropy_by_hand}})

}  // namespace test_tensor_parallel
#include "test_tensor_parallel.moc"

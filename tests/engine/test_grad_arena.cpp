// SPDX-License-Identifier: Apache-2.0
// The flat gradients and the order of buckets, in one process.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <QTest>

#include "parallel/bucket_reducer.h"
#include "parallel/grad_arena.h"
#include "support/test_program.h"

namespace test_grad_arena {

using namespace accrue;

namespace {

at::Tensor parameter(at::IntArrayRef shape) {
  return at::ones(shape, at::kDouble).requires_grad_(true);
}

GradArena arena_of(const std::vector<at::Tensor>& parameters) {
  std::vector<std::int64_t> numels;
  for (const auto& each : parameters) numels.push_back(each.numel());
  FlatLayout layout = flat_layout(numels, 8, 1 << 20);
  at::Tensor flat = at::zeros({layout.numel}, at::kDouble);
  return GradArena(parameters, std::move(layout), std::move(flat), {});
}

at::Tensor place(const GradArena& arena, std::size_t i) {
  return arena.flat().narrow(0, arena.layout().parameters[i].offset, arena.layout().parameters[i].size);
}

}  // namespace

class TestGradArena : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void backward_accumulates_into_the_flat_memory() {
    const std::vector<at::Tensor> parameters = {parameter({2, 3}), parameter({5})};
    GradArena arena = arena_of(parameters);
    for (int round = 1; round <= 3; ++round) {
      arena.expect(0);
      arena.expect(1);
      (parameters[0].sum() + 2 * parameters[1].sum()).backward();
      QCOMPARE(place(arena, 0).min().item<double>(), round);
      QCOMPARE(place(arena, 1).max().item<double>(), 2.0 * round);
      QCOMPARE(parameters[0].grad().data_ptr(), place(arena, 0).data_ptr());
    }
    QCOMPARE(arena.flat().sum().item<double>(), 3.0 * 6 + 6.0 * 5);  // the padding stays zero
  }

  void gradients_have_the_parameters_strides() {
    const at::Tensor transposed = at::ones({3, 2}, at::kDouble).t().detach().requires_grad_(true);
    GradArena arena = arena_of({transposed});
    arena.expect(0);
    QVERIFY(transposed.grad().strides() == transposed.strides());
    (transposed * at::arange(6, at::kDouble).view({2, 3})).sum().backward();
    QVERIFY(transposed.grad().equal(at::arange(6, at::kDouble).view({2, 3})));
  }

  void a_parameter_has_no_gradient_until_one_arrives() {
    const at::Tensor p = parameter({4});
    p.mutable_grad() = at::ones_like(p);
    GradArena arena = arena_of({p});
    QVERIFY(!p.grad().defined());
    QVERIFY(!arena.collect(0));
    QVERIFY(!p.grad().defined());
    arena.expect(0);
    QVERIFY(arena.collect(0));
  }

  void a_gradient_zeroed_in_place_stays_where_it_is() {
    const at::Tensor p = parameter({4});
    GradArena arena = arena_of({p});
    arena.expect(0);
    p.sum().backward();
    p.mutable_grad().detach_();  // what zero_grad(false) does
    p.mutable_grad().zero_();
    QVERIFY(arena.collect(0));
    p.mutable_grad() = p.grad().detach();  // another tensor on the same memory
    QVERIFY(arena.collect(0));
    QCOMPARE(p.grad().data_ptr(), place(arena, 0).data_ptr());
  }

  void the_place_of_a_dropped_gradient_is_cleared() {
    const at::Tensor p = parameter({4});
    GradArena arena = arena_of({p});
    arena.expect(0);
    p.sum().backward();
    p.mutable_grad().reset();
    QVERIFY(!arena.collect(0));
    QCOMPARE(place(arena, 0).abs().sum().item<double>(), 0.0);
    QVERIFY(!p.grad().defined());
  }

  void a_fresh_gradient_replaces_what_was_there() {
    const at::Tensor p = parameter({4});
    GradArena arena = arena_of({p});
    arena.expect(0);
    p.sum().backward();
    p.mutable_grad().reset();
    (3 * p).sum().backward();
    QVERIFY(arena.collect(0));
    QCOMPARE(place(arena, 0).min().item<double>(), 3.0);
    p.sum().backward();
    QCOMPARE(place(arena, 0).min().item<double>(), 4.0);
  }

  void a_sparse_gradient_is_laid_out() {
    const at::Tensor p = parameter({4, 2});
    GradArena arena = arena_of({p});
    const at::Tensor index = at::ones({1, 1}, at::kLong);
    p.mutable_grad() = at::sparse_coo_tensor(index, at::full({1, 2}, 7.0, at::kDouble), {4, 2});
    QVERIFY(arena.collect(0));
    QCOMPARE(p.grad().sum().item<double>(), 14.0);
    QCOMPARE(p.grad()[1][0].item<double>(), 7.0);
  }

  void zero_clears_all_and_drops_the_gradients() {
    const at::Tensor p = parameter({4});
    GradArena arena = arena_of({p});
    arena.expect(0);
    p.sum().backward();
    p.mutable_grad() = at::full({4}, 9.0, at::kDouble);
    arena.zero();
    QVERIFY(!p.grad().defined());
    QCOMPARE(arena.flat().abs().sum().item<double>(), 0.0);
  }

  void restored_memory_becomes_a_gradient_where_it_is_one() {
    const std::vector<at::Tensor> parameters = {parameter({4}), parameter({4})};
    GradArena arena = arena_of(parameters);
    at::Tensor flat = arena.flat();
    flat.fill_(2.0);
    arena.set(0, true);
    arena.set(1, true);
    arena.set(1, false);
    QCOMPARE(parameters[0].grad().sum().item<double>(), 8.0);
    QVERIFY(!parameters[1].grad().defined());
    QCOMPARE(place(arena, 1).abs().sum().item<double>(), 0.0);
  }

  void buckets_go_out_in_order_however_gradients_arrive() {
    // Four parameters of 16 elements in buckets of 32: parameters 3 and 2 make bucket 0, 1 and 0 bucket 1.
    const FlatLayout layout = flat_layout(std::vector<std::int64_t>{16, 16, 16, 16}, 4, 128);
    QCOMPARE(layout.buckets.size(), std::size_t{2});
    std::vector<std::size_t> launched;
    BucketReducer reducer({layout}, [&](std::size_t bucket) { launched.push_back(bucket); });
    for (const std::size_t p : {0U, 1U, 2U}) reducer.arrived(p);
    QVERIFY(launched.empty());  // bucket 1 is complete, but bucket 0 goes first
    reducer.arrived(3);
    QCOMPARE(launched, (std::vector<std::size_t>{0, 1}));
    reducer.finish();
    QCOMPARE(launched, (std::vector<std::size_t>{0, 1}));

    launched.clear();
    reducer.arrived(3);
    reducer.arrived(3);  // a second arrival of the same one does not stand for another
    QVERIFY(launched.empty());
    reducer.finish();
    QCOMPARE(launched, (std::vector<std::size_t>{0, 1}));
  }

  void a_parameter_larger_than_a_bucket_completes_all_of_its_buckets() {
    const FlatLayout layout = flat_layout(std::vector<std::int64_t>{8, 100}, 4, 128);
    QVERIFY(layout.buckets.size() >= 3);
    std::size_t launched = 0;
    BucketReducer reducer({layout}, [&](std::size_t) { ++launched; });
    reducer.arrived(1);
    QVERIFY(launched >= 2 && launched < layout.buckets.size());
    reducer.arrived(0);
    QCOMPARE(launched, layout.buckets.size());
  }

  void a_gradient_after_its_bucket_is_refused() {
    const FlatLayout layout = flat_layout(std::vector<std::int64_t>{16}, 4, 128);
    BucketReducer reducer({layout}, [](std::size_t) {});
    reducer.arrived(0);
    QVERIFY_EXCEPTION_THROWN(reducer.arrived(0), std::logic_error);
  }
};

ACCRUE_TEST_MAIN(TestGradArena)

}  // namespace test_grad_arena
#include "test_grad_arena.moc"

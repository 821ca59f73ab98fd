// SPDX-License-Identifier: Apache-2.0
// A device's kernels of the optimizers' rules, run on the CPU: their bodies are compiled here as nvcc compiles them for
// a device, and every thread of every block takes its steps in turn, in several orders. They are held against the
// CPU's loops, which other tests hold against LibTorch and the originals.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <QTest>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/device_kernels.inl.h"
#include "optim/flat_paths.h"
#include "optim/update_passes.h"
#include "support/optimizer_rules.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_device_updates {

using namespace accrue;
using namespace accrue::test;

namespace {

/// In which order blocks, and the threads of a block, take their turns. On a device it is any.
enum class Turns { ascending, descending, shuffled };

std::vector<std::int64_t> in_turn(std::int64_t count, Turns turns) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (turns == Turns::descending) std::ranges::reverse(order);
  std::mt19937 random(5);
  if (turns == Turns::shuffled) std::ranges::shuffle(order, random);
  return order;
}

/// One block. What its threads share begins as a device's memory does: as anything.
class HostBlock {
 public:
  HostBlock(std::int64_t index, const std::vector<std::int64_t>& threads) : index_(index), threads_(threads) {
    std::ranges::fill(sums_.params, std::nan(""));
    std::ranges::fill(sums_.steps, std::nan(""));
  }
  std::int64_t index() const { return index_; }
  BlockSums& sums() const { return sums_; }
  template <typename Step>
  void each_thread(const Step& step) const {
    for (const std::int64_t thread : threads_) step(static_cast<int>(thread));
  }

 private:
  std::int64_t index_;
  const std::vector<std::int64_t>& threads_;
  mutable BlockSums sums_;
};

int kernels_started = 0;

struct HostLaunch {
  template <typename Kernel>
  void operator()(const Kernel& kernel, std::int64_t blocks) const {
    ++kernels_started;
    const auto threads = in_turn(threads_per_block, turns);
    for (const std::int64_t block : in_turn(blocks, turns)) kernel(HostBlock(block, threads));
  }
  Turns turns;
};

/// The device, whose memory is the CPU's.
UpdatePath device_in(Turns turns) {
  static const LaunchedUpdates<HostLaunch> ascending(HostLaunch{Turns::ascending});
  static const LaunchedUpdates<HostLaunch> descending(HostLaunch{Turns::descending});
  static const LaunchedUpdates<HostLaunch> shuffled(HostLaunch{Turns::shuffled});
  switch (turns) {
    case Turns::descending:
      return UpdatePath(descending);
    case Turns::shuffled:
      return UpdatePath(shuffled);
    case Turns::ascending:
      break;
  }
  return UpdatePath(ascending);
}

constexpr std::int64_t sizes[] = {0, 1, 31, 1023, 100'003};
constexpr std::int64_t guard = 3;  ///< numbers before and behind a tensor, so that it begins at no even address

/// Parameters, gradients and two states of some sizes, each inside a larger tensor.
struct Memory {
  Memory(at::ScalarType params, at::ScalarType grads) {
    at::manual_seed(8);
    for (const std::int64_t size : sizes) {
      all.push_back(at::randn({size + 2 * guard}).to(params));
      all.push_back(at::randn({size + 2 * guard}).to(grads));
      all.push_back((at::randn({size + 2 * guard}) * 0.1).to(params));
      all.push_back((at::rand({size + 2 * guard}) * 0.1).to(params));
    }
  }
  Memory(const Memory& other) {
    for (const at::Tensor& each : other.all) all.push_back(each.clone());
  }
  /// Pieces of `columns` tensors each.
  template <typename Step>
  std::vector<Piece<Step>> pieces(const Step& step, int columns) const {
    std::vector<Piece<Step>> list;
    for (std::size_t i = 0; i < all.size(); i += 4) {
      const auto inner = [&](int column) {
        const at::Tensor& outer = all[i + static_cast<std::size_t>(column)];
        return column < columns ? outer.narrow(0, guard, outer.numel() - 2 * guard) : at::Tensor();
      };
      list.push_back({{inner(0), inner(1), inner(2), inner(3)}, step});
    }
    return list;
  }
  /// To the last bit, guards included.
  bool operator==(const Memory& other) const {
    return std::ranges::equal(all, other.all, [](const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); });
  }
  std::vector<at::Tensor> all;
};

/// Compares the results of a pass on the CPU and on the device, which must be equal to the last bit.
template <typename Step, typename Pass>
QString difference(const Memory& before, const Step& step, int columns, const Pass& pass) {
  const Memory expected(before);
  pass(expected.pieces(step, columns), UpdatePath::kernels);
  if (expected == before) return QStringLiteral("nothing changed");
  for (const Turns turns : {Turns::ascending, Turns::descending, Turns::shuffled}) {
    const Memory found(before);
    pass(found.pieces(step, columns), device_in(turns));
    for (std::size_t i = 0; i < found.all.size(); ++i)
      if (!at::equal(found.all[i], expected.all[i]))
        return QStringLiteral("tensor %1 in turns %2").arg(i).arg(static_cast<int>(turns));
  }
  return {};
}

const MomentsStep a_moments_step{.lr = .01,
                                 .beta1 = .9,
                                 .take1 = .1,
                                 .beta2 = .99,
                                 .eps = 1e-6,
                                 .weight_decay = .1,
                                 .l2 = .02,
                                 .correction1 = .3,
                                 .correction2 = .2,
                                 .grad_scale = .5};

void columns_of_types() {
  const Rows<int, int> row;
  const auto number = [](at::ScalarType type) { return static_cast<int>(type); };
  row("float32", number(at::kFloat), number(at::kFloat));
  row("float64", number(at::kDouble), number(at::kDouble));
  row("float16", number(at::kHalf), number(at::kHalf));
  row("bfloat16", number(at::kBFloat16), number(at::kBFloat16));
  row("float16 gradients", number(at::kFloat), number(at::kHalf));
  row("bfloat16 gradients", number(at::kFloat), number(at::kBFloat16));
}

}  // namespace

class TestDeviceUpdates : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Without fused multiply-add, as this file is compiled; and what is compared does not depend on LibTorch's threads.
  void initTestCase() {
    limit_instruction_set(InstructionSet::generic);
    at::set_num_threads(1);
  }

  void every_rule_has_the_bits_of_the_cpu_data() { columns_of_types(); }
  void every_rule_has_the_bits_of_the_cpu() {
    const auto [params, grads] = current_row<int, int>();
    const Memory memory(static_cast<at::ScalarType>(params), static_cast<at::ScalarType>(grads));
    const AdamWStep adamw{.lr = .01,
                          .beta1 = .9,
                          .beta2 = .99,
                          .eps = 1e-6,
                          .weight_decay = .1,
                          .l2 = .02,
                          .correction1 = .3,
                          .correction2_root = .4,
                          .grad_scale = .5};
    QCOMPARE(difference(memory, adamw, 4, adamw_pass), QString());
    QCOMPARE(difference(memory, a_moments_step, 4, fused_adam_pass), QString());
    const SgdStep sgd{.lr = .01, .momentum = .9, .weight_decay = .1, .grad_scale = .5};
    const FusedSgdStep nesterov{.lr = .01,
                                .keep = .9,
                                .take = .75,
                                .momentum = .9,
                                .nesterov = true,
                                .l2 = .02,
                                .weight_decay = .1,
                                .grad_scale = .5};
    // Gradients beyond 10 are held there.
    const LarsStep lars{.lr = .01, .momentum = .9, .weight_decay = .1, .grad_scale = 8.0};
    for (const int columns : {2, 3}) {  // without a buffer, and with one
      QCOMPARE(difference(memory, sgd, columns, sgd_pass), QString());
      QCOMPARE(difference(memory, nesterov, columns, fused_sgd_pass), QString());
      QCOMPARE(difference(memory, lars, columns, lars_pass), QString());
    }
    const auto lamb_apply = [](const std::vector<Piece<MomentsStep>>& pieces, UpdatePath path) {
      lamb_apply_pass(pieces, {.5, .4, .3, .2, .1}, path);
    };
    QCOMPARE(difference(memory, a_moments_step, 4, lamb_apply), QString());
  }

  void moments_have_the_bits_of_the_cpu_and_their_sums_its_value_data() { columns_of_types(); }
  void moments_have_the_bits_of_the_cpu_and_their_sums_its_value() {
    const auto [params, grads] = current_row<int, int>();
    const Memory memory(static_cast<at::ScalarType>(params), static_cast<at::ScalarType>(grads));
    std::vector<at::Tensor> sums;
    const auto moments = [&sums](const std::vector<Piece<MomentsStep>>& pieces, UpdatePath path) {
      sums.push_back(lamb_moments_pass(pieces, path));
    };
    QCOMPARE(difference(memory, a_moments_step, 4, moments), QString());
    QCOMPARE(sums.size(), std::size_t{4});
    QVERIFY(at::allclose(sums[1], sums[0], 1e-14, 0.0));
    QVERIFY(at::equal(sums[2], sums[1]) && at::equal(sums[3], sums[1]));
    QVERIFY(sums[1].min().item<double>() == 0.0 && sums[1][1].min().item<double>() > 0.0);
  }

  /// Each with its own step, some empty, of all types: as if each were alone.
  void tensors_share_kernels() {
    std::vector<Piece<MomentsStep>> pieces;
    std::vector<double> rates;
    at::manual_seed(9);
    for (int i = 0; i < 70; ++i) {
      const at::ScalarType narrow = i % 5 == 0 ? at::kHalf : i % 7 == 0 ? at::kBFloat16 : at::kFloat;
      const at::ScalarType type = i >= 30 && i < 40 ? at::kDouble : narrow;
      const auto drawn = [&] { return at::rand({i % 9 * 300}).to(type); };
      MomentsStep step = a_moments_step;
      step.lr = 0.001 * i;
      step.grad_scale = 1.0 / (1 + i);
      pieces.push_back({{drawn(), drawn(), drawn(), drawn()}, step});
      rates.push_back(0.01 * i);
    }
    const auto copy_of = [](const std::vector<Piece<MomentsStep>>& all) {
      auto copies = all;
      for (auto& [tensors, step] : copies)
        tensors = {tensors.params.clone(), tensors.grads, tensors.first.clone(), tensors.second.clone()};
      return copies;
    };
    const auto pass = [&rates](const std::vector<Piece<MomentsStep>>& all, UpdatePath path) {
      fused_adam_pass(all, path);
      const at::Tensor sums = lamb_moments_pass(all, path);
      lamb_apply_pass(all, rates, path);
      return sums;
    };
    const auto together = copy_of(pieces), alone = copy_of(pieces), on_cpu = copy_of(pieces);
    const at::Tensor sums_on_cpu = pass(on_cpu, UpdatePath::kernels);
    kernels_started = 0;
    const at::Tensor sums = pass(together, device_in(Turns::shuffled));
    // 22 tensors a kernel: 26 and 9 and 27 that are not empty make 2 + 1 + 2 kernels; and one adds the sums up.
    QCOMPARE(kernels_started, 3 * 5 + 1);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      fused_adam_pass({alone[i]}, device_in(Turns::ascending));
      QVERIFY(at::equal(lamb_moments_pass({alone[i]}, device_in(Turns::ascending))[0], sums[std::int64_t(i)]));
      lamb_apply_pass({alone[i]}, {rates[i]}, device_in(Turns::ascending));
      for (const auto tensor : {&UpdateTensors::params, &UpdateTensors::first, &UpdateTensors::second}) {
        QVERIFY(at::equal(together[i].tensors.*tensor, alone[i].tensors.*tensor));
        QVERIFY(at::equal(together[i].tensors.*tensor, on_cpu[i].tensors.*tensor));
      }
    }
    QVERIFY(at::allclose(sums, sums_on_cpu, 1e-14, 0.0));
  }

  /// 1 + 4 + 9 + ... + n^2, which is n (n + 1) (2 n + 1) / 6: every sum on the way is a whole number below 2^53.
  void sums_of_squares_are_exact_where_numbers_are_whole_data() {
    const Rows<qint64> row;
    for (const std::int64_t n : {0, 1, 31, 1023, 1024, 1025, 100'003})
      row(QByteArray::number(qint64(n)).constData(), n);
  }
  void sums_of_squares_are_exact_where_numbers_are_whole() {
    const auto [n] = current_row<qint64>();
    const double expected = double(n) * double(n + 1) * double(2 * n + 1) / 6.0;
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor numbers = at::arange(1, n + 1, type);
      for (const Turns turns : {Turns::ascending, Turns::descending, Turns::shuffled}) {
        const std::vector<Piece<LarsStep>> pieces{{{.params = numbers, .grads = -2 * numbers}, {}}};
        const at::Tensor sums = lars_sums_pass(pieces, device_in(turns));
        QVERIFY(sums[0][0].item<double>() == expected);  // not nearly
        QVERIFY(sums[0][1].item<double>() == 4.0 * expected);
      }
    }
  }

  /// More numbers than one round of all blocks takes.
  void a_sum_goes_on_after_the_last_block() {
    const std::int64_t n = 2 * parts_of_sums * threads_per_block * numbers_per_thread + 7;
    const std::vector<Piece<LarsStep>> pieces{{{.params = at::full({n}, 2.0f), .grads = at::full({n}, 1.0f)}, {}}};
    QCOMPARE(blocks_for(n), parts_of_sums);
    const at::Tensor sums = lars_sums_pass(pieces, device_in(Turns::descending));
    QCOMPARE(sums[0][0].item<double>(), 4.0 * double(n));
    QCOMPARE(sums[0][1].item<double>(), double(n));
  }

  void what_is_not_finite_comes_through() {
    at::Tensor numbers = at::ones({5000});
    numbers[4999] = std::nan("");
    const at::Tensor sums =
        lars_sums_pass({{{.params = numbers, .grads = at::full({5000}, INFINITY)}, {}}}, device_in(Turns::ascending));
    QVERIFY(std::isnan(sums[0][0].item<double>()));
    QVERIFY(std::isinf(sums[0][1].item<double>()));
    at::Tensor params = at::ones({5000}), grads = at::full({5000}, std::nan(""));
    lars_pass({{{.params = params, .grads = grads}, {.lr = 1.0, .grad_scale = 1.0}}}, device_in(Turns::ascending));
    QVERIFY(params.isnan().all().item<bool>());
  }

  void flat_optimizers_step_as_on_the_other_paths_data() {
    const Rows<QString> row;
    for (const Rule& each : rules()) row(each.name, QString(each.name));
  }
  void flat_optimizers_step_as_on_the_other_paths() {
    const auto [name] = current_row<QString>();
    const auto all = rules();
    const Rule& by = *std::ranges::find_if(all, [&name](const Rule& each) { return name == each.name; });
    std::vector<OptimizerSegment> segments;
    std::int64_t numel = 0;
    for (const std::int64_t size : {40, 1, 333, 100'003}) {
      segments.push_back({.range = {numel, size}});
      numel += size + 3;  // padding
    }
    const auto updated = [&](at::ScalarType type, UpdatePath path) {
      at::manual_seed(4);
      at::Tensor params = at::randn({numel}, type);
      const auto optimizer = make_flat_optimizer(by.spec, segments, numel, params.options(), path);
      for (int step = 0; step < 5; ++step) optimizer->step(params, at::randn({numel}, type) * 0.1, by.spec.lr, 0.5);
      return params;
    };
    const auto apart = [](const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); };
    // The tolerances of test_device_kernels.
    for (const auto& [type, tolerance] : {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 1e-5)}) {
      const at::Tensor on_device = updated(type, device_in(Turns::shuffled));
      for (const UpdatePath path : {UpdatePath::kernels, UpdatePath::operators}) {
        const double worst = apart(on_device, updated(type, path));
        QVERIFY2(worst <= tolerance, qPrintable(QString::number(worst)));
      }
    }
  }
};

ACCRUE_TEST_MAIN(TestDeviceUpdates)

}  // namespace test_device_updates
#include "test_device_updates.moc"

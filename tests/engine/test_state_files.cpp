// SPDX-License-Identifier: Apache-2.0
// Optimizer states in files: the same bits as in memory, files that nothing names, and a disk that is full. The failing
// disk is part of this program.
#include <ATen/ATen.h>

#include <QTemporaryDir>
#include <QTest>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/optim/cpu_adam.h"
#include "accrue/optim/flat_optimizer.h"
#include "accrue/optim/hybrid_adam.h"
#include "optim/file_tier.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_state_files {

using namespace accrue;
using namespace accrue::test;

namespace {

/// This process's mappings of files in a folder, in bytes.
std::int64_t mapped_from(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  std::int64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(folder) == std::string::npos) continue;
    std::size_t dash = 0;
    const auto begin = std::stoull(line, &dash, 16), end = std::stoull(line.substr(dash + 1), nullptr, 16);
    bytes += static_cast<std::int64_t>(end - begin);
  }
  return bytes;
}

class DiskFailure {
 public:
  DiskFailure(const std::string& path, const char* how, int call) {
    setenv("FAILING_DISK_LOG", "/dev/null", 1);
    setenv("FAILING_DISK_HOW", how, 1);
    setenv("FAILING_DISK_CALL", std::to_string(call).c_str(), 1);
    setenv("FAILING_DISK_PATH", path.c_str(), 1);
  }
  ~DiskFailure() { unsetenv("FAILING_DISK_PATH"); }
};

constexpr std::int64_t numel = 300'000;

OptimizerSpec spec_in(const std::string& folder, double fraction) {
  return {.kind = OptimizerKind::hybrid_adam,
          .weight_decay = 0.1,
          .nvme_offload_fraction = fraction,
          .nvme_offload_dir = folder};
}

}  // namespace

class TestStateFiles : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void flat_states_in_files_give_the_same_bits_data() {
    QTest::addColumn<double>("fraction");
    QTest::newRow("a part") << 0.4;
    QTest::newRow("all") << 1.0;
  }
  void flat_states_in_files_give_the_same_bits() {
    QFETCH(double, fraction);
    QTemporaryDir dir;
    const std::string folder = dir.path().toStdString();
    at::manual_seed(2);
    const std::vector<OptimizerSegment> segments{{.range = {0, 200'000}}, {.range = {200'000, 100'000}, .lr = 0.5}};
    at::Tensor in_memory = at::randn({numel}), in_files = in_memory.clone();
    const auto one = make_flat_optimizer(spec_in({}, 0.0), segments, numel, at::kFloat);
    const auto two = make_flat_optimizer(spec_in(folder, fraction), segments, numel, at::kFloat);
    const auto least = static_cast<std::int64_t>(fraction * numel) * 4 * 2;
    QVERIFY(mapped_from(folder) >= least && mapped_from(folder) <= least + 2 * 4096);
    QVERIFY(std::filesystem::is_empty(folder));
    for (int step = 0; step < 4; ++step) {
      const at::Tensor grads = at::randn({numel});
      one->step(in_memory, grads, 1e-2, 1.0);
      two->step(in_files, grads, 1e-2, 1.0);
      QVERIFY(at::equal(in_memory, in_files));
    }
    // States are read and set as if they lay in memory: a checkpoint continues to the same bits.
    const auto three = make_flat_optimizer(spec_in(folder, 0.9), segments, numel, at::kFloat);
    for (std::size_t i = 0; i < 2; ++i) {
      QVERIFY(at::equal(one->state()[i].second, two->state()[i].second));
      three->state()[i].second.copy_(two->state()[i].second);
    }
    three->segment_steps().copy_(two->segment_steps());
    const at::Tensor grads = at::randn({numel});
    one->step(in_memory, grads, 1e-2, 1.0);
    three->step(in_files, grads, 1e-2, 1.0);
    QVERIFY(at::equal(in_memory, in_files));
  }

  void many_windows_of_files_give_the_same_bits() {
    QTemporaryDir dir;
    std::vector<FlatRange> seen;
    const std::int64_t in_files = 2 * elements_per_tier_window + 5, all = in_files + 7;
    const at::Tensor state = tiered_zeros(all, in_files, at::kByte, dir.path().toStdString());
    for_tier_windows(all, in_files, {state}, [&](const FlatRange& range) { seen.push_back(range); });
    std::int64_t end = 0;
    for (const FlatRange& range : seen) {
      QCOMPARE(range.offset, end);
      end += range.size;
    }
    QCOMPARE(end, all);
    QCOMPARE(seen.size(), std::size_t{4});
    QVERIFY(state.eq(0).all().item<bool>());
  }

  void classes_keep_the_first_states_in_files() {
    QTemporaryDir dir;
    const std::string folder = dir.path().toStdString();
    at::manual_seed(3);
    const at::Tensor start = at::randn({100, 1000});
    at::Tensor a = start.clone().requires_grad_(), b = at::ones({50'000}).requires_grad_();
    at::Tensor c = start.clone().requires_grad_(), d = at::ones({50'000}).requires_grad_();
    HybridAdam in_files({a, b}, HybridAdamOptions().nvme_offload_fraction(0.8).nvme_offload_dir(folder));
    CPUAdam in_memory({c, d});
    const auto step = [&](torch::optim::Optimizer& optimizer, at::Tensor& first, at::Tensor& second, int seed) {
      at::manual_seed(seed);
      first.mutable_grad() = at::randn({100, 1000});
      second.mutable_grad() = at::randn({50'000});
      optimizer.step();
    };
    for (int i = 0; i < 3; ++i) {
      step(in_files, a, b, i);
      step(in_memory, c, d, i);
    }
    QVERIFY(at::equal(a, c) && at::equal(b, d));
    // 120'000 of 150'000 numbers, of two moments: all of the first parameter's and 20'000 of the second's.
    const std::int64_t least = 120'000 * 4 * 2;
    QVERIFY(mapped_from(folder) >= least && mapped_from(folder) <= least + 4 * 4096);
    QVERIFY(std::filesystem::is_empty(folder));
    // A state that was loaded goes back into files.
    const StateDict saved = wrap(in_files)->state_dict();
    HybridAdam again({a, b}, HybridAdamOptions().nvme_offload_fraction(0.8).nvme_offload_dir(folder));
    wrap(again)->load_state_dict(saved);
    step(again, a, b, 9);
    step(in_memory, c, d, 9);
    QVERIFY(at::equal(a, c) && at::equal(b, d));
    QVERIFY(mapped_from(folder) >= 2 * least);
  }

  void a_full_disk_is_an_error_that_names_the_folder_and_loses_nothing() {
    QTemporaryDir dir;
    const std::string folder = dir.path().toStdString();
    const at::Tensor start = at::ones({100'000});
    at::Tensor weight = start.clone().requires_grad_(), other = start.clone().requires_grad_();
    weight.mutable_grad() = start.clone();
    other.mutable_grad() = start.clone();
    CPUAdam adam({weight, other}, CPUAdamOptions().nvme_offload_fraction(1.0).nvme_offload_dir(folder));
    std::string said;
    {
      const DiskFailure full(folder, "FULL", 6);  // the third of four states: two calls each
      said = error_of([&] { adam.step(); });
    }
    QVERIFY2(contains(said, folder) && contains(said, "No space left") && contains(said, "nvme_offload_fraction"),
             said.c_str());
    QVERIFY(at::equal(weight, start) && at::equal(other, start));
    adam.step();  // there is room again
    QVERIFY(!at::equal(weight, start) && at::equal(weight, other));
    {
      const DiskFailure full(folder, "FULL", 2);
      said = error_of([&] { make_flat_optimizer(spec_in(folder, 0.5), {{.range = {0, numel}}}, numel, at::kFloat); });
    }
    QVERIFY2(contains(said, folder) && contains(said, "No space left"), said.c_str());
    try {
      tiered_zeros(10, 10, at::kFloat, folder + "/nowhere");
    } catch (const ResultError& error) {
      QCOMPARE(error.error.code, ErrorCode::disk);
      QCOMPARE(error.error.where, std::string("optimizer.nvme_offload_dir"));
    }
    said = error_of([&] { tiered_zeros(10, 10, at::kFloat, folder + "/nowhere"); });
    QVERIFY2(contains(said, folder + "/nowhere") && contains(said, "No such file"), said.c_str());
    QVERIFY(std::filesystem::is_empty(folder));
  }
};

ACCRUE_TEST_MAIN(TestStateFiles)

}  // namespace test_state_files
#include "test_state_files.moc"

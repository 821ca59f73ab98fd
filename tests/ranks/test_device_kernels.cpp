// SPDX-License-Identifier: Apache-2.0
// The CUDA module's kernels of the optimizers' rules, where there is a CUDA device: against LibTorch's own operators
// there. Elsewhere they are skipped aloud; test_device_updates runs their bodies on the CPU.
#include <ATen/ATen.h>

#include <QTest>
#include <cmath>
#include <cstdio>

#include "comm/device_loader.h"
#include "optim/flat_paths.h"
#include "support/joined_rank.h"
#include "support/optimizer_rules.h"
#include "support/rank_checks.h"

namespace test_device_kernels {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// Reports the path of updates on the first device, or the error if there is none.
int path_on_the_device(RankContext& rank) {
  const auto device = own_cuda_device(0);
  rank.report(device ? path_of(at::Device(at::kCUDA, 0)).name() : device.error().text());
  return 0;
}

std::vector<Rule> all_rules() {
  auto all = rules();
  using K = OptimizerKind;
  all.push_back({"adamw", {.kind = K::adamw, .lr = .1, .weight_decay = .1}, {}});
  all.push_back({"adam", {.kind = K::adam, .lr = .1, .weight_decay = .1}, {}});
  all.push_back({"sgd", {.kind = K::sgd, .lr = .1, .weight_decay = .1}, {}});
  all.push_back({"sgd with momentum", {.kind = K::sgd, .lr = .1, .weight_decay = .1, .momentum = .9}, {}});
  return all;
}

/// Parameters of some sizes in one tensor, with padding between them, and gradients of some updates.
struct Numbers {
  explicit Numbers(at::ScalarType type) : options(at::TensorOptions(type).device(at::kCUDA, 0)) {
    for (const std::int64_t size : {1, 31, 1023, 100'003, 3'000'000}) add(size);
    for (std::int64_t size = 1; size < 40; ++size) add(size);  // more tensors than a kernel takes
    at::manual_seed(4);
    params = at::randn({numel}, options);
    for (int step = 0; step < 5; ++step) grads.push_back(at::randn({numel}, options) * 0.1);
  }

  void add(std::int64_t size) {
    segments.push_back({.range = {numel, size}});
    numel += size + 3;
  }

  at::TensorOptions options;
  std::vector<OptimizerSegment> segments;
  std::int64_t numel = 0;
  at::Tensor params;
  std::vector<at::Tensor> grads;
};

/// Parameters after some updates on the device.
at::Tensor updated(const Rule& rule, const Numbers& numbers, UpdatePath path) {
  at::Tensor params = numbers.params.clone();
  const auto optimizer = make_flat_optimizer(rule.spec, numbers.segments, numbers.numel, numbers.options, path);
  for (const at::Tensor& each : numbers.grads) optimizer->step(params, each.clone(), rule.spec.lr, 0.5);
  return params;
}

std::string apart(double worst) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e apart", worst);
  return text;
}

/// Reports every rule whose kernel and operators part, or that gives other bits the second time.
int kernels_beside_operators(RankContext& rank) {
  taken(own_cuda_device(0));
  const UpdatePath kernels = path_of(at::Device(at::kCUDA, 0));
  DEMAND(kernels != UpdatePath::operators);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const Numbers numbers(type);
    for (Rule rule : all_rules()) {
      // If a gradient and its decay cancel, an Adam divides their last bits by eps.
      rule.spec.eps = 1e-3;
      const at::Tensor found = updated(rule, numbers, kernels), again = updated(rule, numbers, kernels);
      const at::Tensor expected = updated(rule, numbers, UpdatePath::operators);
      const double worst = (found - expected).abs().max().item<double>();
      const std::string what = std::string(rule.name) + (type == at::kFloat ? ", float32: " : ", float64: ");
      if (!(worst <= (type == at::kFloat ? 1e-5 : 1e-12))) rank.report(what + apart(worst));
      if (!at::equal(found, again)) rank.report(what + "other bits the second time");
    }
  }
  return 0;
}

/// A class in half precision: parameters, gradients and moments.
int half_precision_beside_operators(RankContext& rank) {
  taken(own_cuda_device(0));
  const UpdatePath kernels = path_of(at::Device(at::kCUDA, 0));
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const auto drawn = [type] { return at::randn({100'003}).to(at::TensorOptions(type).device(at::kCUDA, 0)); };
    at::manual_seed(6);
    const UpdateTensors ours{drawn(), drawn(), drawn(), drawn().abs()};
    const UpdateTensors theirs{ours.params.clone(), ours.grads, ours.first.clone(), ours.second.clone()};
    const MomentsStep step{.lr = .01, .beta1 = .9, .take1 = .1, .beta2 = .99, .eps = 1e-6, .weight_decay = .1};
    fused_adam_pass({{ours, step}}, kernels);
    fused_adam_pass({{theirs, step}}, UpdatePath::operators);
    const double worst = (ours.params.to(at::kFloat) - theirs.params.to(at::kFloat)).abs().max().item<double>();
    if (!(worst <= 0.04)) rank.report(apart(worst));  // a step between neighbours at 4
  }
  return 0;
}

/// Reports whether kernels stay in use if no rank lacks them and if the last rank does, and by what path updates of a
/// CUDA device go from then on.
int agrees(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  for (const bool lacks : {false, true}) {
    rank.report(agree_on_device_kernels(*joined.data, !lacks || rank.rank < rank.world - 1) ? "kernels" : "operators");
    if (lacks) rank.report(path_of(at::Device(at::kCUDA, 0)).name());
  }
  return 0;
}

}  // namespace

class TestDeviceKernels : public QObject {
  Q_OBJECT

  std::string path_;

  bool has_kernels() const { return path_ == "CUDA kernels"; }
  void compare(const char* body) {
    const auto outcomes = RankGroup(body, 1).finish(240s);
    QVERIFY2(outcomes.at(0).ok(), outcomes.at(0).text().c_str());
    QVERIFY2(outcomes[0].lines.empty(), outcomes[0].text().c_str());
  }

 private Q_SLOTS:
  void initTestCase() {
    const auto outcomes = RankGroup("path_on_the_device", 1).finish(60s);
    QVERIFY2(outcomes.at(0).ok(), outcomes.at(0).text().c_str());
    path_ = outcomes[0].lines.at(0);
    if (path_ == "operators") {
      path_ =
          "the CUDA module has no kernels of its own: install nvcc of LibTorch's CUDA release (12.8 or later), then "
          "configure and build again";
    }
  }

  void every_rule_gives_the_numbers_of_the_operators() {
    if (!has_kernels()) QSKIP(path_.c_str());
    compare("kernels_beside_operators");
  }

  void half_precision_gives_the_numbers_of_the_operators() {
    if (!has_kernels()) QSKIP(path_.c_str());
    compare("half_precision_beside_operators");
  }

  void ranks_take_operators_where_one_lacks_kernels() {
    const auto outcomes = RankGroup("agrees", 2).finish(60s);
    for (const auto& each : outcomes) {
      QVERIFY2(each.ok(), each.text().c_str());
      QCOMPARE(each.lines, (std::vector<std::string>{"kernels", "operators", "operators"}));
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestDeviceKernels, {{"path_on_the_device", path_on_the_device},
                                          {"kernels_beside_operators", kernels_beside_operators},
                                          {"half_precision_beside_operators", half_precision_beside_operators},
                                          {"agrees", agrees}})

}  // namespace test_device_kernels
#include "test_device_kernels.moc"

// SPDX-License-Identifier: Apache-2.0
// The small cases on which Accelerate's accumulation is checked, alone and on several ranks: a line through the origin
// and a two-class toy over sequences, both in float64.
#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "accrue/comm/rendezvous.h"
#include "support/near.h"

namespace accrue::test {

using namespace accrue::accelerate;

/// y = w x.
struct OriginLine : torch::nn::Module {
  explicit OriginLine(double start = 0.0) { w = register_parameter("w", at::full({1}, start, at::kDouble)); }
  at::Tensor loss(const at::Tensor& x) { return at::mse_loss(x * w, 2 * x); }
  double value() const { return w.item<double>(); }
  double gradient() const { return w.grad().defined() ? w.grad().item<double>() : 0.0; }
  at::Tensor w;
};

inline at::Tensor points(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble);
}

/// Batches of the values 1, 2, ...: every sample is its index + 1, or the same value on every rank.
inline auto value_loader(std::int64_t samples, LoaderOptions options, std::int64_t same_on = 1) {
  const auto fetch = [same_on](const std::vector<std::int64_t>& indices) {
    std::vector<double> values;
    for (const std::int64_t each : indices) values.push_back(static_cast<double>(each / same_on + 1));
    return points(values);
  };
  return map_loader(samples, fetch, options);
}

/// Whether the tensor is the same on both ranks.
inline bool ranks_agree(Accelerator& accelerator, const at::Tensor& tensor) {
  const at::Tensor all = accelerator.gather(tensor.reshape({1, -1}));
  return all[0].equal(all[1]);
}

/// A line, its SGD, and what an Accelerator makes of both; alone unless an axis is named.
struct TrainedLine {
  explicit TrainedLine(AcceleratorOptions options, double lr = 0.1, double momentum = 0.9, Communicator* axis = nullptr)
      : sgd(model.parameters(), torch::optim::SGDOptions(lr).momentum(momentum)),
        accelerator(std::move(options), axis != nullptr ? *axis : *alone) {}

  /// Backward, step and clear of one micro-step.
  StepOutcome micro_step(double factor = 1.0, const at::Tensor& x = points({1.0})) {
    const auto scope = accelerator.accumulate(model);
    accelerator.backward(model.loss(x) * factor);
    const StepOutcome outcome = optimizer.step();
    optimizer.zero_grad();
    return outcome;
  }
  AcceleratedScheduler& schedule(LambdaLR::Factor factor, std::optional<std::int64_t> total = std::nullopt) {
    return accelerator.prepare(std::make_shared<LambdaLR>(sgd, std::move(factor), total));
  }

  std::unique_ptr<Communicator> alone = single_communicator();
  OriginLine model;
  torch::optim::SGD sgd;
  Accelerator accelerator;
  DistributedDataParallel& ddp = accelerator.prepare(model);
  AcceleratedOptimizer& optimizer = accelerator.prepare(sgd);
};

/// Two lines, each with its SGD, under one Accelerator.
struct TwoLines {
  explicit TwoLines(AcceleratorOptions options, double lr = 0.1, double momentum = 0.0, Communicator* axis = nullptr)
      : sgd_a(a.parameters(), torch::optim::SGDOptions(lr).momentum(momentum)),
        sgd_b(b.parameters(), torch::optim::SGDOptions(lr).momentum(momentum)),
        accelerator(std::move(options), axis != nullptr ? *axis : *alone) {}

  std::unique_ptr<Communicator> alone = single_communicator();
  OriginLine a, b;
  torch::optim::SGD sgd_a, sgd_b;
  Accelerator accelerator;
  DistributedDataParallel& ddp_a = accelerator.prepare(a);
  DistributedDataParallel& ddp_b = accelerator.prepare(b);
  AcceleratedOptimizer& step_a = accelerator.prepare(sgd_a);
  AcceleratedOptimizer& step_b = accelerator.prepare(sgd_b);
};

/// Place in a loop at which gradients are cleared: after the step, before the scope, or in it before the backward.
enum class ClearAt { after_step, before_scope, before_backward };

struct EightPoints {
  ClearAt clear = ClearAt::after_step;
  ReplaySwitches replay;
  bool own_backward = false;           ///< loss.backward() instead of the Accelerator's
  bool step_on_boundary_only = false;  ///< the loop itself checks sync_gradients()
};

/// x = 1..8 in batches of two, N = 4, SGD 0.02 from 0: one update. Returns w after it.
inline double run_eight_points(const EightPoints& how) {
  TrainedLine t({.gradient_accumulation_steps = 4, .replay = how.replay}, 0.02, 0.0);
  auto loader = t.accelerator.prepare(value_loader(8, {.batch_size = 2}));
  for (const at::Tensor& x : loader) {
    if (how.clear == ClearAt::before_scope) t.optimizer.zero_grad();
    const auto scope = t.accelerator.accumulate(t.model);
    if (how.clear == ClearAt::before_backward) t.optimizer.zero_grad();
    if (how.own_backward)
      (t.model.loss(x) / 4).backward();
    else
      t.accelerator.backward(t.model.loss(x));
    if (how.step_on_boundary_only && !t.accelerator.sync_gradients()) continue;
    t.optimizer.step();
    if (how.clear == ClearAt::after_step) t.optimizer.zero_grad();
  }
  return t.model.value();
}

/// Observations of a run of the ten-batch case, one entry per micro-step.
struct TenBatches {
  std::vector<int> boundaries;          ///< micro-steps, from 1
  std::vector<int> updates;             ///< micro-steps after which the parameter had changed
  std::vector<int> reductions;          ///< micro-steps in which buckets were reduced
  std::vector<double> divisors;         ///< raw gradient over what was added
  std::string schedule;                 ///< inner steps taken, one digit a micro-step
  std::vector<std::int64_t> rates;      ///< schedule position that each update used
  std::vector<double> after_epoch;      ///< w
  std::vector<std::size_t> updates_by;  ///< updates so far at each epoch's end
  double left = 0.0;                    ///< .grad after epoch 1
};

/// Ten batches of one sample, x = 1..10 on every rank, y = 2x, SGD 0.005.
inline TenBatches run_ten_batches(AcceleratorOptions options, Communicator& axis, int epochs, std::int64_t batches = 10,
                                  ClearAt clear = ClearAt::after_step) {
  TrainedLine t(std::move(options), 0.005, 0.0, &axis);
  OriginLine& model = t.model;
  auto constant = std::make_shared<LambdaLR>(t.sgd, [](std::int64_t) { return 1.0; });
  auto& scheduler = t.accelerator.prepare(constant);
  const std::int64_t batch = t.accelerator.state().options().split_batches ? axis.size() : 1;
  auto loader = t.accelerator.prepare(value_loader(batches * axis.size(), {.batch_size = batch}, axis.size()));
  TenBatches seen;
  int m = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const at::Tensor& x : loader) {
      ++m;
      if (clear == ClearAt::before_scope) t.optimizer.zero_grad();
      const auto scope = t.accelerator.accumulate(model);
      if (clear == ClearAt::before_backward) t.optimizer.zero_grad();
      const double before = model.gradient();
      const double start = model.value();
      const auto reduced = t.ddp.reductions();
      const at::Tensor loss = model.loss(x);
      t.accelerator.backward(loss);
      const double x0 = x.item<double>();
      seen.divisors.push_back(2 * x0 * x0 * (start - 2) / (model.gradient() - before));
      if (t.accelerator.sync_gradients()) seen.boundaries.push_back(m);
      if (t.ddp.reductions() != reduced) seen.reductions.push_back(m);
      const std::int64_t position = constant->position();
      t.optimizer.step();
      if (model.value() != start) {
        seen.updates.push_back(m);
        seen.rates.push_back(position);
      }
      scheduler.step();
      if (clear == ClearAt::after_step) t.optimizer.zero_grad();
      seen.schedule += std::to_string(constant->position());
    }
    seen.after_epoch.push_back(model.value());
    seen.updates_by.push_back(seen.updates.size());
    if (epoch == 0) seen.left = model.gradient();
  }
  return seen;
}

/// Linear(1, 2) without bias over single numbers, with the weights that seed 0 gives in float32.
struct Parity : torch::nn::Module {
  Parity() {
    const std::vector<double> start = {2.0 * 0.4962565899F - 1.0, 2.0 * 0.7682217956F - 1.0};
    w = register_parameter("w", at::tensor(start, at::kDouble).reshape({2, 1}));
  }
  /// Cross-entropy over all of the values, with their parity as label; sum or mean.
  at::Tensor loss(const at::Tensor& values, bool mean) {
    const at::Tensor labels = at::remainder(values, 2).to(at::kLong);
    return at::cross_entropy_loss(at::linear(values.unsqueeze(1), w), labels, {}, mean ? 1 : 2);
  }
  double first() const { return w[0].item<double>(); }
  double second() const { return w[1].item<double>(); }
  at::Tensor w;
};

/// The sample at index i is the sequence 1..i+1; a batch is its sequences one after another.
inline auto sequence_loader(std::int64_t samples, LoaderOptions options) {
  const auto fetch = [](const std::vector<std::int64_t>& indices) {
    std::vector<double> values;
    for (const std::int64_t each : indices)
      for (std::int64_t value = 1; value <= each + 1; ++value) values.push_back(static_cast<double>(value));
    return points(values);
  };
  return map_loader(samples, fetch, options);
}

struct Tokens {
  double first = 0.0;
  double second = 0.0;
  double loss = 0.0;  ///< as the recipe logs it
  double items = 0.0;
};

/// The documented recipe for samples of variable size: one group of `steps` batches, divided by the tokens of all.
inline Tokens run_token_recipe(Communicator& axis, std::int64_t samples, std::int64_t batch_size, std::int64_t steps) {
  Parity model;
  torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.08));
  Accelerator accelerator({.gradient_accumulation_steps = steps}, axis);
  accelerator.prepare(model);
  auto& optimizer = accelerator.prepare(sgd);
  auto loader = accelerator.prepare(sequence_loader(samples, {.batch_size = batch_size}));
  std::vector<at::Tensor> group;
  for (const at::Tensor& batch : loader) group.push_back(batch);
  double tokens = 0.0;
  for (const at::Tensor& batch : group) tokens += static_cast<double>(batch.numel());
  const auto world = static_cast<double>(accelerator.num_processes());
  const double n = static_cast<double>(steps);
  const at::Tensor items = accelerator.gather(at::full({}, tokens, at::kDouble)).sum();
  at::Tensor logged = at::full({}, 0.0, at::kDouble);
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::optional<accelerate::NoSyncScope> quiet;
    if (i + 1 < group.size()) quiet.emplace(accelerator.no_sync(model));
    const at::Tensor loss = model.loss(group[i], false) * n * world / items;
    accelerator.backward(loss);
    logged = logged + loss.detach();
  }
  optimizer.step();
  optimizer.zero_grad();
  const double sum = accelerator.gather(logged).sum().item<double>();
  return {model.first(), model.second(), sum / (world * n), items.item<double>()};
}

/// The same group with the mean of each batch's own mean, as a loop that ignores the sizes trains it.
inline Tokens run_mean_of_means(Communicator& axis, std::int64_t samples, std::int64_t batch_size, std::int64_t steps) {
  Parity model;
  torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.08));
  Accelerator accelerator({.gradient_accumulation_steps = steps}, axis);
  accelerator.prepare(model);
  auto& optimizer = accelerator.prepare(sgd);
  auto loader = accelerator.prepare(sequence_loader(samples, {.batch_size = batch_size}));
  at::Tensor logged = at::full({}, 0.0, at::kDouble);
  for (const at::Tensor& batch : loader) {
    const auto scope = accelerator.accumulate(model);
    const at::Tensor loss = model.loss(batch, true);
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    logged = logged + loss.detach() / steps;
  }
  return {model.first(), model.second(), accelerator.reduce(logged, Reduction::mean).item<double>(), 0.0};
}

}  // namespace accrue::test

// SPDX-License-Identifier: Apache-2.0
// MMEngine's documented loop for gradient accumulation, in C++. The Python it stands beside:
//
//   optim_wrapper = OptimWrapper(optimizer=SGD(model.parameters(), lr=0.005), accumulative_counts=4)
//   optim_wrapper.initialize_count_status(model, 0, max_iters)
//   for x, y in dataloader:
//       with optim_wrapper.optim_context(model):
//           loss = model(x, y)
//       optim_wrapper.update_params(loss)
//
// The data are ten batches of one sample, x = 1..10 and y = 2x; the model is one weight that begins at 0. Prints, for
// runs of one, two and three epochs, the micro-steps that updated and the last weight. Ends with status 1 if a weight
// is not what the closed form of this case says.
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdio>

#include "accrue/accumulation/mmengine/optim_wrapper.h"

namespace {

using accrue::StepOutcome;
using accrue::mmengine::OptimWrapper;

struct Line : torch::nn::Module {
  Line() { w = register_parameter("w", at::zeros({1}, at::kDouble)); }
  at::Tensor forward(double x, double y) { return (w * x - y).square().mean(); }
  at::Tensor w;
};

/// The weight after `epochs` epochs; accumulative_counts is 4.
double train(int epochs) {
  Line model;
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.005));
  OptimWrapper optim_wrapper(optimizer, {.accumulative_counts = 4});
  optim_wrapper.initialize_count_status(model, 0, /*max_counts=*/10 * epochs);

  std::printf("%d epoch%s, updates after micro-step", epochs, epochs == 1 ? "" : "s");
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (int x = 1; x <= 10; ++x) {
      at::Tensor loss;
      {
        auto context = optim_wrapper.optim_context(model);
        loss = model.forward(x, 2.0 * x);
      }
      if (optim_wrapper.update_params(loss) == StepOutcome::updated)
        std::printf(" %d", static_cast<int>(optim_wrapper.inner_count()));
    }
  }
  const double weight = model.w.item<double>();
  std::printf(": w = %.11f\n", weight);
  return weight;
}

/// Prints the divisor of the next micro-step in a run at `count` of `most`, in groups of three.
void show_counting(int count, int most) {
  Line model;
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.005));
  OptimWrapper optim_wrapper(optimizer, {.accumulative_counts = 3});
  optim_wrapper.initialize_count_status(model, count, most);
  const double scaled = optim_wrapper.scale_loss(at::zeros({}, at::kDouble) + 1.0).item<double>();
  std::printf("micro-step %d of %d, groups of 3: a loss of 1 becomes %.4f, %s\n", count + 1, most, scaled,
              optim_wrapper.should_sync() ? "an update follows" : "no update follows");
}

}  // namespace

int main() {
  show_counting(0, 100);
  show_counting(96, 100);
  show_counting(99, 100);
  // Each group multiplies w - 2 by 1 - 0.005 * sum(2 x^2) / divisor. Groups run across epochs; the last group of the
  // run, of two batches, is divided by two.
  const double across = 0.925 * 0.565 * 0.535 * 0.785 * 0.265;  // 1-4, 5-8, then 9, 10, 1, 2, then 3-6, 7-10
  const double last = 0.925 * 0.565 * 0.095;                    // 1-4, 5-8, then 9 and 10 by themselves
  const double expected[] = {2.0 - 2.0 * last, 2.0 - 2.0 * across, 2.0 - 2.0 * across * last};
  bool right = true;
  for (int epochs = 1; epochs <= 3; ++epochs) right &= std::abs(train(epochs) - expected[epochs - 1]) <= 1e-12;
  std::printf("%s\n", right ? "every weight is that of the closed form" : "a weight is not that of the closed form");
  return right ? 0 : 1;
}

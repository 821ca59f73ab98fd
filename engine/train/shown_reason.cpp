// SPDX-License-Identifier: Apache-2.0
#include "train/shown_reason.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "train/float64_copy.h"
#include "train/gradient_figures.h"

namespace accrue {
namespace {

using Mode = Float64Copy::Mode;

/// Two float64 gradients with a smaller difference are equal except for rounding: each addition errs by about 1e-16, so
/// this leaves room for millions of them.
constexpr double equal_in_float64 = 1e-9;

/// The library's code failed on the copy, on some rank.
struct NotShown {};

class Trials {
  template <typename Compute>
  auto on_all_ranks(Compute compute) {
    std::optional<decltype(compute())> computed;
    try {
      computed.emplace(compute());
    } catch (const std::exception&) {  // the library's code may not support float64
    }
    if (largest(training_, computed ? 0.0 : 1.0) > 0.0) throw NotShown();
    return std::move(*computed);
  }

 public:
  Trials(Training& training, const std::vector<MicroSamples>& window)
      : training_(training), window_(window), copy_(on_all_ranks([&] { return Float64Copy(training); })) {}

  /// Mean gradients of the window's micro-steps together, and of one batch, over all ranks.
  struct BothWays {
    at::Tensor split, joint;
    double lengths = 0.0;  ///< sum of the norms of the micro-steps' gradients
    bool equal() const { return relative_difference(split, joint) <= equal_in_float64; }
  };

  BothWays both_ways(Mode mode) {
    struct Sums {
      SampleGradient split, joint;
      double lengths = 0.0;
    };
    // split = sum over micro-steps of their gradients, joint = gradient of all samples in one batch, both over items.
    Sums sums = on_all_ranks([&] {
      Sums own{.joint = copy_.gradient(all_samples(), window_.back().micro_step, mode)};
      own.split = {at::zeros_like(own.joint.sum), 0.0};
      for (const MicroSamples& micro : window_) {
        const SampleGradient each = copy_.gradient(micro.samples, micro.micro_step, mode);
        own.split.sum.add_(each.sum);
        own.split.items += each.items;
        own.lengths += length_of(each.sum);
      }
      return own;
    });
    const double items = summed(training_, sums.joint.items);
    return {.split = SampleGradient{summed(training_, sums.split.sum), summed(training_, sums.split.items)}.mean(),
            .joint = SampleGradient{summed(training_, sums.joint.sum), items}.mean(),
            .lengths = summed(training_, sums.lengths) / std::max(items, 1.0)};
  }

  /// Whether another key changes the gradient.
  bool is_random(Mode mode) {
    return differ([&](const MicroSamples& micro) {
      // A negative key, which no micro-step of the run has.
      return std::pair(copy_.gradient(micro.samples, micro.micro_step, mode),
                       copy_.gradient(micro.samples, -micro.micro_step, mode));
    });
  }

  /// Whether the same key gives another gradient the second time.
  bool is_unrepeatable() {
    return differ([&](const MicroSamples& micro) {
      return std::pair(copy_.gradient(micro.samples, micro.micro_step, Mode::training),
                       copy_.gradient(micro.samples, micro.micro_step, Mode::training));
    });
  }

  /// Whether the buffers after a forward change the next one's gradient.
  bool reads_buffers() {
    return copy_.has_buffers() && differ([&](const MicroSamples& micro) {
             SampleGradient first = copy_.gradient(micro.samples, micro.micro_step, Mode::training);
             return std::pair(std::move(first), copy_.gradient(micro.samples, micro.micro_step, Mode::training, true));
           });
  }

  /// Whether samples processed one at a time have another gradient than together.
  bool couples_samples() {
    return differ([&](const MicroSamples&) {
      const auto samples = all_samples();
      const SampleGradient together = copy_.gradient(samples, 0, Mode::evaluation);
      SampleGradient alone{at::zeros_like(together.sum), together.items};
      for (const std::int64_t sample : samples) alone.sum.add_(copy_.gradient({sample}, 0, Mode::evaluation).sum);
      // Per-sample gradients add up to the batch's unless a sample's loss depends on the others.
      return std::pair(together, alone);
    });
  }

 private:
  /// Whether two gradients of the first micro-step differ on any rank.
  template <typename Compute>
  bool differ(Compute compute) {
    const double difference = on_all_ranks([&] {
      const auto [one, other] = compute(window_.front());
      return relative_difference(one.sum, other.sum);
    });
    return largest(training_, difference) > equal_in_float64;
  }

  std::vector<std::int64_t> all_samples() const {
    std::vector<std::int64_t> all;
    for (const MicroSamples& micro : window_) all.insert(all.end(), micro.samples.begin(), micro.samples.end());
    return all;
  }

  Training& training_;
  const std::vector<MicroSamples>& window_;
  Float64Copy copy_;
};

/// Returns it in parameter order, without the arena's padding.
at::Tensor by_parameter(const Training& training, const at::Tensor& flat) {
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < training.model.names().size(); ++i)
    parts.push_back(training.model.slice(flat, i).reshape({-1}));
  return at::cat(parts);
}

/// In evaluation mode there is neither dropout nor batch statistics. If the gradients are equal then, one of the two is
/// the cause, and switching off dropout alone tells which.
ExactnessReason removed_reason(Trials& trials) {
  if (!trials.both_ways(Mode::evaluation).equal()) {
    if (trials.is_random(Mode::evaluation)) return ExactnessReason::unrepeatable;
    return trials.couples_samples() ? ExactnessReason::coupled_samples : ExactnessReason::unexplained;
  }
  if (!trials.is_random(Mode::training)) return ExactnessReason::batch_norm;
  // A model may have both. If dropout is not a separate layer, it cannot be switched off alone.
  if (trials.is_random(Mode::without_dropout) || trials.both_ways(Mode::without_dropout).equal())
    return ExactnessReason::dropout;
  return ExactnessReason::batch_norm;
}

}  // namespace

double rounding_bound(double tolerance, double lengths, double length) {
  // Each micro-step's gradient carries an error of about tolerance * its norm, which stays if the gradients cancel:
  // sum |g_i| / |sum g_i| is the condition number of the sum.
  return 4.0 * tolerance * (length > 0.0 ? std::max(1.0, lengths / length) : 1.0);
}

ExactnessReason shown_reason(Training& training, const std::vector<MicroSamples>& window, const at::Tensor& found,
                             double tolerance) {
  try {
    Trials trials(training, window);
    const Trials::BothWays trained = trials.both_ways(Mode::training);
    if (!trained.equal()) return removed_reason(trials);
    const double rounding = largest(training, relative_difference(by_parameter(training, found), trained.joint));
    return rounding <= rounding_bound(tolerance, trained.lengths, length_of(trained.joint))
               ? ExactnessReason::order_of_sums
               : ExactnessReason::unexplained;
  } catch (const NotShown&) {
    return ExactnessReason::unexplained;
  }
}

ExactnessReason shown_change(Training& training, const std::vector<MicroSamples>& window) {
  try {
    Trials trials(training, window);
    if (trials.is_unrepeatable()) return ExactnessReason::unrepeatable;
    return trials.reads_buffers() ? ExactnessReason::own_buffers : ExactnessReason::unexplained;
  } catch (const NotShown&) {
    return ExactnessReason::unexplained;
  }
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Rules: kernels/element_rules.inl.h, with the factors of update_rules.h. Norms of LAMB and LARS are per parameter, of
// which a rank may hold a part: sums of squares are completed over the ranks before their roots are taken.
#include "optim/flat_colossalai.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "optim/file_tier.h"
#include "optim/flat_base.h"
#include "optim/update_rules.h"

namespace accrue {
namespace {

/// Whether moments are corrected by 1 - beta^t. Only Lamb leaves its own uncorrected by default.
bool corrects_bias(const OptimizerSpec& spec) {
  return spec.bias_correction.value_or(spec.kind != OptimizerKind::lamb);
}

MomentsSettings settings_of(const OptimizerSpec& spec, const Stretch& stretch) {
  return {.lr = stretch.lr,
          .beta1 = spec.beta1,
          .beta2 = spec.beta2,
          .eps = epsilon_of(spec),
          .weight_decay = stretch.weight_decay,
          .adamw_mode = spec.adamw_mode,
          .bias_correction = corrects_bias(spec),
          .grad_averaging = spec.grad_averaging};
}

/// CPUAdam, and HybridAdam on the CPU. The states may be in files. Under ZeRO numel is that of this rank's share, and
/// the fraction in files is one of the share.
class FlatCpuAdam final : public FlatBase {
 public:
  FlatCpuAdam(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
              at::TensorOptions options, UpdatePath path)
      : FlatBase(spec, std::move(segments), numel, options),
        path_(path),
        in_files_(elements_in_files(spec, numel)),
        first_(tiered_zeros(numel, in_files_, options, spec.nvme_offload_dir)),
        second_(tiered_zeros(numel, in_files_, options, spec.nvme_offload_dir)) {}

  std::vector<std::pair<std::string, at::Tensor>> state() override {
    return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
  }
  std::int64_t bytes_in_files() const override {
    return 2 * in_files_ * static_cast<std::int64_t>(first_.element_size());
  }

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    const auto stretches = begin_step(rates, ranges);
    // Windows over the states bound the memory that their pages take; a stretch may be cut by them, as the rule is
    // elementwise.
    if (in_files_ == 0) return update(params, grads, stretches, {0, params.numel()}, grad_scale);
    for_tier_windows(first_.numel(), in_files_, {first_, second_},
                     [&](const FlatRange& window) { update(params, grads, stretches, window, grad_scale); });
  }

 private:
  void update(const at::Tensor& params, const at::Tensor& grads, const std::vector<Stretch>& stretches,
              const FlatRange& window, double grad_scale) {
    std::vector<Piece<AdamWStep>> pieces;
    for (const Stretch& stretch : stretches)
      if (const auto part = common_part(stretch.range, window))
        pieces.push_back(
            {{part_of(params, *part), part_of(grads, *part), part_of(first_, *part), part_of(second_, *part)},
             adamw_step(settings_of(spec_, stretch), stretch.steps, grad_scale)});
    adamw_pass(pieces, path_);
  }

  UpdatePath path_;
  std::int64_t in_files_;
  at::Tensor first_;
  at::Tensor second_;
};

/// FusedAdam, and HybridAdam on a device. It counts the steps of all its parameters together.
class FlatFusedAdam final : public MomentsBase {
 public:
  FlatFusedAdam(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
                at::TensorOptions options, UpdatePath path)
      : MomentsBase(spec, std::move(segments), numel, options), path_(path) {}

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    std::vector<Piece<MomentsStep>> pieces;
    for (const Stretch& stretch : begin_step(rates, ranges))
      pieces.push_back({{part_of(params, stretch.range), part_of(grads, stretch.range), part_of(first_, stretch.range),
                         part_of(second_, stretch.range)},
                        moments_step(settings_of(spec_, stretch), steps(), grad_scale)});
    fused_adam_pass(pieces, path_);
  }

 private:
  UpdatePath path_;
};

/// FusedSgdRule. A segment's first update fills its buffer with the gradient: t counts the update that is being made,
/// so it is 1 then.
class FlatFusedSgd final : public MomentumBase {
 public:
  FlatFusedSgd(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
               at::TensorOptions options, UpdatePath path)
      : MomentumBase(spec, std::move(segments), numel, options), path_(path) {}

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    std::vector<Piece<FusedSgdStep>> pieces;
    for (const Stretch& stretch : begin_step(rates, ranges)) {
      const SgdSettings by{.lr = stretch.lr,
                           .momentum = spec_.momentum,
                           .dampening = spec_.dampening,
                           .weight_decay = stretch.weight_decay,
                           .nesterov = spec_.nesterov,
                           .wd_after_momentum = spec_.wd_after_momentum};
      pieces.push_back(
          {{part_of(params, stretch.range), part_of(grads, stretch.range), part_of(buffer_, stretch.range), {}},
           fused_sgd_step(by, stretch.steps == 1, grad_scale)});
    }
    fused_sgd_pass(pieces, path_);
  }

 private:
  UpdatePath path_;
};

/// Sums of squares by parameter, [segments, 2] in float64: |p|^2, and |u|^2 (LAMB) or |g|^2 (LARS). Those of a rank's
/// own pieces are summed by segment and completed over the ranks. A segment that this rank does not reach adds 0.
class ParameterSums {
 public:
  explicit ParameterSums(std::size_t segments, at::Device device)
      : sums_(at::zeros({static_cast<std::int64_t>(segments), 2}, at::kDouble)), device_(device) {}

  /// rows: [stretches, 2].
  void add(const std::vector<Stretch>& stretches, const at::Tensor& rows) {
    // A segment may be in several stretches; they are added in order of their places.
    const at::Tensor own = rows.cpu().contiguous();
    double* const sums = sums_.mutable_data_ptr<double>();
    for (std::size_t i = 0; i < stretches.size(); ++i)
      for (std::size_t column = 0; column < 2; ++column)
        sums[2 * stretches[i].segment + column] += own.const_data_ptr<double>()[2 * i + column];
  }
  void complete(const CompleteSums& how) {
    if (!how) return;
    at::Tensor on_device = sums_.to(device_);
    how(on_device);
    sums_ = on_device.cpu();
  }
  SquareSums of(const Stretch& stretch) const {
    const double* const row = sums_.const_data_ptr<double>() + 2 * stretch.segment;
    return {.params = row[0], .steps = row[1]};
  }

 private:
  at::Tensor sums_;
  at::Device device_;
};

/// Lamb and FusedLAMB: p = p - rate r u in two passes, because r = |p| / |u| of the whole parameter comes between them.
/// u takes t from the calls of step() in FusedLAMB, as upstream's groups do. Lamb's u takes none: its rate is
/// corrected, by the segment's own t.
class FlatLamb final : public MomentsBase {
 public:
  FlatLamb(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
           at::TensorOptions options, UpdatePath path)
      : MomentsBase(spec, std::move(segments), numel, options), path_(path) {}

  void set_complete_sums(CompleteSums complete) override { complete_ = std::move(complete); }

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    if (fused()) {
      // |grad_scale| |g|: the norm of the gradients as the pass will see them.
      const double norm = rates.gradient_norm.value_or(std::sqrt(square_sum(grads, ranges)) * std::abs(grad_scale));
      grad_scale *= lamb_clip(norm, spec_.max_grad_norm);
    }
    // By segment, because a sum of squares belongs to one parameter.
    const auto stretches = begin_step(rates, ranges, Stretches::by_segment);
    std::vector<Piece<MomentsStep>> pieces;
    for (const Stretch& stretch : stretches)
      pieces.push_back({{part_of(params, stretch.range), part_of(grads, stretch.range), part_of(first_, stretch.range),
                         part_of(second_, stretch.range)},
                        step_of(stretch, grad_scale)});
    ParameterSums sums(this->segments().size(), params.device());
    sums.add(stretches, lamb_moments_pass(pieces, path_));
    sums.complete(complete_);
    std::vector<double> step_rates;
    for (const Stretch& stretch : stretches) step_rates.push_back(rate_of(stretch, sums.of(stretch)));
    lamb_apply_pass(pieces, step_rates, path_);
  }

 private:
  bool fused() const { return spec_.kind == OptimizerKind::fused_lamb; }
  MomentsStep step_of(const Stretch& stretch, double grad_scale) const {
    MomentsSettings by = settings_of(spec_, stretch);
    if (!fused()) {  // it has one mode, and corrects the rate
      by.adamw_mode = by.grad_averaging = true;
      by.bias_correction = false;
    }
    return moments_step(by, steps(), grad_scale);
  }
  /// lr r, with the trust ratio r = |p| / |u|, or 1 for parameters that the rule does not scale.
  double rate_of(const Stretch& stretch, const SquareSums& sums) const {
    if (!fused()) return lamb_rate(settings_of(spec_, stretch), stretch.steps) * (spec_.adam ? 1.0 : trust_ratio(sums));
    return stretch.lr * (spec_.use_nvlamb || stretch.weight_decay != 0.0 ? trust_ratio(sums) : 1.0);
  }

  UpdatePath path_;
  CompleteSums complete_;
};

/// Lars: |p|^2 and |g|^2 in a first pass, which fix each parameter's rate, then the update. The first pass reads the
/// gradients unscaled; lars_step() puts |grad_scale| into their norm.
class FlatLars final : public MomentumBase {
 public:
  FlatLars(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
           at::TensorOptions options, UpdatePath path)
      : MomentumBase(spec, std::move(segments), numel, options), path_(path) {}

  void set_complete_sums(CompleteSums complete) override { complete_ = std::move(complete); }

  void step(at::Tensor& params, const at::Tensor& grads, const UpdateRates& rates, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    const auto stretches = begin_step(rates, ranges, Stretches::by_segment);
    std::vector<Piece<LarsStep>> pieces;
    for (const Stretch& stretch : stretches)
      pieces.push_back(
          {{part_of(params, stretch.range), part_of(grads, stretch.range), part_of(buffer_, stretch.range), {}}, {}});
    ParameterSums sums(this->segments().size(), params.device());
    sums.add(stretches, lars_sums_pass(pieces, path_));
    sums.complete(complete_);
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const LarsSettings by{.lr = stretches[i].lr,
                            .momentum = spec_.momentum,
                            .eeta = spec_.eeta,
                            .weight_decay = stretches[i].weight_decay,
                            .epsilon = epsilon_of(spec_)};
      pieces[i].step = lars_step(by, sums.of(stretches[i]), grad_scale);
    }
    lars_pass(pieces, path_);
  }

 private:
  UpdatePath path_;
  CompleteSums complete_;
};

}  // namespace

std::unique_ptr<FlatOptimizer> make_colossalai_optimizer(const OptimizerSpec& spec,
                                                         std::vector<OptimizerSegment> segments, std::int64_t numel,
                                                         at::TensorOptions options, UpdatePath path) {
  const auto make = [&]<typename Flat>(std::type_identity<Flat>) -> std::unique_ptr<FlatOptimizer> {
    return std::make_unique<Flat>(spec, std::move(segments), numel, options, path);
  };
  switch (spec.kind) {
    case OptimizerKind::cpu_adam:
      return make(std::type_identity<FlatCpuAdam>{});
    case OptimizerKind::hybrid_adam:
      if (options.device().is_cpu()) return make(std::type_identity<FlatCpuAdam>{});
      return make(std::type_identity<FlatFusedAdam>{});
    case OptimizerKind::fused_adam:
      return make(std::type_identity<FlatFusedAdam>{});
    case OptimizerKind::fused_sgd:
      return make(std::type_identity<FlatFusedSgd>{});
    case OptimizerKind::lamb:
    case OptimizerKind::fused_lamb:
      return make(std::type_identity<FlatLamb>{});
    case OptimizerKind::lars:
      return make(std::type_identity<FlatLars>{});
    case OptimizerKind::sgd:
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      break;
  }
  throw std::logic_error("not one of Colossal-AI's optimizers");
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Every rule of Colossal-AI's optimizers, as a spec for flat memory and as a class.
#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <vector>

#include "accrue/optim/cpu_adam.h"
#include "accrue/optim/fused_adam.h"
#include "accrue/optim/fused_lamb.h"
#include "accrue/optim/fused_sgd.h"
#include "accrue/optim/hybrid_adam.h"
#include "accrue/optim/lamb.h"
#include "accrue/optim/lars.h"
#include "accrue/run/fields/spec.h"

namespace accrue::test {

/// Makes an optimizer of a class over some parameters, one group each.
using MakeClass = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

template <typename Class, typename Options>
MakeClass class_with(Options options) {
  return [options](std::vector<at::Tensor> params) { return std::make_unique<Class>(std::move(params), options); };
}

struct Rule {
  const char* name;
  OptimizerSpec spec;
  MakeClass make;
};

/// Every rule with the settings that change it.
inline std::vector<Rule> rules() {
  using K = OptimizerKind;
  return {
      {"CPUAdam",
       {.kind = K::cpu_adam, .lr = .1, .weight_decay = .1},
       class_with<CPUAdam>(CPUAdamOptions(.1).weight_decay(.1))},
      {"CPUAdam, L2",
       {.kind = K::cpu_adam, .lr = .1, .weight_decay = .1, .adamw_mode = false},
       class_with<CPUAdam>(CPUAdamOptions(.1).weight_decay(.1).adamw_mode(false))},
      {"CPUAdam, uncorrected",
       {.kind = K::cpu_adam, .lr = .1, .weight_decay = .1, .bias_correction = false},
       class_with<CPUAdam>(CPUAdamOptions(.1).weight_decay(.1).bias_correction(false))},
      {"HybridAdam",
       {.kind = K::hybrid_adam, .lr = .1, .weight_decay = .1},
       class_with<HybridAdam>(HybridAdamOptions(.1).weight_decay(.1))},
      {"FusedAdam",
       {.kind = K::fused_adam, .lr = .1, .weight_decay = .1},
       class_with<FusedAdam>(FusedAdamOptions(.1).weight_decay(.1))},
      {"FusedAdam, L2",
       {.kind = K::fused_adam, .lr = .1, .weight_decay = .1, .adamw_mode = false},
       class_with<FusedAdam>(FusedAdamOptions(.1).weight_decay(.1).adamw_mode(false))},
      {"FusedAdam, uncorrected",
       {.kind = K::fused_adam, .lr = .1, .weight_decay = .1, .bias_correction = false},
       class_with<FusedAdam>(FusedAdamOptions(.1).weight_decay(.1).bias_correction(false))},
      {"FusedSGD",
       {.kind = K::fused_sgd, .lr = .1, .weight_decay = .1, .momentum = .9},
       class_with<FusedSGD>(FusedSGDOptions(.1).weight_decay(.1).momentum(.9))},
      {"FusedSGD, damped",
       {.kind = K::fused_sgd, .lr = .1, .weight_decay = .1, .momentum = .9, .dampening = .25},
       class_with<FusedSGD>(FusedSGDOptions(.1).weight_decay(.1).momentum(.9).dampening(.25))},
      {"FusedSGD, Nesterov",
       {.kind = K::fused_sgd, .lr = .1, .weight_decay = .1, .momentum = .9, .nesterov = true},
       class_with<FusedSGD>(FusedSGDOptions(.1).weight_decay(.1).momentum(.9).nesterov(true))},
      {"FusedSGD, plain",
       {.kind = K::fused_sgd, .lr = .1, .weight_decay = .1},
       class_with<FusedSGD>(FusedSGDOptions(.1).weight_decay(.1))},
      {"FusedSGD, late decay",
       {.kind = K::fused_sgd, .lr = .1, .weight_decay = .1, .momentum = .9, .wd_after_momentum = true},
       class_with<FusedSGD>(FusedSGDOptions(.1).weight_decay(.1).momentum(.9).wd_after_momentum(true))},
      {"Lamb", {.kind = K::lamb, .lr = .01, .weight_decay = .1}, class_with<Lamb>(LambOptions(.01).weight_decay(.1))},
      {"Lamb, corrected",
       {.kind = K::lamb, .lr = .01, .weight_decay = .1, .bias_correction = true},
       class_with<Lamb>(LambOptions(.01).weight_decay(.1).bias_correction(true))},
      {"Lamb, as Adam",
       {.kind = K::lamb, .lr = .01, .weight_decay = .1, .adam = true},
       class_with<Lamb>(LambOptions(.01).weight_decay(.1).adam(true))},
      {"FusedLAMB",
       {.kind = K::fused_lamb, .lr = .01, .weight_decay = .01},
       class_with<FusedLAMB>(FusedLAMBOptions(.01))},
      {"FusedLAMB, L2",
       {.kind = K::fused_lamb, .lr = .01, .weight_decay = .1, .adamw_mode = false, .grad_averaging = false},
       class_with<FusedLAMB>(FusedLAMBOptions(.01).weight_decay(.1).adam_w_mode(false).grad_averaging(false))},
      {"FusedLAMB, NVLAMB",
       {.kind = K::fused_lamb, .lr = .01, .bias_correction = false, .max_grad_norm = 0.5, .use_nvlamb = true},
       class_with<FusedLAMB>(
           FusedLAMBOptions(.01).weight_decay(0).bias_correction(false).max_grad_norm(0.5).use_nvlamb(true))},
      {"Lars",
       {.kind = K::lars, .lr = .5, .weight_decay = .1, .momentum = .9},
       class_with<Lars>(LarsOptions(.5).weight_decay(.1).momentum(.9))},
      {"Lars, plain",
       {.kind = K::lars, .lr = .5, .eeta = .02, .eps = .001},
       class_with<Lars>(LarsOptions(.5).eeta(.02).epsilon(.001))},
  };
}

}  // namespace accrue::test

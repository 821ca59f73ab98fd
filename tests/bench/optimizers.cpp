// SPDX-License-Identifier: Apache-2.0
// Colossal-AI's optimizers against PyTorch's own form of the same rule, on 30 million float32 parameters in the tensors
// of a GPT: at::_fused_adamw_, at::_fused_adam_ and at::_fused_sgd_, and foreach operators for LAMB and LARS. The two
// take turns in one process; what is printed is the median time of each and their ratio, theirs over ours.
//
//   optimizers [--check] [--cuda] [rounds]     default 15
//
// --check ends with 1 if a ratio is too low: below 1.0 for Adam and SGD, or below 2.0 for LAMB and LARS. --cuda
// takes the first CUDA device instead of the CPU.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "accrue/optim/cpu_adam.h"
#include "accrue/optim/fused_adam.h"
#include "accrue/optim/fused_lamb.h"
#include "accrue/optim/fused_sgd.h"
#include "accrue/optim/hybrid_adam.h"
#include "accrue/optim/lamb.h"
#include "accrue/optim/lars.h"
#include "comm/device_loader.h"

namespace {

using Tensors = std::vector<at::Tensor>;

at::Device device = at::kCPU;

/// Twelve matrices of a block and its vectors, over again, up to 30 million numbers.
Tensors tensors(bool drawn) {
  Tensors list;
  std::int64_t left = 30'000'000;
  const std::int64_t width = 768;
  while (left > 0)
    for (const std::int64_t size : {3 * width * width, 3 * width, width * width, width, 4 * width * width, 4 * width,
                                    4 * width * width, width, width, width}) {
      const std::int64_t numel = std::min(size, left);
      if (numel == 0) break;
      list.push_back(drawn ? at::randn({numel}, device) * 0.02 : at::zeros({numel}, device));
      left -= numel;
    }
  return list;
}

struct Theirs {
  Tensors params = tensors(true), grads = tensors(true), first = tensors(false), second = tensors(false), steps;
  Theirs() {
    for (std::size_t i = 0; i < params.size(); ++i) steps.push_back(at::zeros({}, device));
  }
  void adam(bool adamw) {
    at::_foreach_add_(steps, 1);
    if (adamw)
      at::_fused_adamw_(params, grads, first, second, {}, steps, 1e-3, .9, .999, .1, 1e-8, false, false);
    else
      at::_fused_adam_(params, grads, first, second, {}, steps, 1e-3, .9, .999, .1, 1e-8, false, false);
  }
  void sgd(double momentum) { at::_fused_sgd_(params, grads, first, .1, momentum, 1e-3, 0.0, false, false, false); }
  /// LAMB as optimizers in Python write it with foreach; the norms stay tensors, so nothing is waited for.
  void lamb(bool corrected) {
    at::_foreach_lerp_(first, grads, 0.1);
    at::_foreach_mul_(second, 0.999);
    at::_foreach_addcmul_(second, grads, grads, 0.001);
    Tensors divisor = corrected ? at::_foreach_div(second, at::Scalar(0.001)) : second;
    Tensors root = at::_foreach_sqrt(divisor);
    at::_foreach_add_(root, 1e-6);
    Tensors step = at::_foreach_div(first, root);
    at::_foreach_add_(step, params, 0.1);
    Tensors ratio = at::_foreach_norm(params, 2);
    at::_foreach_div_(ratio, at::_foreach_norm(step, 2));
    at::_foreach_mul_(ratio, -1e-3);
    at::_foreach_mul_(step, ratio);
    at::_foreach_add_(params, step);
  }
  void fused_lamb() {
    Tensors norms = at::_foreach_norm(grads, 2);
    const double norm = at::stack(norms).norm().item<double>();
    if (norm > 1.0) at::_foreach_mul_(grads, 1.0 / norm);
    lamb(true);
  }
  void lars() {
    Tensors of_params = at::_foreach_norm(params, 2), of_grads = at::_foreach_norm(grads, 2);
    at::_foreach_add_(of_grads, of_params, 0.1);
    at::_foreach_mul_(of_params, 1e-3);
    at::_foreach_div_(of_params, of_grads);
    at::_foreach_clamp_max_(of_params, 50);
    Tensors change = at::_foreach_add(grads, params, 0.1);
    at::_foreach_clamp_min_(change, -10);
    at::_foreach_clamp_max_(change, 10);
    at::_foreach_mul_(first, 0.9);
    at::_foreach_add_(first, change);
    at::_foreach_mul_(of_params, -1e-3);
    Tensors step = at::_foreach_mul(first, of_params);
    at::_foreach_add_(params, step);
  }
};

double timed(const std::function<void()>& body) {
  const auto wait = [] {
    if (device.is_cuda()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  };
  wait();
  const auto begin = std::chrono::steady_clock::now();
  body();
  wait();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

constexpr double least_of_fused = 1.0, least_of_foreach = 2.0;
bool all_fast = true;

template <typename Class, typename Options>
void compare(const char* name, const char* beside, double least, int rounds, const Options& options,
             const std::function<void(Theirs&)>& step) {
  Theirs theirs;
  Tensors params = tensors(true);
  const Tensors grads = tensors(true);
  for (std::size_t i = 0; i < params.size(); ++i) params[i].requires_grad_().mutable_grad() = grads[i];
  Class ours(params, options);
  std::vector<double> of_ours, of_theirs;
  for (int round = -2; round < rounds; ++round) {
    const double theirs_ms = timed([&] { step(theirs); }), ours_ms = timed([&] { ours.step(); });
    if (round < 0) continue;
    of_ours.push_back(ours_ms);
    of_theirs.push_back(theirs_ms);
  }
  const double ratio = median(of_theirs) / median(of_ours);
  const bool fast = ratio >= least;
  all_fast = all_fast && fast;
  std::printf("%-22s %8.2f ms   %-18s %8.2f ms   ratio %.2f%s\n", name, median(of_ours), beside, median(of_theirs),
              ratio, fast ? "" : "  too low");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace accrue;
  bool check = false;
  int rounds = 15;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--check") == 0) {
      check = true;
    } else if (std::strcmp(argv[i], "--cuda") == 0) {
      device = at::Device(at::kCUDA, static_cast<at::DeviceIndex>(own_cuda_device(0).value()));
    } else {
      rounds = std::max(1, std::atoi(argv[i]));
    }
  }
  const at::NoGradGuard no_grad;
  std::printf("30,000,000 float32 parameters on %s, %d threads, median of %d\n", device.str().c_str(),
              at::get_num_threads(), rounds);
  const auto adamw = [](Theirs& theirs) { theirs.adam(true); };
  const auto adam = [](Theirs& theirs) { theirs.adam(false); };
  compare<CPUAdam>("CPUAdam", "_fused_adamw_", least_of_fused, rounds, CPUAdamOptions().weight_decay(.1), adamw);
  compare<CPUAdam>("CPUAdam, L2", "_fused_adam_", least_of_fused, rounds,
                   CPUAdamOptions().weight_decay(.1).adamw_mode(false), adam);
  compare<HybridAdam>("HybridAdam", "_fused_adamw_", least_of_fused, rounds, HybridAdamOptions().weight_decay(.1),
                      adamw);
  compare<FusedAdam>("FusedAdam", "_fused_adamw_", least_of_fused, rounds, FusedAdamOptions().weight_decay(.1), adamw);
  compare<FusedAdam>("FusedAdam, L2", "_fused_adam_", least_of_fused, rounds,
                     FusedAdamOptions().weight_decay(.1).adamw_mode(false), adam);
  compare<FusedSGD>("FusedSGD, momentum", "_fused_sgd_", least_of_fused, rounds,
                    FusedSGDOptions(1e-3).weight_decay(.1).momentum(.9), [](Theirs& theirs) { theirs.sgd(.9); });
  compare<Lamb>("Lamb", "foreach", least_of_foreach, rounds, LambOptions().weight_decay(.1),
                [](Theirs& theirs) { theirs.lamb(false); });
  compare<FusedLAMB>("FusedLAMB", "foreach", least_of_foreach, rounds, FusedLAMBOptions().weight_decay(.1),
                     [](Theirs& theirs) { theirs.fused_lamb(); });
  compare<Lars>("Lars", "foreach", least_of_foreach, rounds, LarsOptions().weight_decay(.1).momentum(.9),
                [](Theirs& theirs) { theirs.lars(); });
  return check && !all_fast ? 1 : 0;
}

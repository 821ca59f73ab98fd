// SPDX-License-Identifier: Apache-2.0
// The bodies of a device's kernels: what each thread of each block does. A kernel is a sequence of steps, each taken by
// all threads of a block before the next begins, so that whoever can run a step for every thread can run a kernel:
// engine/cuda does on a device, and tests do on the CPU, in any order of the threads.
//
// Numbers are dealt to threads in turn, and sums of squares are folded in halves, so a result depends on the number of
// elements alone: not on the device, nor on which block is done first.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/device_updates.h"
#include "kernels/element_rules.inl.h"
#include "kernels/half_number.inl.h"

namespace accrue {
namespace {

constexpr int threads_per_block = 256;
constexpr std::int64_t numbers_per_thread = 4;

/// Of a pass over n numbers; 0 for none. More than this many blocks would only wait for the others.
inline std::int64_t blocks_for(std::int64_t n) {
  constexpr std::int64_t per_block = threads_per_block * numbers_per_thread;
  return std::min<std::int64_t>((n + per_block - 1) / per_block, parts_of_sums);
}

/// What the threads of a block share while they add up.
struct BlockSums {
  double params[threads_per_block];
  double steps[threads_per_block];
};

template <typename T>
ACCRUE_HOST_DEVICE T number_at(const DeviceColumn& column, std::int64_t i) {
  if constexpr (std::is_same_v<T, float>) {
    if (column.type == NumberType::float16) return widened(static_cast<const std::uint16_t*>(column.data)[i]);
    if (column.type == NumberType::bfloat16) return widened_bfloat16(static_cast<const std::uint16_t*>(column.data)[i]);
  }
  return static_cast<const T*>(column.data)[i];
}

template <typename T>
ACCRUE_HOST_DEVICE void put(const DeviceColumn& column, std::int64_t i, T number) {
  if constexpr (std::is_same_v<T, float>) {
    if (column.type == NumberType::float16) {
      static_cast<std::uint16_t*>(column.data)[i] = narrowed(number);
      return;
    }
    if (column.type == NumberType::bfloat16) {
      static_cast<std::uint16_t*>(column.data)[i] = narrowed_bfloat16(number);
      return;
    }
  }
  static_cast<T*>(column.data)[i] = number;
}

/// use(i) for every number that belongs to the thread.
template <typename Block, typename Use>
ACCRUE_HOST_DEVICE void numbers_of(const Block& block, int thread, std::int64_t n, const Use& use) {
  const std::int64_t stride = block.count() * threads_per_block;
  for (std::int64_t i = block.index() * threads_per_block + thread; i < n; i += stride) use(i);
}

/// Adds the threads' sums up and writes those of the block.
template <typename Block>
ACCRUE_HOST_DEVICE void fold(const Block& block, double* to) {
  BlockSums& sums = block.sums();
  for (int half = threads_per_block / 2; half > 0; half /= 2)
    block.each_thread([&](int thread) {
      if (thread >= half) return;
      sums.params[thread] += sums.params[thread + half];
      sums.steps[thread] += sums.steps[thread + half];
    });
  block.each_thread([&](int thread) {
    if (thread > 0) return;
    to[0] = sums.params[0];
    to[1] = sums.steps[0];
  });
}

template <typename T, typename Rule>
struct UpdateKernel {
  static constexpr bool has_moments = std::is_invocable_v<const Rule&, T&, T, T&, T&>;

  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    block.each_thread([&](int thread) { numbers_of(block, thread, columns.n, [&](std::int64_t i) { update(i); }); });
  }

  ACCRUE_HOST_DEVICE void update(std::int64_t i) const {
    T p = number_at<T>(columns.params, i);
    const T g = number_at<T>(columns.grads, i);
    if constexpr (has_moments) {
      T m = number_at<T>(columns.first, i), v = number_at<T>(columns.second, i);
      rule(p, g, m, v);
      put(columns.first, i, m);
      put(columns.second, i, v);
    } else if (columns.first.data == nullptr) {
      rule(p, g);
    } else {
      T buffer = number_at<T>(columns.first, i);
      rule(p, g, buffer);
      put(columns.first, i, buffer);
    }
    put(columns.params, i, p);
  }

  DeviceColumns columns;
  Rule rule;
};

template <typename T>
struct LambMomentsKernel {
  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    BlockSums& sums = block.sums();
    block.each_thread([&](int thread) {
      double of_params = 0.0, of_steps = 0.0;
      numbers_of(block, thread, columns.n, [&](std::int64_t i) {
        const T p = number_at<T>(columns.params, i);
        T m = number_at<T>(columns.first, i), v = number_at<T>(columns.second, i);
        const T u = rule(p, number_at<T>(columns.grads, i), m, v);
        put(columns.first, i, m);
        put(columns.second, i, v);
        of_params += static_cast<double>(p) * static_cast<double>(p);
        of_steps += static_cast<double>(u) * static_cast<double>(u);
      });
      sums.params[thread] = of_params;
      sums.steps[thread] = of_steps;
    });
    fold(block, parts + 2 * block.index());
  }

  DeviceColumns columns;
  MomentsRule<T> rule;
  double* parts;
};

template <typename T>
struct LambApplyKernel {
  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    block.each_thread([&](int thread) {
      numbers_of(block, thread, columns.n, [&](std::int64_t i) {
        T p = number_at<T>(columns.params, i);
        rule(p, number_at<T>(columns.first, i), number_at<T>(columns.second, i));
        put(columns.params, i, p);
      });
    });
  }

  DeviceColumns columns;
  LambRule<T> rule;
};

template <typename T>
struct SquareSumsKernel {
  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    BlockSums& sums = block.sums();
    block.each_thread([&](int thread) {
      double of_params = 0.0, of_grads = 0.0;
      numbers_of(block, thread, columns.n, [&](std::int64_t i) {
        const auto p = static_cast<double>(number_at<T>(columns.params, i));
        of_params += p * p;
        if (columns.grads.data == nullptr) return;
        const auto g = static_cast<double>(number_at<T>(columns.grads, i));
        of_grads += g * g;
      });
      sums.params[thread] = of_params;
      sums.steps[thread] = of_grads;
    });
    fold(block, parts + 2 * block.index());
  }

  DeviceColumns columns;
  double* parts;
};

/// A block for each tensor.
struct AddPartsKernel {
  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    BlockSums& sums = block.sums();
    const double* const own = parts + 2 * parts_of_sums * block.index();
    block.each_thread([&](int thread) {
      sums.params[thread] = sums.steps[thread] = 0.0;
      for (std::int64_t part = thread; part < parts_of_sums; part += threads_per_block) {
        sums.params[thread] += own[2 * part];
        sums.steps[thread] += own[2 * part + 1];
      }
    });
    fold(block, to + 2 * block.index());
  }

  const double* parts;
  double* to;
};

/// Every call as kernels that launch(kernel, blocks) starts.
template <typename Launch>
class LaunchedUpdates final : public DeviceUpdates {
 public:
  explicit LaunchedUpdates(Launch launch) : launch_(std::move(launch)) {}

  void update(const DeviceColumns& columns, const AdamWStep& step) const override { each<AdamWRule>(columns, step); }
  void update(const DeviceColumns& columns, const SgdStep& step) const override { each<SgdRule>(columns, step); }
  void update(const DeviceColumns& columns, const MomentsStep& step) const override {
    each<FusedAdamRule>(columns, step);
  }
  void update(const DeviceColumns& columns, const FusedSgdStep& step) const override {
    each<FusedSgdRule>(columns, step);
  }
  void update(const DeviceColumns& columns, const LarsStep& step) const override { each<LarsRule>(columns, step); }

  void lamb_moments(const DeviceColumns& columns, const MomentsStep& step, double* parts) const override {
    as_type(columns, [&]<typename T>(T) { return LambMomentsKernel<T>{columns, MomentsRule<T>(step), parts}; });
  }
  void lamb_apply(const DeviceColumns& columns, const MomentsStep& step, double rate) const override {
    as_type(columns, [&]<typename T>(T) { return LambApplyKernel<T>{columns, LambRule<T>(step, rate)}; });
  }
  void square_sums(const DeviceColumns& columns, double* parts) const override {
    as_type(columns, [&]<typename T>(T) { return SquareSumsKernel<T>{columns, parts}; });
  }
  void add_parts(const double* parts, std::int64_t tensors, double* sums) const override {
    if (tensors > 0) launch_(AddPartsKernel{parts, sums}, tensors);
  }

 private:
  template <template <typename> typename Rule, typename Step>
  void each(const DeviceColumns& columns, const Step& step) const {
    as_type(columns, [&]<typename T>(T) { return UpdateKernel<T, Rule<T>>{columns, Rule<T>(step)}; });
  }
  /// Starts the kernel that make(a number) gives for the type that is computed in.
  template <typename Make>
  void as_type(const DeviceColumns& columns, const Make& make) const {
    if (columns.n == 0) return;
    if (columns.params.type == NumberType::float64)
      launch_(make(double{}), blocks_for(columns.n));
    else
      launch_(make(float{}), blocks_for(columns.n));
  }

  Launch launch_;
};

}  // namespace
}  // namespace accrue

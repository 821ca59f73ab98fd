// SPDX-License-Identifier: Apache-2.0
// Bodies of a device's kernels: the work of each thread of each block. A kernel is a sequence of steps; all threads of
// a block finish one before the next begins. So anything that can run a step for every thread can run a kernel:
// engine/cuda on a device, tests on the CPU, with any order of the threads.
//
// Tensors share kernels, because a launch takes longer than updating a thousand numbers. Numbers are dealt to threads
// in turn, and sums of squares are folded in halves. So a result depends on the number of elements alone. The device,
// the other tensors of the kernel and the order of the blocks do not matter.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>

#include "kernels/device_updates.h"
#include "kernels/element_rules.inl.h"
#include "kernels/half_number.inl.h"

namespace accrue {
namespace {

/// A power of two, because fold() halves it.
constexpr int threads_per_block = 256;
constexpr std::int64_t numbers_per_thread = 4;

/// Number of blocks of a pass over n numbers; 0 for none. More blocks than this would only wait for the others. Up to
/// 2^20 numbers a thread has at most four, beyond that more. It follows from n alone, because it decides which numbers
/// a sum adds first.
inline std::int64_t blocks_for(std::int64_t n) {
  constexpr std::int64_t per_block = threads_per_block * numbers_per_thread;
  return std::min<std::int64_t>((n + per_block - 1) / per_block, parts_of_sums);
}

/// Shared memory of a block's threads while they sum: 4 KiB.
struct BlockSums {
  double params[threads_per_block];
  double steps[threads_per_block];
};

/// Half precision is widened as it is read, so that rules compute in T = float.
template <typename T>
ACCRUE_HOST_DEVICE T number_at(const DeviceColumn& column, std::int64_t i) {
  if constexpr (std::is_same_v<T, float>) {
    if (column.type == NumberType::float16) return widened(static_cast<const std::uint16_t*>(column.data)[i]);
    if (column.type == NumberType::bfloat16) return widened_bfloat16(static_cast<const std::uint16_t*>(column.data)[i]);
  }
  return static_cast<const T*>(column.data)[i];
}

/// Rounded once, when it is stored.
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

/// Tensors of one kernel, each with its rule. With any rule they are smaller than 4 KiB, the limit for kernel arguments
/// everywhere: a tensor takes 72 bytes, its rule at most 88 (ten factors and a rate in double), its places 8. 22 of
/// them, the end of the blocks and the count are 3,704 bytes.
template <typename Rule>
struct TensorBatch {
  static constexpr int most = 22;

  void add(const DeviceColumns& columns, const Rule& rule, std::size_t place) {
    tensors[count] = columns;
    rules[count] = rule;
    places[count] = static_cast<std::int32_t>(place);
    first_block[count + 1] = first_block[count] + static_cast<std::int32_t>(blocks_for(columns.n));
    ++count;
  }
  std::int64_t blocks() const { return first_block[count]; }

  /// Returns the tensor of this block, by bisection in first_block.
  ACCRUE_HOST_DEVICE int tensor_of(std::int64_t block) const {
    int tensor = 0;
    for (int end = count; end - tensor > 1;) {
      const int middle = (tensor + end) / 2;
      if (first_block[middle] <= block)
        tensor = middle;
      else
        end = middle;
    }
    return tensor;
  }
  /// Calls use(i) for each of the tensor's numbers that belong to a thread of the block.
  template <typename Use>
  ACCRUE_HOST_DEVICE void numbers_of(int tensor, std::int64_t block, int thread, const Use& use) const {
    // Neighbouring threads take neighbouring numbers, so that a device reads whole lines.
    const std::int64_t stride = std::int64_t{first_block[tensor + 1] - first_block[tensor]} * threads_per_block;
    const std::int64_t n = tensors[tensor].n;
    for (std::int64_t i = (block - first_block[tensor]) * threads_per_block + thread; i < n; i += stride) use(i);
  }
  /// Returns the place of the block's two sums in the parts of all tensors of the call, [tensors, parts_of_sums, 2].
  /// Each block has its own, so no kernel needs atomic additions, whose order varies.
  ACCRUE_HOST_DEVICE double* part_of(double* parts, int tensor, std::int64_t block) const {
    return parts + 2 * (parts_of_sums * places[tensor] + block - first_block[tensor]);
  }

  DeviceColumns tensors[most];
  Rule rules[most] = {};
  std::int32_t places[most] = {};  ///< in the list of the call
  std::int32_t first_block[most + 1] = {0};
  std::int32_t count = 0;
};

/// Adds the threads' sums and writes the block's. By halves: thread i adds that of i + half, a tree of log2(256) rounds
/// whose order does not depend on which thread is first.
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

/// One step of a rule: p and its state change in place. A rule with two moments takes (p, g, m, v), one with a buffer
/// (p, g, buffer), or (p, g) without it.
template <typename T, typename Rule>
struct UpdateKernel {
  static constexpr bool has_moments = std::is_invocable_v<const Rule&, T&, T, T&, T&>;

  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    const int tensor = batch.tensor_of(block.index());
    block.each_thread([&](int thread) {
      batch.numbers_of(tensor, block.index(), thread,
                       [&](std::int64_t i) { update(batch.tensors[tensor], batch.rules[tensor], i); });
    });
  }

  ACCRUE_HOST_DEVICE void update(const DeviceColumns& columns, const Rule& rule, std::int64_t i) const {
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

  TensorBatch<Rule> batch;
};

/// First half of LAMB: new moments, and each block's sums of p^2 and u^2 in double.
template <typename T>
struct LambMomentsKernel {
  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    const int tensor = batch.tensor_of(block.index());
    const DeviceColumns& columns = batch.tensors[tensor];
    BlockSums& sums = block.sums();
    block.each_thread([&](int thread) {
      double of_params = 0.0, of_steps = 0.0;
      batch.numbers_of(tensor, block.index(), thread, [&](std::int64_t i) {
        const T p = number_at<T>(columns.params, i);
        T m = number_at<T>(columns.first, i), v = number_at<T>(columns.second, i);
        const T u = batch.rules[tensor](p, number_at<T>(columns.grads, i), m, v);
        put(columns.first, i, m);
        put(columns.second, i, v);
        of_params += static_cast<double>(p) * static_cast<double>(p);
        of_steps += static_cast<double>(u) * static_cast<double>(u);
      });
      sums.params[thread] = of_params;
      sums.steps[thread] = of_steps;
    });
    fold(block, batch.part_of(parts, tensor, block.index()));
  }

  TensorBatch<MomentsRule<T>> batch;
  double* parts;
};

/// Second half: p -= rate u.
template <typename T>
struct LambApplyKernel {
  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    const int tensor = batch.tensor_of(block.index());
    const DeviceColumns& columns = batch.tensors[tensor];
    block.each_thread([&](int thread) {
      batch.numbers_of(tensor, block.index(), thread, [&](std::int64_t i) {
        T p = number_at<T>(columns.params, i);
        batch.rules[tensor](p, number_at<T>(columns.first, i), number_at<T>(columns.second, i));
        put(columns.params, i, p);
      });
    });
  }

  TensorBatch<LambRule<T>> batch;
};

struct NoRule {};

/// Each block's sums of p^2 and g^2 in double, for LARS and norms.
template <typename T>
struct SquareSumsKernel {
  template <typename Block>
  ACCRUE_HOST_DEVICE void operator()(const Block& block) const {
    const int tensor = batch.tensor_of(block.index());
    const DeviceColumns& columns = batch.tensors[tensor];
    BlockSums& sums = block.sums();
    block.each_thread([&](int thread) {
      double of_params = 0.0, of_grads = 0.0;
      batch.numbers_of(tensor, block.index(), thread, [&](std::int64_t i) {
        const auto p = static_cast<double>(number_at<T>(columns.params, i));
        of_params += p * p;
        if (columns.grads.data == nullptr) return;
        const auto g = static_cast<double>(number_at<T>(columns.grads, i));
        of_grads += g * g;
      });
      sums.params[thread] = of_params;
      sums.steps[thread] = of_grads;
    });
    fold(block, batch.part_of(parts, tensor, block.index()));
  }

  TensorBatch<NoRule> batch;
  double* parts;
};

/// Kernel that adds the parts of each tensor's sums, with one block per tensor: parts [tensors, parts_of_sums, 2] ->
/// [tensors, 2].
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

/// Runs every call as kernels that launch(kernel, blocks) starts.
template <typename Launch>
class LaunchedUpdates final : public DeviceUpdates {
 public:
  explicit LaunchedUpdates(Launch launch) : launch_(std::move(launch)) {}

  void update(Tensors tensors, std::span<const AdamWStep> steps) const override { each<AdamWRule>(tensors, steps); }
  void update(Tensors tensors, std::span<const SgdStep> steps) const override { each<SgdRule>(tensors, steps); }
  void update(Tensors tensors, std::span<const MomentsStep> steps) const override {
    each<FusedAdamRule>(tensors, steps);
  }
  void update(Tensors tensors, std::span<const FusedSgdStep> steps) const override {
    each<FusedSgdRule>(tensors, steps);
  }
  void update(Tensors tensors, std::span<const LarsStep> steps) const override { each<LarsRule>(tensors, steps); }

  void lamb_moments(Tensors tensors, std::span<const MomentsStep> steps, double* parts) const override {
    in_batches<MomentsRule>(
        tensors, [&]<typename T>(T, std::size_t i) { return MomentsRule<T>(steps[i]); },
        [&]<typename T>(T, const auto& batch) {
          return LambMomentsKernel<T>{batch, parts};
        });
  }
  void lamb_apply(Tensors tensors, std::span<const MomentsStep> steps, std::span<const double> rates) const override {
    in_batches<LambRule>(
        tensors, [&]<typename T>(T, std::size_t i) { return LambRule<T>(steps[i], rates[i]); },
        []<typename T>(T, const auto& batch) { return LambApplyKernel<T>{batch}; });
  }
  void square_sums(Tensors tensors, double* parts) const override {
    in_batches<RuleOfNone>(
        tensors, []<typename T>(T, std::size_t) { return NoRule(); },
        [&]<typename T>(T, const auto& batch) {
          return SquareSumsKernel<T>{batch, parts};
        });
  }
  void add_parts(const double* parts, std::int64_t tensors, double* sums) const override {
    if (tensors > 0) launch_(AddPartsKernel{parts, sums}, tensors);
  }

 private:
  template <typename>
  using RuleOfNone = NoRule;

  template <template <typename> typename Rule, typename Step>
  void each(Tensors tensors, std::span<const Step> steps) const {
    in_batches<Rule>(
        tensors, [&]<typename T>(T, std::size_t i) { return Rule<T>(steps[i]); },
        []<typename T>(T, const auto& batch) { return UpdateKernel<T, Rule<T>>{batch}; });
  }
  /// Starts kernels over all non-empty tensors. kernel_of(T, batch): T is the type of the computation, and the batch
  /// holds rule_of(T, i) of its tensors.
  template <template <typename> typename Rule, typename RuleOf, typename KernelOf>
  void in_batches(Tensors tensors, const RuleOf& rule_of, const KernelOf& kernel_of) const {
    for (std::size_t begin = 0; begin < tensors.size();) {
      const bool wide = tensors[begin].params.type == NumberType::float64;
      const auto stop = std::ranges::find_if(tensors.subspan(begin), [wide](const DeviceColumns& each) {
        return (each.params.type == NumberType::float64) != wide;
      });
      const auto end = static_cast<std::size_t>(stop - tensors.begin());
      if (wide)
        of_type<Rule<double>>(double{}, tensors, begin, end, rule_of, kernel_of);
      else
        of_type<Rule<float>>(float{}, tensors, begin, end, rule_of, kernel_of);
      begin = end;
    }
  }
  template <typename Rule, typename T, typename RuleOf, typename KernelOf>
  void of_type(T type, Tensors tensors, std::size_t begin, std::size_t end, const RuleOf& rule_of,
               const KernelOf& kernel_of) const {
    TensorBatch<Rule> batch;
    const auto start = [&] {
      const auto kernel = kernel_of(type, batch);
      static_assert(sizeof(kernel) <= 4096);
      if (batch.count > 0) launch_(kernel, batch.blocks());
      batch.count = 0;
    };
    for (std::size_t i = begin; i < end; ++i) {
      if (tensors[i].n == 0) continue;
      if (batch.count == TensorBatch<Rule>::most) start();
      batch.add(tensors[i], rule_of(type, i), i);
    }
    start();
  }

  Launch launch_;
};

}  // namespace
}  // namespace accrue

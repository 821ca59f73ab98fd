// SPDX-License-Identifier: Apache-2.0
// One pass per update over flat memory. LibTorch's own C++ optimizers loop over tensors with several operators each;
// its fused kernel would scale the gradients in place. These loops read the gradient once and leave it alone.
#include "accrue/optim/flat_optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

#include "kernels/kernels.h"

namespace accrue {

namespace {

constexpr std::int64_t elements_per_task = 1 << 16;

void check_segments(const std::vector<FlatSegment>& segments, std::int64_t numel) {
  for (const FlatSegment& segment : segments) {
    const auto [offset, size] = segment.range;
    if (offset < 0 || size < 0 || offset > numel || size > numel - offset) {
      throw std::invalid_argument("optimizer segment [" + std::to_string(offset) + ", +" + std::to_string(size) +
                                  ") lies outside the " + std::to_string(numel) + " elements");
    }
  }
}

class FlatBase : public FlatOptimizer {
 public:
  FlatBase(const OptimizerSpec& spec, std::vector<FlatSegment> segments, std::int64_t numel, at::ScalarType dtype)
      : spec_(spec), segments_(std::move(segments)), numel_(numel), dtype_(dtype) {
    check_segments(segments_, numel_);
  }
  std::int64_t steps() const final { return steps_; }
  void set_steps(std::int64_t steps) final { steps_ = steps; }

 protected:
  at::Tensor state_tensor() const { return at::zeros({numel_}, at::TensorOptions(dtype_)); }

  void check(const at::Tensor& params, const at::Tensor& grads) const {
    for (const at::Tensor* flat : {&params, &grads}) {
      if (flat->numel() != numel_ || flat->scalar_type() != dtype_ || !flat->is_contiguous() || !flat->is_cpu()) {
        throw std::invalid_argument("the optimizer takes " + std::to_string(numel_) +
                                    " contiguous CPU elements of the type it was made for, got " +
                                    std::to_string(flat->numel()));
      }
    }
  }

  /// A stretch of memory with one weight decay and one number of updates, this one included.
  struct Part {
    FlatRange range;
    double weight_decay = 0.0;
    std::int64_t steps = 0;
  };

  /// Counts the update and answers what it changes.
  std::vector<Part> next_update(const std::vector<FlatRange>& unreached) {
    ++steps_;
    for (const FlatRange& range : unreached) {
      Missed& missed = missed_[range.offset];
      missed.size = range.size;
      ++missed.updates;
      missed.last = steps_;
    }
    std::vector<Part> parts;
    for (const FlatSegment& segment : segments_) cut(segment, parts);
    return parts;
  }

  /// Calls update(offset, size) over the part, in parallel pieces.
  template <typename Update>
  static void in_pieces(const Part& part, const Update& update) {
    at::parallel_for(0, part.range.size, elements_per_task,
                     [&](std::int64_t begin, std::int64_t end) { update(part.range.offset + begin, end - begin); });
  }

  OptimizerSpec spec_;
  std::vector<FlatSegment> segments_;
  std::int64_t numel_;
  at::ScalarType dtype_;
  std::int64_t steps_ = 0;

 private:
  struct Missed {
    std::int64_t size = 0;
    std::int64_t updates = 0;
    std::int64_t last = 0;
  };

  /// The segment's parts: parameters that have missed updates apart, without those that miss this one.
  void cut(const FlatSegment& segment, std::vector<Part>& parts) const {
    const auto add = [&](std::int64_t begin, std::int64_t end, std::int64_t missed) {
      if (begin < end) parts.push_back({{begin, end - begin}, segment.weight_decay, steps_ - missed});
    };
    std::int64_t at = segment.range.offset;
    const std::int64_t end = at + segment.range.size;
    for (const auto& [offset, missed] : missed_) {
      const std::int64_t from = std::max(at, offset);
      const std::int64_t to = std::min(end, offset + missed.size);
      if (from >= to) continue;
      add(at, from, 0);
      if (missed.last != steps_) add(from, to, missed.updates);
      at = to;
    }
    add(at, end, 0);
  }

  std::map<std::int64_t, Missed> missed_;  ///< by offset
};

template <typename T>
class FlatAdamW final : public FlatBase {
 public:
  using FlatBase::FlatBase;

  void step(at::Tensor& params, const at::Tensor& grads, double lr, double grad_scale,
            const std::vector<FlatRange>& unreached) override {
    check(params, grads);
    T* const p = params.mutable_data_ptr<T>();
    const T* const g = grads.const_data_ptr<T>();
    T* const m = first_.template mutable_data_ptr<T>();
    T* const v = second_.template mutable_data_ptr<T>();
    for (const auto& part : this->next_update(unreached)) {
      const auto t = static_cast<double>(part.steps);
      AdamWStep how{.lr = lr,
                    .beta1 = spec_.beta1,
                    .beta2 = spec_.beta2,
                    .eps = spec_.eps,
                    .correction1 = 1.0 - std::pow(spec_.beta1, t),
                    .correction2_root = std::sqrt(1.0 - std::pow(spec_.beta2, t)),
                    .grad_scale = grad_scale};
      (spec_.kind == OptimizerKind::adam ? how.l2 : how.weight_decay) = part.weight_decay;
      in_pieces(part, [&](std::int64_t at, std::int64_t n) {
        flat_kernels<T>().adamw(p + at, g + at, m + at, v + at, n, how);
      });
    }
  }

  std::vector<std::pair<std::string, at::Tensor>> state() override {
    return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
  }

 private:
  at::Tensor first_ = state_tensor();
  at::Tensor second_ = state_tensor();
};

template <typename T>
class FlatSgd final : public FlatBase {
 public:
  FlatSgd(const OptimizerSpec& spec, std::vector<FlatSegment> segments, std::int64_t numel, at::ScalarType dtype)
      : FlatBase(spec, std::move(segments), numel, dtype) {
    if (spec_.momentum != 0.0) buffer_ = state_tensor();
  }

  void step(at::Tensor& params, const at::Tensor& grads, double lr, double grad_scale,
            const std::vector<FlatRange>& unreached) override {
    check(params, grads);
    T* const p = params.mutable_data_ptr<T>();
    const T* const g = grads.const_data_ptr<T>();
    T* const buffer = buffer_.defined() ? buffer_.template mutable_data_ptr<T>() : nullptr;
    for (const auto& part : this->next_update(unreached)) {
      const SgdStep how{
          .lr = lr, .momentum = spec_.momentum, .weight_decay = part.weight_decay, .grad_scale = grad_scale};
      in_pieces(part, [&](std::int64_t at, std::int64_t n) {
        flat_kernels<T>().sgd(p + at, g + at, buffer == nullptr ? nullptr : buffer + at, n, how);
      });
    }
  }

  std::vector<std::pair<std::string, at::Tensor>> state() override {
    if (!buffer_.defined()) return {};
    return {{"momentum_buffer", buffer_}};
  }

 private:
  at::Tensor buffer_;  // undefined without momentum
};

template <typename T>
std::unique_ptr<FlatOptimizer> make_typed(const OptimizerSpec& spec, std::vector<FlatSegment> segments,
                                          std::int64_t numel, at::ScalarType dtype) {
  switch (spec.kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return std::make_unique<FlatAdamW<T>>(spec, std::move(segments), numel, dtype);
    case OptimizerKind::sgd:
      return std::make_unique<FlatSgd<T>>(spec, std::move(segments), numel, dtype);
  }
  throw std::invalid_argument("optimizer.kind is not an optimizer this engine knows");
}

/// Squares are summed in blocks of a fixed size and the blocks in order, so the norm does not depend on the threads.
template <typename T>
double typed_square_sum(const at::Tensor& flat) {
  const T* const values = flat.const_data_ptr<T>();
  const std::int64_t n = flat.numel();
  std::vector<double> blocks(static_cast<std::size_t>((n + elements_per_task - 1) / elements_per_task));
  at::parallel_for(0, static_cast<std::int64_t>(blocks.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t from = block * elements_per_task;
      const std::int64_t count = n - from < elements_per_task ? n - from : elements_per_task;
      blocks[static_cast<std::size_t>(block)] = flat_kernels<T>().square_sum(values + from, count);
    }
  });
  double total = 0.0;
  for (const double block : blocks) total += block;
  return total;
}

}  // namespace

std::unique_ptr<FlatOptimizer> make_flat_optimizer(const OptimizerSpec& spec, std::vector<FlatSegment> segments,
                                                   std::int64_t numel, at::ScalarType dtype) {
  if (dtype == at::kFloat) return make_typed<float>(spec, std::move(segments), numel, dtype);
  if (dtype == at::kDouble) return make_typed<double>(spec, std::move(segments), numel, dtype);
  throw std::invalid_argument("flat optimizers update float32 or float64 parameters; keep a float32 master copy");
}

double flat_norm(const at::Tensor& grads) {
  const at::Tensor flat = grads.contiguous();
  if (flat.scalar_type() == at::kDouble) return std::sqrt(typed_square_sum<double>(flat));
  return std::sqrt(typed_square_sum<float>(flat.to(at::kFloat)));
}

double clip_factor(double norm, double max_norm) {
  if (max_norm == 0.0) return 1.0;
  const double factor = max_norm / (norm + 1e-6);
  return factor < 1.0 || std::isnan(factor) ? factor : 1.0;
}

}  // namespace accrue

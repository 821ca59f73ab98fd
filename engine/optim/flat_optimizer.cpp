// SPDX-License-Identifier: Apache-2.0
// One pass per update over flat memory. LibTorch's own C++ optimizers loop over tensors with several operators each;
// its fused kernel would scale the gradients in place. These loops read the gradient once and leave it alone.
#include "accrue/optim/flat_optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/kernels.h"

namespace accrue {

namespace {

constexpr std::int64_t elements_per_task = 1 << 16;

std::int64_t end_of(const FlatRange& range) {
  return range.offset + range.size;
}

std::string text_of(const FlatRange& range) {
  return "[" + std::to_string(range.offset) + ", +" + std::to_string(range.size) + ")";
}

void check_inside(const FlatRange& range, std::int64_t numel, const std::string& what) {
  const auto [offset, size] = range;
  if (offset < 0 || size < 0 || offset > numel || size > numel - offset)
    throw std::invalid_argument(what + " " + text_of(range) + " lies outside the " + std::to_string(numel) +
                                " elements");
}

std::vector<OptimizerSegment> by_offset(std::vector<OptimizerSegment> segments, std::int64_t numel) {
  std::ranges::sort(segments, {}, [](const OptimizerSegment& segment) { return segment.range.offset; });
  for (std::size_t i = 0; i < segments.size(); ++i) {
    check_inside(segments[i].range, numel, "optimizer segment");
    if (i > 0 && end_of(segments[i - 1].range) > segments[i].range.offset)
      throw std::invalid_argument("optimizer segment " + text_of(segments[i].range) + " overlaps the one before it");
  }
  return segments;
}

void check_ranges(std::span<const FlatRange> ranges, std::int64_t numel) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    check_inside(ranges[i], numel, "range");
    if (i > 0 && end_of(ranges[i - 1]) > ranges[i].offset)
      throw std::invalid_argument("range " + text_of(ranges[i]) + " begins before the end of the one before it");
  }
}

std::optional<FlatRange> common_part(const FlatRange& a, const FlatRange& b) {
  const std::int64_t begin = std::max(a.offset, b.offset);
  const std::int64_t end = std::min(end_of(a), end_of(b));
  if (begin >= end) return std::nullopt;
  return FlatRange{begin, end - begin};
}

/// Elements that one pass updates alike.
struct Stretch {
  FlatRange range;
  double weight_decay = 0.0;
  double lr = 1.0;
  std::int64_t steps = 0;
  bool like(const Stretch& other) const {
    return weight_decay == other.weight_decay && lr == other.lr && steps == other.steps;
  }
};

class FlatBase : public FlatOptimizer {
 public:
  FlatBase(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel, at::ScalarType dtype)
      : spec_(spec),
        segments_(by_offset(std::move(segments), numel)),
        segment_steps_(at::zeros({std::ssize(segments_)}, at::kLong)),
        numel_(numel),
        dtype_(dtype) {}
  const std::vector<OptimizerSegment>& segments() const final { return segments_; }
  at::Tensor segment_steps() final { return segment_steps_; }
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

  /// Counts the update in every segment that it reaches, and answers what it updates, merged: between two whole
  /// neighbours lies nothing but padding, which is zero and stays zero, so one pass goes over both.
  std::vector<Stretch> begin_step(std::span<const FlatRange> ranges) {
    check_ranges(ranges, numel_);
    ++steps_;
    std::vector<Stretch> stretches;
    std::int64_t* const counts = segment_steps_.mutable_data_ptr<std::int64_t>();
    bool joined = false;  // the last stretch ends with the segment before this one
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const OptimizerSegment& segment = segments_[i];
      bool reached = false;
      for (const FlatRange& range : ranges) {
        const auto part = common_part(segment.range, range);
        if (!part) continue;
        if (!reached) ++counts[i];
        const Stretch next{*part, spec_.weight_decay * segment.weight_decay, segment.lr, counts[i]};
        const bool adjacent = !stretches.empty() && (end_of(stretches.back().range) == part->offset ||
                                                     (joined && !reached && part->offset == segment.range.offset));
        if (adjacent && stretches.back().like(next))
          stretches.back().range.size = end_of(*part) - stretches.back().range.offset;
        else
          stretches.push_back(next);
        reached = true;
      }
      joined = reached && end_of(stretches.back().range) == end_of(segment.range);
    }
    return stretches;
  }

  /// Calls update(offset, size, stretch) over every stretch, in parallel parts.
  template <typename Update>
  static void for_each_part(const std::vector<Stretch>& stretches, const Update& update) {
    for (const Stretch& stretch : stretches) {
      at::parallel_for(0, stretch.range.size, elements_per_task, [&](std::int64_t begin, std::int64_t end) {
        update(stretch.range.offset + begin, end - begin, stretch);
      });
    }
  }

  OptimizerSpec spec_;
  std::vector<OptimizerSegment> segments_;
  at::Tensor segment_steps_;
  std::int64_t numel_;
  at::ScalarType dtype_;
  std::int64_t steps_ = 0;
};

template <typename T>
class FlatAdamW final : public FlatBase {
 public:
  using FlatBase::FlatBase;

  void step(at::Tensor& params, const at::Tensor& grads, double lr, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    T* const p = params.mutable_data_ptr<T>();
    const T* const g = grads.const_data_ptr<T>();
    T* const m = first_.template mutable_data_ptr<T>();
    T* const v = second_.template mutable_data_ptr<T>();
    for_each_part(begin_step(ranges), [&](std::int64_t at, std::int64_t n, const Stretch& stretch) {
      const auto t = static_cast<double>(stretch.steps);
      AdamWStep part{.lr = lr * stretch.lr,
                     .beta1 = spec_.beta1,
                     .beta2 = spec_.beta2,
                     .eps = spec_.eps,
                     .correction1 = 1.0 - std::pow(spec_.beta1, t),
                     .correction2_root = std::sqrt(1.0 - std::pow(spec_.beta2, t)),
                     .grad_scale = grad_scale};
      (spec_.kind == OptimizerKind::adam ? part.l2 : part.weight_decay) = stretch.weight_decay;
      flat_kernels<T>().adamw(p + at, g + at, m + at, v + at, n, part);
    });
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
  FlatSgd(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel, at::ScalarType dtype)
      : FlatBase(spec, std::move(segments), numel, dtype) {
    if (spec_.momentum != 0.0) buffer_ = state_tensor();
  }

  void step(at::Tensor& params, const at::Tensor& grads, double lr, double grad_scale,
            std::span<const FlatRange> ranges) override {
    check(params, grads);
    T* const p = params.mutable_data_ptr<T>();
    const T* const g = grads.const_data_ptr<T>();
    T* const buffer = buffer_.defined() ? buffer_.template mutable_data_ptr<T>() : nullptr;
    for_each_part(begin_step(ranges), [&](std::int64_t at, std::int64_t n, const Stretch& stretch) {
      const SgdStep part{.lr = lr * stretch.lr,
                         .momentum = spec_.momentum,
                         .weight_decay = stretch.weight_decay,
                         .grad_scale = grad_scale};
      flat_kernels<T>().sgd(p + at, g + at, buffer == nullptr ? nullptr : buffer + at, n, part);
    });
  }

  std::vector<std::pair<std::string, at::Tensor>> state() override {
    if (!buffer_.defined()) return {};
    return {{"momentum_buffer", buffer_}};
  }

 private:
  at::Tensor buffer_;  // undefined without momentum
};

template <typename T>
std::unique_ptr<FlatOptimizer> make_typed(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments,
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
double typed_square_sum(const at::Tensor& flat, const FlatRange& range) {
  const T* const values = flat.const_data_ptr<T>() + range.offset;
  const std::int64_t n = range.size;
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

void FlatOptimizer::step(at::Tensor& params, const at::Tensor& grads, double lr, double grad_scale) {
  const FlatRange whole{0, params.numel()};
  step(params, grads, lr, grad_scale, {&whole, 1});
}

std::unique_ptr<FlatOptimizer> make_flat_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments,
                                                   std::int64_t numel, at::ScalarType dtype) {
  if (dtype == at::kFloat) return make_typed<float>(spec, std::move(segments), numel, dtype);
  if (dtype == at::kDouble) return make_typed<double>(spec, std::move(segments), numel, dtype);
  throw std::invalid_argument("flat optimizers update float32 or float64 parameters; keep a float32 master copy");
}

std::vector<FlatRange> counted_ranges(std::span<const OptimizerSegment> segments, std::int64_t tensor_rank) {
  std::vector<FlatRange> ranges;
  for (const OptimizerSegment& segment : segments)
    if (!segment.shared && (segment.tensor_split || tensor_rank == 0)) ranges.push_back(segment.range);
  return ranges;
}

double square_sum(const at::Tensor& flat, std::span<const FlatRange> ranges) {
  const at::Tensor contiguous = flat.contiguous();
  const bool wide = contiguous.scalar_type() == at::kDouble;
  const at::Tensor values = wide ? contiguous : contiguous.to(at::kFloat);
  double total = 0.0;
  for (const FlatRange& range : ranges) {
    check_inside(range, values.numel(), "range");
    total += wide ? typed_square_sum<double>(values, range) : typed_square_sum<float>(values, range);
  }
  return total;
}

double flat_norm(const at::Tensor& grads) {
  const FlatRange whole{0, grads.numel()};
  return std::sqrt(square_sum(grads, {&whole, 1}));
}

double clip_factor(double norm, double max_norm) {
  if (max_norm == 0.0) return 1.0;
  const double factor = max_norm / (norm + 1e-6);
  return factor < 1.0 || std::isnan(factor) ? factor : 1.0;
}

}  // namespace accrue

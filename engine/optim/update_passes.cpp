// SPDX-License-Identifier: Apache-2.0
#include "optim/update_passes.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

#include "comm/device_loader.h"
#include "optim/flat_paths.h"

namespace accrue {
namespace {

/// Numbers of a block, the unit of work of a thread. Fixed, so that the blocks of a sum and hence its rounding do not
/// depend on the number of threads.
constexpr std::int64_t elements_per_block = 1 << 16;
/// Numbers that are widened at a time: four columns of them, 16 KiB on the thread's stack, fit into the first-level
/// cache.
constexpr std::int64_t elements_widened = 1024;

/// Operand of a pass: a tensor's memory, and whether it changes it.
struct Column {
  Column() = default;
  Column(const at::Tensor& tensor, bool changes)
      : data(!tensor.defined() ? nullptr
             : changes         ? tensor.mutable_data_ptr()
                               : const_cast<void*>(tensor.const_data_ptr())),
        type(tensor.defined() ? tensor.scalar_type() : at::kFloat),
        changed(changes) {}
  void* data = nullptr;
  at::ScalarType type = at::kFloat;
  bool changed = false;
};

using Columns = std::array<Column, 4>;
template <typename T>
using Pointers = std::array<T*, 4>;

std::uint16_t* bits_at(const Column& column, std::int64_t at) {
  return static_cast<std::uint16_t*>(column.data) + at;
}

/// Calls use(pointers, n) on n numbers from `begin` as float32. float32 columns are used in place, the others through
/// scratch. A number is rounded to half precision once, after its whole update.
template <typename Use>
void widened(const Columns& columns, std::int64_t begin, std::int64_t n, const Use& use) {
  const HalfKernels& kernels = half_kernels();
  alignas(64) float scratch[4][elements_widened];
  for (std::int64_t at = begin; at < begin + n; at += elements_widened) {
    const std::int64_t count = std::min(elements_widened, begin + n - at);
    Pointers<float> pointers{};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Column& column = columns[i];
      if (column.data == nullptr) continue;
      pointers[i] = column.type == at::kFloat ? static_cast<float*>(column.data) + at : scratch[i];
      if (column.type == at::kHalf) kernels.from_half(bits_at(column, at), scratch[i], count);
      if (column.type == at::kBFloat16) kernels.from_bfloat16(bits_at(column, at), scratch[i], count);
    }
    use(pointers, count);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Column& column = columns[i];
      if (column.data == nullptr || !column.changed) continue;
      if (column.type == at::kHalf) kernels.to_half(scratch[i], bits_at(column, at), count);
      if (column.type == at::kBFloat16) kernels.to_bfloat16(scratch[i], bits_at(column, at), count);
    }
  }
}

/// Calls use(pointers, n) on the numbers as they are stored, all of type T.
template <typename T, typename Use>
void in_own_memory(const Columns& columns, std::int64_t begin, std::int64_t n, const Use& use) {
  Pointers<T> pointers{};
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].data != nullptr) pointers[i] = static_cast<T*>(columns[i].data) + begin;
  use(pointers, n);
}

/// One block: widened if any of its columns is half precision.
template <typename T, typename Use>
void on_block(const Columns& columns, std::int64_t begin, std::int64_t n, const Use& use) {
  if constexpr (std::is_same_v<T, float>)
    if (std::ranges::any_of(columns, [](const Column& column) { return column.type != at::kFloat; }))
      return widened(columns, begin, n, use);
  in_own_memory<T>(columns, begin, n, use);
}

/// The blocks of all pieces in one row, so that many small tensors are one parallel pass.
struct BlockRow {
  explicit BlockRow(std::size_t pieces) : first{0} { first.reserve(pieces + 1); }
  void add(std::int64_t numel) {
    first.push_back(first.back() + (numel + elements_per_block - 1) / elements_per_block);
  }
  std::int64_t size() const { return first.back(); }
  /// Bisection. An empty piece has no block: its first is that of the next piece, and the last of equals counts.
  std::size_t piece_of(std::int64_t block) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(first, block) - first.begin()) - 1;
  }
  std::vector<std::int64_t> first;  ///< first block of each piece, and the number of blocks
};

/// Tensors that a pass changes. The others are taken as const, so that copy-on-write storage is not copied.
enum class Writes { parameters_and_state, state, parameters, nothing };

template <typename Step>
Columns columns_of(const Piece<Step>& piece, Writes writes) {
  const auto& [params, grads, first, second] = piece.tensors;
  const bool state = writes == Writes::parameters_and_state || writes == Writes::state;
  const bool parameters = writes == Writes::parameters_and_state || writes == Writes::parameters;
  return {Column(params, parameters), Column(grads, false), Column(first, state), Column(second, state)};
}

template <typename Step>
bool is_double(const Piece<Step>& piece) {
  return piece.tensors.params.scalar_type() == at::kDouble;
}

/// Errors: throws std::invalid_argument for tensors that no pass can update together.
template <typename Step>
void check(const Piece<Step>& piece) {
  const UpdateTensors& all = piece.tensors;
  for (const at::Tensor* each : {&all.params, &all.grads, &all.first, &all.second}) {
    if (!each->defined()) continue;
    const at::ScalarType type = each->scalar_type();
    const bool known =
        is_double(piece) ? type == at::kDouble : type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
    if (!known || each->numel() != all.params.numel() || !each->is_contiguous())
      throw std::invalid_argument(
          "an update takes contiguous tensors of one size, in float32, float16 and bfloat16 or "
          "all in float64; this one got " +
          std::string(at::toString(type)) + " beside " + std::string(at::toString(all.params.scalar_type())));
  }
}

/// Calls use(T of the numbers, piece, block, pointers, n) for every block; blocks of one piece count from 0.
template <typename Step, typename Use>
void for_blocks(const std::vector<Piece<Step>>& pieces, Writes writes, const BlockRow& row, const Use& use) {
  std::vector<Columns> columns;
  columns.reserve(pieces.size());
  for (const Piece<Step>& piece : pieces) {
    check(piece);
    columns.push_back(columns_of(piece, writes));
  }
  at::parallel_for(0, row.size(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::size_t i = row.piece_of(block);
      const std::int64_t from = (block - row.first[i]) * elements_per_block;
      const std::int64_t count = std::min(elements_per_block, pieces[i].tensors.params.numel() - from);
      if (is_double(pieces[i]))
        on_block<double>(columns[i], from, count,
                         [&](const Pointers<double>& at, std::int64_t n) { use(double{}, i, block, at, n); });
      else
        on_block<float>(columns[i], from, count,
                        [&](const Pointers<float>& at, std::int64_t n) { use(float{}, i, block, at, n); });
    }
  });
}

/// Blocks of all pieces: piece i has ceil(n_i / 65536).
template <typename Step>
BlockRow row_of(const std::vector<Piece<Step>>& pieces) {
  BlockRow row(pieces.size());
  for (const Piece<Step>& piece : pieces) row.add(piece.tensors.params.numel());
  return row;
}

/// Calls use(T of the numbers, step, pointers, n).
template <typename Step, typename Use>
void elementwise(const std::vector<Piece<Step>>& pieces, const Use& use) {
  for_blocks(pieces, Writes::parameters_and_state, row_of(pieces),
             [&](auto type, std::size_t i, std::int64_t /*block*/, const auto& at, std::int64_t n) {
               use(type, pieces[i].step, at, n);
             });
}

/// Returns the sums of each piece, [pieces, 2] in float64, from those of its blocks in order: threads finish blocks in
/// any order, but one thread adds them. So the result is the same for any number of threads. sums_of: like
/// elementwise's use, and returns two sums.
template <typename Step, typename SumsOf>
at::Tensor summed(const std::vector<Piece<Step>>& pieces, Writes writes, const SumsOf& sums_of) {
  const BlockRow row = row_of(pieces);
  std::vector<SquareSums> blocks(static_cast<std::size_t>(row.size()));
  for_blocks(pieces, writes, row, [&](auto type, std::size_t i, std::int64_t block, const auto& at, std::int64_t n) {
    const SquareSums part = sums_of(type, pieces[i].step, at, n);
    SquareSums& sums = blocks[static_cast<std::size_t>(block)];
    // Added, because half precision is widened in several pieces per block; one thread makes all pieces of a block.
    sums.params += part.params;
    sums.steps += part.steps;
  });
  at::Tensor all = at::zeros({static_cast<std::int64_t>(pieces.size()), 2}, at::kDouble);
  double* const values = all.mutable_data_ptr<double>();
  for (std::int64_t block = 0; block < row.size(); ++block) {
    const std::size_t i = row.piece_of(block);
    values[2 * i] += blocks[static_cast<std::size_t>(block)].params;
    values[2 * i + 1] += blocks[static_cast<std::size_t>(block)].steps;
  }
  return all;
}

// The passes with a device's own kernels.

NumberType number_type(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return NumberType::float64;
    case at::kHalf:
      return NumberType::float16;
    case at::kBFloat16:
      return NumberType::bfloat16;
    default:
      return NumberType::float32;
  }
}

/// A piece's memory as the device's kernels take it.
template <typename Step>
DeviceColumns device_columns(const Piece<Step>& piece, Writes writes) {
  check(piece);
  const Columns columns = columns_of(piece, writes);
  const auto column = [&](std::size_t i) { return DeviceColumn{columns[i].data, number_type(columns[i].type)}; };
  return {column(0), column(1), column(2), column(3), piece.tensors.params.numel()};
}

/// Arguments of a device's kernels: every piece's memory and step.
template <typename Step>
struct DevicePieces {
  DevicePieces(const std::vector<Piece<Step>>& pieces, Writes writes) {
    tensors.reserve(pieces.size());
    steps.reserve(pieces.size());
    for (const Piece<Step>& piece : pieces) {
      tensors.push_back(device_columns(piece, writes));
      steps.push_back(piece.step);
    }
  }
  std::vector<DeviceColumns> tensors;
  std::vector<Step> steps;
};

template <typename Step>
void update_on_device(const std::vector<Piece<Step>>& pieces, const DeviceUpdates& updates) {
  const DevicePieces<Step> on_device(pieces, Writes::parameters_and_state);
  updates.update(on_device.tensors, on_device.steps);
}

/// start(pieces, parts): starts the kernels that write the parts of the pieces' sums, [pieces, 1024, 2] in float64: 16
/// KiB per piece. The sums stay on the device, so that the caller reads those of all pieces back at once.
template <typename Step, typename Start>
at::Tensor summed_on_device(const std::vector<Piece<Step>>& pieces, Writes writes, const DeviceUpdates& updates,
                            const Start& start) {
  const auto tensors = static_cast<std::int64_t>(pieces.size());
  if (tensors == 0) return at::zeros({0, 2}, at::kDouble);
  const auto options = pieces.front().tensors.params.options().requires_grad(false).dtype(at::kDouble);
  // Zeros, because a tensor's kernels write a part per block only.
  at::Tensor parts = at::zeros({tensors, parts_of_sums, 2}, options), sums = at::zeros({tensors, 2}, options);
  start(DevicePieces<Step>(pieces, writes), parts.mutable_data_ptr<double>());
  updates.add_parts(parts.const_data_ptr<double>(), tensors, sums.mutable_data_ptr<double>());
  return sums;
}

std::atomic<bool>& left_to_operators() {
  static std::atomic<bool> left = false;
  return left;
}

// The passes with LibTorch's operators: each rule of kernels/element_rules.inl.h, operator by operator. Half precision
// is widened as a whole.

at::ScalarType wide(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// A tensor for computation: itself, or a wider copy. put_back() rounds the copy into the tensor; the destructor does
/// not, because a step also widens tensors that it only reads.
class Wide {
 public:
  explicit Wide(const at::Tensor& stored) : stored_(stored), values_(stored) {
    if (stored.defined() && stored.scalar_type() != wide(stored)) values_ = stored.to(wide(stored));
  }
  ~Wide() = default;
  Wide(const Wide&) = delete;
  Wide& operator=(const Wide&) = delete;
  at::Tensor& operator*() { return values_; }
  const at::Tensor& operator*() const { return values_; }
  at::Tensor* operator->() { return &values_; }
  void put_back() {
    if (!values_.is_same(stored_)) stored_.copy_(values_);
  }

 private:
  at::Tensor stored_;
  at::Tensor values_;
};

/// g' = scale g + l2 p, in the type of the computation. A copy, even for scale = 1, since to() returns the gradient
/// itself if the types are equal: the caller's gradient stays as it is.
at::Tensor scaled_gradient(const UpdateTensors& tensors, double scale, double l2, const at::Tensor& params) {
  at::Tensor grad = tensors.grads.to(wide(params)).mul(scale);
  if (l2 != 0.0) grad.add_(params, l2);
  return grad;
}

/// m += (1 - beta1) (g' - m); v = beta2 v + (1 - beta2) g'^2; p *= 1 - lr weight_decay;
/// p -= lr / correction1 * m / (sqrt(v) / correction2_root + eps).
/// With the operators of PyTorch's AdamW: lerp for m, and one addcdiv whose factor is lr / correction1. Others would
/// round differently.
void adamw_operators(const Piece<AdamWStep>& piece) {
  const AdamWStep& step = piece.step;
  Wide p(piece.tensors.params), m(piece.tensors.first), v(piece.tensors.second);
  const at::Tensor grad = scaled_gradient(piece.tensors, step.grad_scale, step.l2, *p);
  m->lerp_(grad, 1.0 - step.beta1);
  v->mul_(step.beta2).addcmul_(grad, grad, 1.0 - step.beta2);
  if (step.weight_decay != 0.0) p->mul_(1.0 - step.lr * step.weight_decay);
  p->addcdiv_(*m, v->sqrt().div_(step.correction2_root).add_(step.eps), -step.lr / step.correction1);
  for (Wide* each : {&p, &m, &v}) each->put_back();
}

/// b = momentum b + g'; p -= lr b, with the decay in g'.
void sgd_operators(const Piece<SgdStep>& piece) {
  const SgdStep& step = piece.step;
  Wide p(piece.tensors.params), buffer(piece.tensors.first);
  at::Tensor change = scaled_gradient(piece.tensors, step.grad_scale, step.weight_decay, *p);
  if (buffer->defined()) change = buffer->mul_(step.momentum).add_(change);
  p->sub_(change, step.lr);
  p.put_back();
  if (buffer->defined()) buffer.put_back();
}

/// u = (m / correction1) / (sqrt(v / correction2) + eps) + weight_decay p.
at::Tensor direction(const MomentsStep& step, const at::Tensor& p, const at::Tensor& m, const at::Tensor& v) {
  at::Tensor u = m.div(step.correction1).div_(v.div(step.correction2).sqrt_().add_(step.eps));
  if (step.weight_decay != 0.0) u.add_(p, step.weight_decay);
  return u;
}

/// m = beta1 m + take1 g'; v = beta2 v + (1 - beta2) g'^2. Returns u of the new moments, in the type of the
/// computation. p is only read: LAMB needs |u| before it can apply u.
at::Tensor moments_operators(const Piece<MomentsStep>& piece, const at::Tensor& p) {
  const MomentsStep& step = piece.step;
  Wide m(piece.tensors.first), v(piece.tensors.second);
  const at::Tensor grad = scaled_gradient(piece.tensors, step.grad_scale, step.l2, p);
  m->mul_(step.beta1).add_(grad, step.take1);
  v->mul_(step.beta2).addcmul_(grad, grad, 1.0 - step.beta2);
  const at::Tensor u = direction(step, p, *m, *v);
  for (Wide* each : {&m, &v}) each->put_back();
  return u;
}

/// b = keep b + take g'; p -= lr (b + weight_decay p), or with Nesterov's look-ahead g' + momentum b in place of b. The
/// step is a copy of b, because a decay after the momentum must not enter the buffer.
void fused_sgd_operators(const Piece<FusedSgdStep>& piece) {
  const FusedSgdStep& step = piece.step;
  Wide p(piece.tensors.params), buffer(piece.tensors.first);
  at::Tensor change = scaled_gradient(piece.tensors, step.grad_scale, step.l2, *p);
  if (buffer->defined()) {
    buffer->mul_(step.keep).add_(change, step.take);
    change = step.nesterov ? change.add_(*buffer, step.momentum) : buffer->clone();
  }
  if (step.weight_decay != 0.0) change.add_(*p, step.weight_decay);
  p->sub_(change, step.lr);
  p.put_back();
  if (buffer->defined()) buffer.put_back();
}

/// b = momentum b + clamp(g', -10, 10); p -= lr b, with the decay in g' and the trust ratio in lr.
void lars_operators(const Piece<LarsStep>& piece) {
  const LarsStep& step = piece.step;
  Wide p(piece.tensors.params), buffer(piece.tensors.first);
  at::Tensor change = scaled_gradient(piece.tensors, step.grad_scale, step.weight_decay, *p).clamp_(-10.0, 10.0);
  if (buffer->defined()) change = buffer->mul_(step.momentum).add_(change);
  p->sub_(change, step.lr);
  p.put_back();
  if (buffer->defined()) buffer.put_back();
}

/// Two numbers [] per piece -> [pieces, 2].
at::Tensor rows_of(const std::vector<at::Tensor>& numbers, const at::Tensor& like) {
  if (numbers.empty()) return at::zeros({0, 2}, like.defined() ? like.options().dtype(at::kDouble) : at::kDouble);
  return at::stack(numbers).view({-1, 2});
}

template <typename Step, typename Use>
void each_piece(const std::vector<Piece<Step>>& pieces, const Use& use) {
  const at::NoGradGuard no_grad;
  for (const Piece<Step>& piece : pieces) {
    check(piece);
    use(piece);
  }
}

}  // namespace

const char* UpdatePath::name() const {
  if (std::holds_alternative<const DeviceUpdates*>(path_)) return "CUDA kernels";
  return std::get<Kind>(path_) == kernels ? "kernels" : "operators";
}

UpdatePath path_of(const at::Device& device) {
  if (device.is_cpu()) return UpdatePath::kernels;
  if (!device.is_cuda() || left_to_operators().load(std::memory_order_relaxed)) return UpdatePath::operators;
  // Loaded once per process: loading it loads LibTorch's CUDA half.
  static const Result<DeviceBackend*> module = load_device_backend();
  const DeviceUpdates* const updates = module ? (*module)->updates(device.index()) : nullptr;
  return updates != nullptr ? UpdatePath(*updates) : UpdatePath::operators;
}

bool agree_on_device_kernels(Communicator& axis, bool mine) {
  // 1 if this rank lacks them: the maximum is 0 if no rank does.
  at::Tensor lacks = at::full({1}, mine ? 0.0 : 1.0, at::kDouble);
  axis.all_reduce(lacks, Reduce::max);
  const bool all = lacks.item<double>() == 0.0;
  if (!all) left_to_operators().store(true, std::memory_order_relaxed);
  return all;
}

void adamw_pass(const std::vector<Piece<AdamWStep>>& pieces, UpdatePath path) {
  if (path == UpdatePath::operators) return each_piece(pieces, adamw_operators);
  if (path != UpdatePath::kernels) return update_on_device(pieces, path.updates());
  elementwise(pieces, []<typename T>(T, const AdamWStep& step, const Pointers<T>& at, std::int64_t n) {
    flat_kernels<T>().adamw(at[0], at[1], at[2], at[3], n, step);
  });
}

void sgd_pass(const std::vector<Piece<SgdStep>>& pieces, UpdatePath path) {
  if (path == UpdatePath::operators) return each_piece(pieces, sgd_operators);
  if (path != UpdatePath::kernels) return update_on_device(pieces, path.updates());
  elementwise(pieces, []<typename T>(T, const SgdStep& step, const Pointers<T>& at, std::int64_t n) {
    flat_kernels<T>().sgd(at[0], at[1], at[2], n, step);
  });
}

void fused_adam_pass(const std::vector<Piece<MomentsStep>>& pieces, UpdatePath path) {
  if (path == UpdatePath::operators)
    return each_piece(pieces, [](const Piece<MomentsStep>& piece) {
      Wide p(piece.tensors.params);
      p->sub_(moments_operators(piece, *p), piece.step.lr);
      p.put_back();
    });
  if (path != UpdatePath::kernels) return update_on_device(pieces, path.updates());
  elementwise(pieces, []<typename T>(T, const MomentsStep& step, const Pointers<T>& at, std::int64_t n) {
    flat_kernels<T>().fused_adam(at[0], at[1], at[2], at[3], n, step);
  });
}

void fused_sgd_pass(const std::vector<Piece<FusedSgdStep>>& pieces, UpdatePath path) {
  if (path == UpdatePath::operators) return each_piece(pieces, fused_sgd_operators);
  if (path != UpdatePath::kernels) return update_on_device(pieces, path.updates());
  elementwise(pieces, []<typename T>(T, const FusedSgdStep& step, const Pointers<T>& at, std::int64_t n) {
    flat_kernels<T>().fused_sgd(at[0], at[1], at[2], n, step);
  });
}

void lars_pass(const std::vector<Piece<LarsStep>>& pieces, UpdatePath path) {
  if (path == UpdatePath::operators) return each_piece(pieces, lars_operators);
  if (path != UpdatePath::kernels) return update_on_device(pieces, path.updates());
  elementwise(pieces, []<typename T>(T, const LarsStep& step, const Pointers<T>& at, std::int64_t n) {
    flat_kernels<T>().lars(at[0], at[1], at[2], n, step);
  });
}

at::Tensor lamb_moments_pass(const std::vector<Piece<MomentsStep>>& pieces, UpdatePath path) {
  if (path == UpdatePath::operators) {
    std::vector<at::Tensor> numbers;
    each_piece(pieces, [&](const Piece<MomentsStep>& piece) {
      Wide p(piece.tensors.params);
      // |p|^2 before the update, |u|^2 of the new moments.
      numbers.push_back(square_sum_of(*p));
      numbers.push_back(square_sum_of(moments_operators(piece, *p)));
    });
    return rows_of(numbers, pieces.empty() ? at::Tensor() : pieces.front().tensors.params);
  }
  if (path != UpdatePath::kernels)
    return summed_on_device(pieces, Writes::state, path.updates(), [&](const auto& on_device, double* parts) {
      path.updates().lamb_moments(on_device.tensors, on_device.steps, parts);
    });
  return summed(pieces, Writes::state,
                []<typename T>(T, const MomentsStep& step, const Pointers<T>& at, std::int64_t n) {
                  return flat_kernels<T>().lamb_moments(at[0], at[1], at[2], at[3], n, step);
                });
}

void lamb_apply_pass(const std::vector<Piece<MomentsStep>>& pieces, const std::vector<double>& rates, UpdatePath path) {
  if (path == UpdatePath::operators) {
    auto rate = rates.begin();
    return each_piece(pieces, [&](const Piece<MomentsStep>& piece) {
      Wide p(piece.tensors.params), m(piece.tensors.first), v(piece.tensors.second);
      p->sub_(direction(piece.step, *p, *m, *v), *rate++);
      p.put_back();
    });
  }
  if (path != UpdatePath::kernels) {
    const DevicePieces<MomentsStep> on_device(pieces, Writes::parameters);
    path.updates().lamb_apply(on_device.tensors, on_device.steps, rates);
    return;
  }
  for_blocks(pieces, Writes::parameters, row_of(pieces),
             [&]<typename T>(T, std::size_t i, std::int64_t /*block*/, const Pointers<T>& at, std::int64_t n) {
               flat_kernels<T>().lamb_apply(at[0], at[2], at[3], n, pieces[i].step, rates[i]);
             });
}

std::vector<at::Tensor> lamb_steps(const std::vector<Piece<MomentsStep>>& pieces) {
  std::vector<at::Tensor> steps;
  each_piece(pieces, [&](const Piece<MomentsStep>& piece) {
    const Wide p(piece.tensors.params), m(piece.tensors.first), v(piece.tensors.second);
    steps.push_back(direction(piece.step, *p, *m, *v));
  });
  return steps;
}

at::Tensor lars_sums_pass(const std::vector<Piece<LarsStep>>& pieces, UpdatePath path) {
  if (path == UpdatePath::operators) {
    std::vector<at::Tensor> numbers;
    each_piece(pieces, [&](const Piece<LarsStep>& piece) {
      numbers.push_back(square_sum_of(piece.tensors.params));
      numbers.push_back(square_sum_of(piece.tensors.grads));
    });
    return rows_of(numbers, pieces.empty() ? at::Tensor() : pieces.front().tensors.params);
  }
  if (path != UpdatePath::kernels)
    return summed_on_device(pieces, Writes::nothing, path.updates(), [&](const auto& on_device, double* parts) {
      path.updates().square_sums(on_device.tensors, parts);
    });
  return summed(pieces, Writes::nothing, []<typename T>(T, const LarsStep&, const Pointers<T>& at, std::int64_t n) {
    const auto sum = flat_kernels<T>().square_sum;
    return SquareSums{.params = sum(at[0], n), .steps = at[1] != nullptr ? sum(at[1], n) : 0.0};
  });
}

double square_sum_pass(const std::vector<at::Tensor>& tensors) {
  std::vector<UpdatePath> paths;
  for (const at::Tensor& tensor : tensors)
    if (const UpdatePath path = path_of(tensor.device()); !std::ranges::count(paths, path)) paths.push_back(path);
  double total = 0.0;
  for (const UpdatePath path : paths) {
    std::vector<Piece<LarsStep>> pieces;
    for (const at::Tensor& tensor : tensors) {
      if (path_of(tensor.device()) != path) continue;
      if (path == UpdatePath::operators)
        total += square_sum_of(tensor).item<double>();
      else
        pieces.push_back({{.params = tensor}, {}});
    }
    // Of each row only the first column: without gradients the second is 0.
    if (path != UpdatePath::operators) total += lars_sums_pass(pieces, path).sum().item<double>();
  }
  return total;
}

}  // namespace accrue

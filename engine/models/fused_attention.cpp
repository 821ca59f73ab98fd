// SPDX-License-Identifier: Apache-2.0
// One task per head. LibTorch's own CPU attention reaches 30 GF/s at 256 positions on AVX2; these tiles reach twice
// that.
// Shapes: B sequences, T positions, H heads of this rank, E numbers per head, D = H E. In qkv [B, T, 3 D] and out
// [B, T, D] a head is a strided [T, E], so no copy [B, H, T, E] is made.
#include "models/fused_attention.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include <vector>

#include "kernels/kernels.h"
#include "models/buffer_pool.h"
#include "models/row_tasks.h"

namespace accrue {

namespace {

template <typename T>
class HeadTasks {
 public:
  HeadTasks(const at::Tensor& qkv, const at::Tensor& bias, std::int64_t heads)
      : batch_(qkv.size(0)),
        heads_(heads),
        width_(qkv.size(2) / 3),
        qkv_(qkv.const_data_ptr<T>()),
        bias_(bias.const_data_ptr<T>()) {
    shape_ = {.positions = qkv.size(1), .size = width_ / heads, .qkv_stride = 3 * width_, .out_stride = width_};
  }

  /// Calls task(inputs, offset into qkv, offset into out, offset into log_sums, scratch) for every head.
  template <typename Task>
  void run(const Task& task) const {
    const std::int64_t numbers = block_kernels<T>().attention_scratch(shape_);
    // T^2 E multiply-adds, about 8 per vector instruction.
    const std::int64_t steps = shape_.positions * shape_.positions * shape_.size / 8;
    over_lent_threads(0, batch_ * heads_, task_grain(steps), [&](std::int64_t begin, std::int64_t end) {
      const at::Tensor scratch = activation_pool().take({numbers}, c10::CppTypeToScalarType<T>::value);
      for (std::int64_t i = begin; i < end; ++i) {
        // Head h of sequence b: i = b H + h. Its first query lies at [b, 0, h E]; keys are D numbers on,
        // values 2 D.
        const std::int64_t row = i / heads_ * shape_.positions, in_row = i % heads_ * shape_.size;
        const std::int64_t at = row * shape_.qkv_stride + in_row;
        const T *const q = qkv_ + at, *const b = bias_ + in_row;
        task(HeadInputs<T>{q, q + width_, q + 2 * width_, b, b + width_, b + 2 * width_}, at,
             row * shape_.out_stride + in_row, i * shape_.positions, scratch.template mutable_data_ptr<T>());
      }
    });
  }

  const HeadShape& shape() const { return shape_; }
  std::int64_t width() const { return width_; }

 private:
  std::int64_t batch_, heads_, width_;
  const T* qkv_;
  const T* bias_;
  HeadShape shape_;
};

template <typename T>
void attend_into(const at::Tensor& qkv, const at::Tensor& bias, std::int64_t heads, const Attended& to) {
  const HeadTasks<T> tasks(qkv, bias, heads);
  T *const out = to.out.mutable_data_ptr<T>(), *const logs = to.log_sums.mutable_data_ptr<T>();
  tasks.run([&](const HeadInputs<T>& in, std::int64_t, std::int64_t out_at, std::int64_t logs_at, T* scratch) {
    block_kernels<T>().attention_forward(tasks.shape(), in, out + out_at, logs + logs_at, scratch);
  });
}

template <typename T>
void attend_backward_into(const at::Tensor& qkv, const at::Tensor& bias, std::int64_t heads, const Attended& attended,
                          const at::Tensor& dout, const at::Tensor& to) {
  const HeadTasks<T> tasks(qkv, bias, heads);
  const T *const out = attended.out.const_data_ptr<T>(), *const logs = attended.log_sums.const_data_ptr<T>();
  // dout is laid out like out, dqkv like qkv.
  const T* const up = dout.const_data_ptr<T>();
  T* const down = to.mutable_data_ptr<T>();
  const std::int64_t width = tasks.width();
  tasks.run([&](const HeadInputs<T>& in, std::int64_t at, std::int64_t out_at, std::int64_t logs_at, T* scratch) {
    block_kernels<T>().attention_backward(tasks.shape(), in, out + out_at, logs + logs_at, up + out_at, down + at,
                                          down + at + width, down + at + 2 * width, scratch);
  });
}

}  // namespace

// qkv [B, T, 3 D], bias [3 D] -> out [B, T, D] and per query the log of its softmax sum, [B, H, T].
Attended attend(const at::Tensor& qkv, const at::Tensor& bias, std::int64_t heads) {
  const auto batch = qkv.size(0), positions = qkv.size(1), width = qkv.size(2) / 3;
  Attended result{.out = activation_pool().take({batch, positions, width}, qkv.scalar_type()),
                  .log_sums = at::empty({batch, heads, positions}, qkv.options())};
  AT_DISPATCH_FLOATING_TYPES(qkv.scalar_type(), "attend", [&] { attend_into<scalar_t>(qkv, bias, heads, result); });
  return result;
}

// dout [B, T, D] -> dqkv [B, T, 3 D], packed like qkv.
at::Tensor attend_backward(const at::Tensor& qkv, const at::Tensor& bias, std::int64_t heads, const Attended& attended,
                           const at::Tensor& dout) {
  at::Tensor dqkv = activation_pool().take_like(qkv);
  AT_DISPATCH_FLOATING_TYPES(qkv.scalar_type(), "attend_backward",
                             [&] { attend_backward_into<scalar_t>(qkv, bias, heads, attended, dout, dqkv); });
  return dqkv;
}

}  // namespace accrue

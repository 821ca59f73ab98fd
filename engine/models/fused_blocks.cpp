// SPDX-License-Identifier: Apache-2.0
// Kept for backward, per position and block: the two inputs (2 D), the packed projections (3 D), attention's result (D)
// and the MLP's hidden row before GELU (4 D). Recomputing the rest costs three passes and one score product.
//
// product.h decides which routine computes a matrix product. A projection onto the residual stream adds into x + bias,
// so neither bias nor residual needs its own pass; on a divided model the ranks' sum is added instead. Exchanges
// overlap the next product, and under sequence parallelism only this rank's rows are kept.
#include "models/fused_blocks.h"

#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "kernels/kernels.h"
#include "models/buffer_pool.h"
#include "models/fused_attention.h"
#include "models/fused_rows.h"
#include "models/product.h"
#include "models/row_tasks.h"
#include "parallel/kept_axis.h"

namespace accrue {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor matrix(const at::Tensor& x) {
  return x.view({-1, x.size(-1)});
}

at::Tensor column_sum(const at::Tensor& x) {
  const std::int64_t rows = x.size(0), width = x.size(1);
  return AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "column_sum", [&] {
    const scalar_t* const from = x.const_data_ptr<scalar_t>();
    return tensor_of(summed_over_rows<scalar_t>(rows, width,
                                                [&](std::int64_t begin, std::int64_t end, scalar_t* sums) {
                                                  block_kernels<scalar_t>().column_sum(from + begin * width,
                                                                                       end - begin, width, sums);
                                                }),
                     0, width);
  });
}

/// hidden += bias; returns gelu(hidden).
at::Tensor activate(at::Tensor& hidden, const at::Tensor& bias) {
  const std::int64_t rows = hidden.size(0), width = hidden.size(1);
  at::Tensor active = activation_pool().take_like(hidden);
  AT_DISPATCH_FLOATING_TYPES(hidden.scalar_type(), "gelu", [&] {
    scalar_t *const x = hidden.mutable_data_ptr<scalar_t>(), *const out = active.mutable_data_ptr<scalar_t>();
    const scalar_t* const b = bias.const_data_ptr<scalar_t>();
    over_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
      block_kernels<scalar_t>().gelu_forward(x + begin * width, b, end - begin, width, out + begin * width);
    });
  });
  return active;
}

struct GeluGradient {
  at::Tensor active;    // gelu(hidden), recomputed
  at::Tensor bias_sum;  // [4D]
};

/// Turns grad into the gradient of hidden.
GeluGradient gelu_gradient(const at::Tensor& hidden, at::Tensor& grad) {
  const std::int64_t rows = hidden.size(0), width = hidden.size(1);
  GeluGradient result{.active = activation_pool().take_like(hidden)};
  AT_DISPATCH_FLOATING_TYPES(hidden.scalar_type(), "gelu_gradient", [&] {
    const scalar_t* const x = hidden.const_data_ptr<scalar_t>();
    scalar_t *const g = grad.mutable_data_ptr<scalar_t>(), *const out = result.active.mutable_data_ptr<scalar_t>();
    const auto sums =
        summed_over_rows<scalar_t>(rows, width, [&](std::int64_t begin, std::int64_t end, scalar_t* part) {
          const std::int64_t at = begin * width;
          block_kernels<scalar_t>().gelu_backward(x + at, end - begin, width, g + at, out + at, part);
        });
    result.bias_sum = tensor_of(sums, 0, width);
  });
  return result;
}

/// rows += a b, summed over the ranks of the axis.
void add_summed_product(at::Tensor& rows, const at::Tensor& a, const at::Tensor& b, const TensorAxis& axis) {
  if (!axis.split()) return add_product(rows, a, b);
  at::Tensor part = product(a, b);
  if (axis.sequence()) {
    rows.add_(axis.sum_to_rows(part));
  } else {
    axis.sum(part);
    rows.add_(part);
  }
}

/// Rows of all ranks, gathered while something else is computed.
class GatheredRows {
 public:
  GatheredRows(const at::Tensor& rows, const TensorAxis& axis) : rows_(rows) {
    if (!axis.sequence()) return;
    rows_ = activation_pool().take({rows.size(0) * axis.size(), rows.size(1)}, rows.scalar_type());
    work_ = axis.ranks().start_all_gather(rows_, rows, CollectivePurpose::activations);
  }
  const at::Tensor& wait() {
    work_.wait();
    return rows_;
  }

 private:
  at::Tensor rows_;
  Work work_;
};

/// This rank's rows of a gradient of which each rank has a part, summed in the same way.
class SummedRows {
 public:
  SummedRows(at::Tensor part, const TensorAxis& axis) : part_(std::move(part)), rows_(part_) {
    if (axis.sequence()) {
      rows_ = activation_pool().take({part_.size(0) / axis.size(), part_.size(1)}, part_.scalar_type());
      work_ = axis.ranks().start_reduce_scatter(rows_, part_, CollectivePurpose::activations);
    } else if (axis.split()) {
      work_ = axis.ranks().start_all_reduce(part_, Reduce::sum, CollectivePurpose::activations);
    }
  }
  const at::Tensor& wait() {
    work_.wait();
    return rows_;
  }

 private:
  at::Tensor part_;
  at::Tensor rows_;
  Work work_;
};

/// For y = x W^T + b: dx = dy W, dW = dy^T x, db = sum of dy over rows; `matrix` makes [B, T, D] rows [B T, D].
struct AttentionHalf : torch::autograd::Function<AttentionHalf> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& norm_weight,
                            const at::Tensor& norm_bias, const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                            const at::Tensor& output_weight, const at::Tensor& output_bias, const BlockShape& shape) {
    const Normed normed = norm_rows(x, norm_weight, norm_bias);
    const at::Tensor rows = GatheredRows(matrix(normed.rows), shape.axis).wait();  // [B T, D]
    // [B, T, 3 D / t], without its bias, which attention adds as it copies heads.
    const at::Tensor qkv = product(rows, qkv_weight.t()).view({-1, shape.positions, qkv_weight.size(0)});
    // out [B, T, D / t].
    const Attended attended = attend(qkv, qkv_bias, shape.heads);
    at::Tensor y = plus_bias(x, output_bias);
    at::Tensor y_rows = matrix(y);
    // Rows [B T, D] of x + bias, or this rank's.
    add_summed_product(y_rows, matrix(attended.out), output_weight.t(), shape.axis);
    keep_axis(ctx, shape.axis);
    ctx->saved_data["heads"] = shape.heads;
    ctx->save_for_backward({x, norm_weight, norm_bias, normed.statistics, qkv_weight, qkv_bias, output_weight, qkv,
                            attended.out, attended.log_sums});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto kept = ctx->get_saved_variables();
    const at::Tensor &x = kept[0], &norm_weight = kept[1], &norm_bias = kept[2], &statistics = kept[3];
    const at::Tensor &qkv_weight = kept[4], &qkv_bias = kept[5], &output_weight = kept[6], &qkv = kept[7];
    const Attended attended{kept[8], kept[9]};
    const TensorAxis axis = kept_axis(ctx);
    const at::Tensor dy = grads[0].contiguous();

    const at::Tensor dy_rows = GatheredRows(matrix(dy), axis).wait();
    GatheredRows normed(matrix(norm_again(x, norm_weight, norm_bias, statistics)), axis);
    const at::Tensor doutput_weight = weight_gradient(output_weight, dy_rows, matrix(attended.out));  // [D, D / t]
    at::Tensor dattended = product(dy_rows, output_weight).view_as(attended.out);                     // [B, T, D / t]
    const at::Tensor dqkv =
        matrix(attend_backward(qkv, qkv_bias, ctx->saved_data["heads"].toInt(), attended, dattended));
    dattended.reset();
    // [B T, 3 D / t] [3 D / t, D]: each rank's part of the sum [B T, D].
    SummedRows dnormed(product(dqkv, qkv_weight), axis);
    const at::Tensor dqkv_bias = column_sum(dqkv);
    const at::Tensor dqkv_weight = weight_gradient(qkv_weight, dqkv, normed.wait());  // [3 D / t, D]
    const NormGradient norm = norm_gradient(dnormed.wait().view_as(x), x, norm_weight, statistics, dy);
    return {norm.x, norm.weight, norm.bias, dqkv_weight, dqkv_bias, doutput_weight, norm.dy_sum, {}};
  }
};

/// Shapes: x [B, T, D], hidden [B T, 4D / t]; backward as in AttentionHalf.
struct MlpHalf : torch::autograd::Function<MlpHalf> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& norm_weight,
                            const at::Tensor& norm_bias, const at::Tensor& up_weight, const at::Tensor& up_bias,
                            const at::Tensor& down_weight, const at::Tensor& down_bias, const BlockShape& shape) {
    const Normed normed = norm_rows(x, norm_weight, norm_bias);
    at::Tensor hidden = product(GatheredRows(matrix(normed.rows), shape.axis).wait(), up_weight.t());
    const at::Tensor active = activate(hidden, up_bias);
    at::Tensor y = plus_bias(x, down_bias);
    at::Tensor rows = matrix(y);
    add_summed_product(rows, active, down_weight.t(), shape.axis);
    keep_axis(ctx, shape.axis);
    ctx->save_for_backward({x, norm_weight, norm_bias, normed.statistics, up_weight, down_weight, hidden});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto kept = ctx->get_saved_variables();
    const at::Tensor &x = kept[0], &norm_weight = kept[1], &norm_bias = kept[2], &statistics = kept[3];
    const at::Tensor &up_weight = kept[4], &down_weight = kept[5], &hidden = kept[6];
    const TensorAxis axis = kept_axis(ctx);
    const at::Tensor dy = grads[0].contiguous();

    const at::Tensor dy_rows = GatheredRows(matrix(dy), axis).wait();
    at::Tensor dhidden = product(dy_rows, down_weight);  // [B T, 4 D / t]
    GatheredRows normed(matrix(norm_again(x, norm_weight, norm_bias, statistics)), axis);
    GeluGradient gelu = gelu_gradient(hidden, dhidden);
    const at::Tensor ddown_weight = weight_gradient(down_weight, dy_rows, gelu.active);  // [D, 4 D / t]
    gelu.active.reset();
    SummedRows dnormed(product(dhidden, up_weight), axis);
    const at::Tensor dup_weight = weight_gradient(up_weight, dhidden, normed.wait());  // [4 D / t, D]
    const NormGradient norm = norm_gradient(dnormed.wait().view_as(x), x, norm_weight, statistics, dy);
    return {norm.x, norm.weight, norm.bias, dup_weight, gelu.bias_sum, ddown_weight, norm.dy_sum, {}};
  }
};

}  // namespace

bool can_fuse(const at::Tensor& x, double dropout) {
  const auto type = x.scalar_type();
  return dropout == 0.0 && x.is_cpu() && x.numel() > 0 && (type == at::kFloat || type == at::kDouble);
}

at::Tensor fused_attention_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape) {
  return AttentionHalf::apply(x.contiguous(), weights.norm_1_weight, weights.norm_1_bias, weights.qkv_weight,
                              weights.qkv_bias, weights.output_weight, weights.output_bias, shape);
}

at::Tensor fused_mlp_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape) {
  return MlpHalf::apply(x.contiguous(), weights.norm_2_weight, weights.norm_2_bias, weights.up_weight, weights.up_bias,
                        weights.down_weight, weights.down_bias, shape);
}

}  // namespace accrue

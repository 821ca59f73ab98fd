// SPDX-License-Identifier: Apache-2.0
#include "accrue/parallel/tensor_layers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/add.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "parallel/direct_gradient.h"
#include "parallel/even_part.h"
#include "parallel/kept_axis.h"

namespace accrue {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor matrix(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

/// Returns the gradient of a weight [outputs, inputs], from dy [..., outputs] and x [..., inputs]; undefined if it was
/// added.
at::Tensor weight_gradient(const at::Tensor& weight, const at::Tensor& dy, const at::Tensor& x) {
  at::Tensor place = gradient_place(weight);
  if (!place.defined()) return at::matmul(matrix(dy).t(), matrix(x));
  add_widened(place, matrix(dy).t(), matrix(x));
  return {};
}

/// at::linear whose backward adds to the weight's sum.
struct AddingLinear : torch::autograd::Function<AddingLinear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    ctx->save_for_backward({x, weight, bias.value_or(at::Tensor())});
    return at::linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto kept = ctx->get_saved_variables();
    const at::Tensor &x = kept[0], &weight = kept[1], &dy = grads[0];
    const at::Tensor dx = ctx->needs_input_grad(0) ? at::matmul(dy, weight) : at::Tensor();
    const at::Tensor dbias = kept[2].defined() ? matrix(dy).sum(0) : at::Tensor();
    return {dx, weight_gradient(weight, dy, x), dbias};
  }
};

/// y = x W^T, with this rank's rows of W [outputs / t, inputs] and all rows of x. Backward sums dx = dy W over the
/// ranks, because each rank knows only its outputs' share.
struct ColumnLinear : torch::autograd::Function<ColumnLinear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const TensorAxis& axis) {
    keep_axis(ctx, axis);
    ctx->save_for_backward({x, weight});
    return at::linear(axis.sequence() ? axis.gather_rows(x) : x, weight);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const TensorAxis axis = kept_axis(ctx);
    const auto kept = ctx->get_saved_variables();
    const at::Tensor &x = kept[0], &weight = kept[1], &dy = grads[0];
    const bool sequence = axis.sequence();

    // Both exchanges run during the computation of a product.
    constexpr auto for_backward = CollectivePurpose::activations;
    at::Tensor whole = sequence ? rows_like(x, axis.size()) : x;
    Work gathers = sequence ? axis.ranks().start_all_gather(whole, x.contiguous(), for_backward) : Work();
    // This rank's part of dx = dy W, [..., inputs], to be summed.
    at::Tensor dwhole = at::matmul(dy, weight).contiguous();
    at::Tensor dx = sequence ? at::empty_like(x, at::MemoryFormat::Contiguous) : dwhole;
    Work sums = sequence ? axis.ranks().start_reduce_scatter(dx, dwhole, for_backward)
                         : axis.ranks().start_all_reduce(dwhole, Reduce::sum, for_backward);
    gathers.wait();
    const at::Tensor dweight = weight_gradient(weight, dy, whole);
    sums.wait();
    return {dx, dweight, {}};
  }

 private:
  static at::Tensor rows_like(const at::Tensor& x, std::int64_t parts) {
    auto sizes = x.sizes().vec();
    sizes.front() *= parts;
    return at::empty(sizes, x.options());
  }
};

/// With s the smoothing and x shifted by the row's largest logit:
/// loss = (1 - s) (log sum exp(x) - x_target) + s (log sum exp(x) - mean x);
/// gradient = softmax(x) - (1 - s) one-hot - s / classes. Shapes: logits [N, classes / t], loss [N].
struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& targets,
                            const TensorAxis& axis, double label_smoothing, std::int64_t all_classes) {
    // [N, K / t], in float32 at least. elsewhere [N]: the target's class is on another rank.
    const at::Tensor wide = matrix(logits).to(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    const std::int64_t part = wide.size(1), first = axis.rank() * part;
    const std::int64_t own_classes = classes_on_rank(part, all_classes, axis);
    const auto classes = static_cast<double>(all_classes);
    const at::Tensor ids = targets.reshape({-1}).to(at::kLong) - first;
    const at::Tensor elsewhere = (ids < 0).logical_or(ids >= part);
    const at::Tensor local = ids.masked_fill(elsewhere, 0);

    constexpr double nothing = -std::numeric_limits<double>::infinity();
    at::Tensor largest =
        own_classes > 0 ? wide.narrow(1, 0, own_classes).amax(1) : at::full({wide.size(0)}, nothing, wide.options());
    if (axis.split()) axis.ranks().all_reduce(largest, Reduce::max, CollectivePurpose::activations);
    const at::Tensor shifted = wide - largest.unsqueeze(1);
    shifted.narrow(1, own_classes, part - own_classes).fill_(nothing);
    const at::Tensor exponentials = shifted.exp();
    const at::Tensor own = shifted.gather(1, local.unsqueeze(1)).squeeze(1).masked_fill(elsewhere, 0.0);
    // [3, N]: the sum of exp(x), x_target from the rank that has it, and the sum of x. One exchange for all.
    at::Tensor sums = at::stack({exponentials.sum(1), own, shifted.narrow(1, 0, own_classes).sum(1)});
    axis.sum(sums);
    const at::Tensor log_sum = sums[0].log();
    at::Tensor loss = log_sum - sums[1];
    // Shares of the target and of every class, which sum to one.
    const double smoothing = label_smoothing > 0.0 ? label_smoothing * classes / (classes - 1.0) : 0.0;
    if (smoothing > 0.0) loss = loss * (1.0 - smoothing) - (sums[2] / classes - log_sum) * smoothing;

    keep_axis(ctx, axis);
    ctx->saved_data["smoothing"] = smoothing;
    ctx->saved_data["classes"] = classes;
    ctx->saved_data["own_classes"] = own_classes;
    ctx->saved_data["type"] = logits.scalar_type();
    ctx->saved_data["shape"] = logits.sizes();
    ctx->save_for_backward({exponentials / sums[0].unsqueeze(1), local, elsewhere});
    return loss.view(targets.sizes());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto kept = ctx->get_saved_variables();
    const at::Tensor &softmax = kept[0], &local = kept[1], &elsewhere = kept[2];
    const double smoothing = ctx->saved_data["smoothing"].toDouble();
    at::Tensor gradient = softmax.clone();
    const at::Tensor here = elsewhere.logical_not().to(softmax.scalar_type()).unsqueeze(1);
    // softmax - (1 - s) at the target's place, if this rank has it.
    gradient.scatter_add_(1, local.unsqueeze(1), here * (smoothing - 1.0));
    if (smoothing > 0.0)
      gradient.narrow(1, 0, ctx->saved_data["own_classes"].toInt())
          .sub_(smoothing / ctx->saved_data["classes"].toDouble());
    gradient.mul_(grads[0].reshape({-1, 1}));
    return {gradient.to(ctx->saved_data["type"].toScalarType()).view(ctx->saved_data["shape"].toIntVector()),
            {},
            {},
            {},
            {}};
  }
};

void refuse(bool wrong, const char* text) {
  if (wrong) throw std::invalid_argument(text);
}

/// Draws [outputs, inputs] by PyTorch's rule, whole.
at::Tensor drawn(std::int64_t outputs, std::int64_t inputs, std::int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return at::empty({outputs, inputs}).uniform_(-bound, bound);
}

at::Tensor part_along(const at::Tensor& whole, std::int64_t dim, const TensorAxis& axis, const char* what) {
  const std::int64_t part = even_part(whole.size(dim), axis, what);
  return whole.narrow(dim, axis.rank() * part, part).clone(at::MemoryFormat::Contiguous);
}

}  // namespace

at::Tensor accumulating_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.scalar_type() != weight.scalar_type() || !takes_products(weight)) return at::linear(x, weight, bias);
  return AddingLinear::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

at::Tensor column_parallel_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                  const TensorAxis& axis) {
  if (!axis.split()) return accumulating_linear(x, weight, bias);
  const at::Tensor y = ColumnLinear::apply(x, weight, axis);
  return bias.defined() ? at::add(y, bias) : y;
}

at::Tensor row_parallel_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const TensorAxis& axis) {
  if (!axis.split()) return accumulating_linear(x, weight, bias);
  // This rank's part of the sum [..., outputs].
  const at::Tensor part = accumulating_linear(x, weight);
  const at::Tensor sum = axis.sequence() ? sum_to_rows(part, axis) : sum_from_tensor(part, axis);
  return bias.defined() ? at::add(sum, bias) : sum;
}

at::Tensor vocab_parallel_embedding(const at::Tensor& ids, const at::Tensor& weight, const TensorAxis& axis) {
  if (!axis.split()) return at::embedding(weight, ids);
  const std::int64_t rows_of_all = weight.size(0) * axis.size();
  if (ids.is_cpu() && ids.numel() > 0 &&
      (ids.min().item<std::int64_t>() < 0 || ids.max().item<std::int64_t>() >= rows_of_all))
    throw std::invalid_argument("an id lies outside the vocabulary of " + std::to_string(rows_of_all));
  // Like the lookup of one rank on a device, which would have to be waited for to throw here.
  if (!ids.is_cpu())
    at::_assert_async((ids >= 0).logical_and(ids < rows_of_all).all(), "an id lies outside the vocabulary");
  const at::Tensor local = ids - axis.rank() * weight.size(0);
  const at::Tensor elsewhere = (local < 0).logical_or(local >= weight.size(0));
  // Rows of this rank's ids; zeros for the others', so that the sum over the ranks is the lookup.
  const at::Tensor rows = at::embedding(weight, local.masked_fill(elsewhere, 0));
  return sum_from_tensor(rows.masked_fill(elsewhere.unsqueeze(-1), 0.0), axis);
}

at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const TensorAxis& axis,
                                        double label_smoothing, std::optional<std::int64_t> classes) {
  return CrossEntropy::apply(logits, targets, axis, label_smoothing, classes.value_or(logits.size(-1) * axis.size()));
}

ColumnParallelLinear::ColumnParallelLinear(std::int64_t inputs, std::int64_t outputs, const TensorAxis& axis,
                                           ColumnParallelOptions options)
    : axis_(axis), options_(options) {
  refuse(options.gather_output && axis.sequence(), "gather_output and sequence parallelism exclude each other");
  weight = register_parameter("weight", part_along(drawn(outputs, inputs, inputs), 0, axis, "outputs"));
  if (options.bias)
    bias = register_parameter("bias", part_along(drawn(outputs, 1, inputs).view({outputs}), 0, axis, "outputs"));
}

at::Tensor ColumnParallelLinear::forward(const at::Tensor& x) {
  const at::Tensor y = column_parallel_linear(x, weight, bias, axis_);
  return options_.gather_output ? gather_last_dim(y, axis_) : y;
}

RowParallelLinear::RowParallelLinear(std::int64_t inputs, std::int64_t outputs, const TensorAxis& axis,
                                     RowParallelOptions options)
    : axis_(axis), options_(options) {
  refuse(!options.input_is_parallel && axis.sequence(),
         "sequence parallelism needs input_is_parallel: the input is already divided");
  weight = register_parameter("weight", part_along(drawn(outputs, inputs, inputs), 1, axis, "inputs"));
  if (options.bias) bias = register_parameter("bias", drawn(outputs, 1, inputs).view({outputs}));
}

at::Tensor RowParallelLinear::forward(const at::Tensor& x) {
  return row_parallel_linear(options_.input_is_parallel ? x : scatter_last_dim(x, axis_), weight, bias, axis_);
}

VocabParallelEmbedding::VocabParallelEmbedding(std::int64_t vocabulary, std::int64_t width, const TensorAxis& axis)
    : axis_(axis) {
  weight = register_parameter("weight", part_along(at::empty({vocabulary, width}).normal_(), 0, axis, "ids"));
}

at::Tensor VocabParallelEmbedding::forward(const at::Tensor& ids) {
  return vocab_parallel_embedding(ids, weight, axis_);
}

}  // namespace accrue

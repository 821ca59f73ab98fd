// SPDX-License-Identifier: Apache-2.0
// Final norm, tied head and cross entropy in one function. Logits exist for a chunk of rows at a time and are
// overwritten by their gradient; with GPT-2's vocabulary that takes 67 MB instead of three copies of 200 MB for each
// 1,024 tokens.
#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "models/buffer_pool.h"
#include "models/fused_blocks.h"
#include "models/fused_rows.h"
#include "models/losses.h"
#include "models/product.h"
#include "models/row_tasks.h"
#include "parallel/even_part.h"

namespace accrue {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Numbers of a chunk of logits: 64 MiB of float32.
constexpr std::int64_t most_logits = std::int64_t{1} << 24;

/// Returns the sum of the rows' losses; logits are overwritten by their gradient. Shapes: logits [N, V], targets [N].
double losses_of(at::Tensor& logits, const std::int64_t* targets) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  return AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "cross_entropy", [&] {
    scalar_t* const numbers = logits.mutable_data_ptr<scalar_t>();
    std::vector<double> parts(static_cast<std::size_t>((rows + rows_per_task - 1) / rows_per_task));
    over_lent_threads(0, static_cast<std::int64_t>(parts.size()), task_grain(rows_per_task * classes),
                      [&](std::int64_t first, std::int64_t last) {
                        for (std::int64_t part = first; part < last; ++part) {
                          const std::int64_t from = part * rows_per_task, count = std::min(rows_per_task, rows - from);
                          parts[static_cast<std::size_t>(part)] = block_kernels<scalar_t>().cross_entropy(
                              numbers + from * classes, targets + from, count, classes, ignored_label);
                        }
                      });
    double total = 0.0;
    // In order of the parts, whichever thread computed them, and in float64.
    for (const double part : parts) total += part;
    return total;
  });
}

/// Returns the rows' losses if each rank has the logits of its rows of the table, [N, V / t]; they are overwritten by
/// their gradient, which is zero beyond the classes.
/// With m the largest logit of a row: loss = log(sum exp(l - m)) - (l_target - m); its gradient is softmax - one-hot.
/// m, the sum and the target's logit come from all ranks; each rank contributes its classes.
double divided_losses_of(at::Tensor& logits, const at::Tensor& targets, std::int64_t classes, const TensorAxis& axis) {
  const std::int64_t each = logits.size(1), own_classes = classes_on_rank(each, classes, axis);
  logits.narrow(1, own_classes, each - own_classes).fill_(-std::numeric_limits<double>::infinity());
  at::Tensor largest = logits.amax(1);
  axis.ranks().all_reduce(largest, Reduce::max, CollectivePurpose::activations);
  logits.sub_(largest.unsqueeze(1));
  const at::Tensor ids = targets - axis.rank() * each;
  const at::Tensor elsewhere = (ids < 0).logical_or(ids >= each);
  const at::Tensor local = ids.masked_fill(elsewhere, 0).unsqueeze(1);
  const at::Tensor own = logits.gather(1, local).squeeze(1).masked_fill(elsewhere, 0.0);
  logits.exp_();
  at::Tensor sums = at::stack({logits.sum(1), own});
  axis.sum(sums);
  const at::Tensor ignored = targets == ignored_label;
  const at::Tensor losses = (sums[0].log() - sums[1]).masked_fill(ignored, 0.0);

  logits.div_(sums[0].unsqueeze(1));
  logits.scatter_add_(1, local, elsewhere.to(logits.scalar_type()).sub(1.0).unsqueeze(1));
  logits.masked_fill_(ignored.unsqueeze(1), 0.0);
  return losses.sum(at::kDouble).item<double>();
}

struct HeadResult {
  double loss = 0.0;
  at::Tensor dnormed;  // [N, D], undefined without gradients
  at::Tensor dtable;   // [V / t, D]
};

/// normed: [N, D], all rows; dnormed is this rank's part of it if the table is divided.
HeadResult run_head(const at::Tensor& normed, const at::Tensor& table, const at::Tensor& targets, std::int64_t classes,
                    bool gradients, const TensorAxis& axis) {
  // Rows N of all positions; columns V / t.
  const std::int64_t rows = normed.size(0), columns = table.size(0);
  const std::int64_t chunk =
      std::clamp<std::int64_t>(most_logits / columns, rows_per_task, rows < rows_per_task ? rows_per_task : rows);
  HeadResult result;
  if (gradients) {
    result.dnormed = activation_pool().take_like(normed);
    result.dtable = at::empty_like(table);
  }
  for (std::int64_t from = 0; from < rows; from += chunk) {
    const std::int64_t count = std::min(chunk, rows - from);
    const at::Tensor part = normed.narrow(0, from, count);
    at::Tensor logits = activation_pool().take({count, columns}, normed.scalar_type());  // [chunk, V / t]
    product_into(logits, part, table.t());
    result.loss += axis.split() ? divided_losses_of(logits, targets.narrow(0, from, count), classes, axis)
                                : losses_of(logits, targets.const_data_ptr<std::int64_t>() + from);
    if (!gradients) continue;
    at::Tensor down = result.dnormed.narrow(0, from, count);
    // logits hold the loss's gradient: dnormed = dlogits table, dtable = dlogits^T normed.
    product_into(down, logits, table);
    if (from == 0) {
      product_into(result.dtable, logits.t(), part);
    } else {
      add_product(result.dtable, logits.t(), part);
    }
  }
  return result;
}

struct HeadLoss : torch::autograd::Function<HeadLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& norm_weight,
                            const at::Tensor& norm_bias, const at::Tensor& table, const at::Tensor& targets,
                            std::int64_t classes, bool gradients, const TensorAxis& axis) {
    const Normed normed = norm_rows(x, norm_weight, norm_bias);
    const at::Tensor own_rows = normed.rows.view({-1, x.size(-1)});
    HeadResult head =
        run_head(axis.sequence() ? axis.gather_rows(own_rows) : own_rows, table, targets, classes, gradients, axis);
    if (gradients) {
      if (axis.sequence()) {
        head.dnormed = axis.sum_to_rows(head.dnormed);
      } else {
        axis.sum(head.dnormed);
      }
      at::Tensor nothing = at::zeros_like(head.dnormed);
      const NormGradient norm = norm_gradient(head.dnormed.view_as(x), x, norm_weight, normed.statistics, nothing);
      ctx->save_for_backward({norm.x, norm.weight, norm.bias, head.dtable});
    }
    return at::scalar_tensor(head.loss, x.options());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto kept = ctx->get_saved_variables();
    // With deferred normalisation backward is called on the sum itself: the factor is 1 and nothing needs scaling.
    if (const double factor = grads[0].item().toDouble(); factor != 1.0) {
      for (at::Tensor& gradient : kept) gradient = at::mul(gradient, factor);
    }
    return {kept[0], kept[1], kept[2], kept[3], {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor fused_head_loss(const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                           const at::Tensor& table, const at::Tensor& targets, std::int64_t classes,
                           const TensorAxis& axis) {
  const at::Tensor labels = targets.to(at::kLong).contiguous().view({-1});
  const std::int64_t positions = x.numel() / x.size(-1) * (axis.sequence() ? axis.size() : 1);
  if (labels.numel() != positions) {
    throw std::invalid_argument(std::to_string(labels.numel()) + " labels for " + std::to_string(positions) +
                                " positions: each position takes one label");
  }
  check_labels(labels, classes);
  return HeadLoss::apply(x.contiguous(), norm_weight, norm_bias, table, labels, classes, at::GradMode::is_enabled(),
                         axis);
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Bytes per rank by kind. State follows from the parameter count; activations are what backward needs of one
// micro-batch, counted tensor by tensor for our models:
//
//   GPT block, per token: input of each norm (2 D), output of each norm (2 D), q, k, v (3 D), attention output (D),
//   up projection before and after GELU (8 D) = 16 D, and the softmax's log-sum (H). The causal attention keeps no
//   T x T matrix; with dropout it does, H T numbers a token twice (weights and mask), and three masks of D.
//   Ends: embedding (D), final norm (2 D), and three tensors of V: logits, log-softmax and their gradient.
//   Of t tensor-parallel ranks each has 1 / t of what is between the matrices (q to up projection, softmax, logits),
//   and under sequence parallelism 1 / t of everything. A pipeline stage keeps its blocks once for each micro-step that
//   waits for its backward; the fullest stage is the first or the last. Dense layer, per sample: its output before and
//   after the activation.
//
// Everything is counted in doubles and held below 2^62, since a form may ask for any product of large numbers.
#include "memory_estimate.h"

#include <algorithm>

#include "accrue/run/pipeline_schedule.h"
#include "plan_derivation.h"

namespace accrue {

namespace {

std::int64_t to_bytes(double bytes) {
  return static_cast<std::int64_t>(std::clamp(bytes, 0.0, 4.6e18));
}

double gpt_numbers(const RunSpec& spec) {
  const ModelSpec& model = spec.model;
  const ParallelSpec& parallel = spec.parallel;
  const auto tensor = static_cast<double>(parallel.tensor);
  const double rows = parallel.sequence ? tensor : 1.0;
  const auto width = static_cast<double>(model.width);
  const auto heads = static_cast<double>(model.heads);
  const auto context = static_cast<double>(model.context);
  double block = 4 * width / rows + (12 * width + heads) / tensor;
  if (model.dropout > 0) block += 2 * heads * context / tensor + 3 * width / rows;
  const double first = width / rows;
  const double last = 2 * width / rows + 3 * static_cast<double>(model.vocabulary) / tensor;

  const PipelineShape shape =
      pipeline_shape(parallel, std::max<std::int64_t>(steps_of(spec.accumulation, parallel.data), 1));
  const double chunk = static_cast<double>(model.layers) / static_cast<double>(shape.stages * shape.chunks) * block;
  const auto kept = [&](std::int64_t stage) { return static_cast<double>(pipeline_in_flight(shape, stage)) * chunk; };
  if (shape.stages == 1) return context * (chunk + first + last);
  return context * std::max(kept(0) + first, kept(shape.stages - 1) + last);
}

double dense_numbers(const ModelSpec& model) {
  double numbers = static_cast<double>(model.inputs) + 2 * static_cast<double>(model.outputs);
  if (model.kind == ModelKind::mlp)
    for (const std::int64_t width : model.hidden) numbers += 2 * static_cast<double>(width);
  return numbers;
}

double optimizer_numbers(const OptimizerSpec& optimizer) {
  if (optimizer.kind == OptimizerKind::adamw || optimizer.kind == OptimizerKind::adam) return 2;
  return optimizer.momentum > 0 ? 1 : 0;
}

}  // namespace

std::int64_t dtype_bytes(Dtype dtype) {
  if (dtype == Dtype::float64) return 8;
  return dtype == Dtype::float32 ? 4 : 2;
}

std::int64_t gradient_bytes(Dtype dtype, AccumulationDtype accumulation) {
  const std::int64_t sum = bytes_of_sum(accumulation, dtype_bytes(dtype));
  return accumulation == AccumulationDtype::float32_compensated ? 2 * sum : sum;
}

MemoryEstimate estimate_memory(const RunSpec& spec, const AccumulationKnobs& knobs, std::int64_t parameter_count,
                               std::int64_t gradient_numel) {
  const auto count = static_cast<double>(parameter_count);
  const auto bytes = static_cast<double>(dtype_bytes(spec.model.dtype));
  const double numbers = spec.model.kind == ModelKind::gpt ? gpt_numbers(spec) : dense_numbers(spec.model);
  MemoryEstimate memory;
  memory.parameters = to_bytes(count * bytes);
  memory.gradients = to_bytes(static_cast<double>(gradient_numel) *
                              static_cast<double>(gradient_bytes(spec.model.dtype, knobs.accumulation_dtype)));
  // Moments of half-precision parameters are kept in float32, beside a float32 copy of the parameters. Under ZeRO each
  // replica has its share of them, and a copy of its share of the parameters in any type.
  const bool sharded = spec.parallel.zero > 0;
  const double masters = bytes < 4 || sharded ? 1 : 0;
  const double share = sharded ? static_cast<double>(std::max<std::int64_t>(spec.parallel.data, 1)) : 1.0;
  memory.optimizer = to_bytes(count * (optimizer_numbers(spec.optimizer) + masters) * std::max(bytes, 4.0) / share);
  memory.activations = to_bytes(static_cast<double>(spec.accumulation.micro_batch) * numbers * bytes);
  memory.process = rank_process_bytes;
  return memory;
}

}  // namespace accrue

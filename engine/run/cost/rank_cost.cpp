// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/cost/rank_cost.h"

#include <algorithm>
#include <cmath>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/block_form.h"
#include "accrue/run/window/pipeline_schedule.h"
#include "kept_activations.h"
#include "memory_estimate.h"
#include "parameter_totals.h"
#include "update_traffic.h"
#include "window_length.h"

namespace accrue {

namespace {

/// Upper bound of each figure: total() adds six of them, and 6 x 2^60 is below 2^63.
constexpr std::int64_t most_bytes = std::int64_t{1} << 60;

std::int64_t to_bytes(double bytes) {
  return static_cast<std::int64_t>(std::clamp(bytes, 0.0, static_cast<double>(most_bytes)));
}

/// Parameters of a rank's share. In double, for the reason that kept_activations.h gives.
struct Numels {
  double padded = 0;   ///< elements in the flat layout, where each parameter is padded to 16
  double tensors = 0;  ///< number of parameters
  double on_rows = 0;  ///< elements whose gradients sequence parallelism sums
  void add(const ParameterShare& share) {
    padded += static_cast<double>(padded_numel(share.numel()));
    tensors += 1;
    if (share.on_rows) on_rows += static_cast<double>(share.numel());
  }
  void add(const Numels& other, double times = 1) {
    padded += other.padded * times;
    tensors += other.tensors * times;
    on_rows += other.on_rows * times;
  }
};

/// A model as its ends and one block, as all blocks are alike; without blocks, everything is in the first end.
struct ModelPieces {
  Numels first;
  Numels block;
  Numels encoder_end;
  Numels decoder_block;
  Numels last;
  Numels table;  ///< the token embedding, of which other stages hold copies
  double table_numel = 0;
  double positions_numel = 0;
  Numels& at(ParameterPlace place) {
    switch (place) {
      case ParameterPlace::block:
        return block;
      case ParameterPlace::encoder_end:
        return encoder_end;
      case ParameterPlace::decoder_block:
        return decoder_block;
      case ParameterPlace::last_part:
        return last;
      case ParameterPlace::first_part:
        break;
    }
    return first;
  }
};

/// Counts the shapes of a model with one block per stack, so that the cost does not grow with its layers.
ModelPieces pieces_of(ModelSpec model, std::int64_t tensor_ranks) {
  if (is_transformer(model.kind)) {
    model.decoder_context = model.tokens_of_decoder();
    model.layers = model.decoder_layers.emplace() = 1;
  }
  const ModelShare whole{.tensor_ranks = tensor_ranks};
  const std::vector<ParameterShape> shapes = parameter_shapes(model);
  const std::vector<ParameterShare> shares = parameter_shares(model, whole);
  ModelPieces pieces;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    pieces.at(shapes[i].place).add(shares[i]);
    if (!is_transformer(model.kind) || shapes[i].place != ParameterPlace::first_part) continue;
    const auto numel = static_cast<double>(shares[i].numel());
    if (!shapes[i].by_token) {
      pieces.positions_numel = numel;
      continue;
    }
    pieces.table.add(shares[i]);
    pieces.table_numel = numel;
  }
  return pieces;
}

/// Number of a stage's first `flights` forwards that belong to one chunk. Interleaved schedules go round the chunks by
/// groups of `group` micro-steps: of f forwards, chunk c has (f / (g C)) g in full rounds, and of the last round what
/// of its own group has begun.
double flights_of_chunk(const PipelineShape& shape, std::int64_t flights, std::int64_t chunk) {
  const std::int64_t group = shape.schedule == PipelineSchedule::interleaved
                                 ? (shape.group > 0 ? shape.group : shape.stages)
                                 : shape.micro_steps;
  const std::int64_t round = group * shape.chunks;
  const std::int64_t in_last = std::clamp<std::int64_t>(flights % round - chunk * group, 0, group);
  const std::int64_t kept = flights / round * group + in_last;
  return static_cast<double>(kept);
}

class Stages {
 public:
  explicit Stages(const RunSpec& spec)
      : spec_(spec),
        knobs_(resolve_knobs(spec)),
        grid_(make_grid(spec)),
        tied_(block_form(spec.model).tied_head),
        pieces_(pieces_of(spec.model, spec.parallel.tensor)),
        blocks_(is_transformer(spec.model.kind) ? spec.model.layers / spec.parallel.pipeline : 0),
        shape_(
            pipeline_shape(spec.parallel, std::max<std::int64_t>(steps_of(spec.accumulation, spec.parallel.data), 1))),
        chunk_(kept_by_chunk(spec, blocks_ / spec.parallel.virtual_pipeline)),
        working_(working_bytes(spec)) {}

  RankCost cost(std::int64_t stage) const {
    const StageGradients gradients = gradients_of(stage);
    RankCost cost;
    add_state(cost, gradients.numel);
    cost.chunks_in_flight = pipeline_in_flight(shape_, stage);
    cost.activations = to_bytes(kept(stage, cost.chunks_in_flight));
    // A backward and the optimizer's step do not run at once, so the larger of the two counts.
    cost.buffers = to_bytes(std::max(working_, step_bytes(gradients.numel)) + messages(stage) + staging() +
                            gathered_at_the_end(stage, gradients.numel));
    cost.process = rank_process_bytes;
    const TrafficByAxis traffic = update_traffic(spec_, stage, gradients);
    TrafficByAxis carried;
    for (std::size_t axis = 0; axis < traffic.size(); ++axis)
      carried[static_cast<std::size_t>(carrier_of(static_cast<Axis>(axis), grid_))] += traffic[axis];
    for (std::size_t axis = 0; axis < carried.size(); ++axis)
      cost.wire[axis] = carried[axis].wire_bytes(ranks_along(static_cast<Axis>(axis), stage));
    return cost;
  }

 private:
  bool ends(std::int64_t stage) const { return stage == 0 || stage == grid_.pipeline - 1; }
  bool is_t5() const { return spec_.model.kind == ModelKind::t5; }
  bool embeds(std::int64_t stage) const { return std::ranges::count(embedding_stages(grid_), stage) > 0; }
  bool sharded() const { return spec_.parallel.zero > 0; }

  /// Elements that a rank of the stage holds, by the way in which their gradients are summed.
  StageGradients gradients_of(std::int64_t stage) const {
    Numels held;
    if (is_t5()) {
      const ModelShare share = share_under(spec_.model, spec_.parallel, 0, stage, 0);
      const BlockRange encodes = blocks_of(spec_.model, share), decodes = decoder_blocks_of(spec_.model, share);
      held.add(pieces_.block, static_cast<double>(encodes.last - encodes.first));
      held.add(pieces_.decoder_block, static_cast<double>(decodes.last - decodes.first));
      if (stage == std::max<std::int64_t>(grid_.split - 1, 0)) held.add(pieces_.encoder_end);
    } else {
      held.add(pieces_.block, static_cast<double>(blocks_));
    }
    const bool at_split = grid_.split > 0 && stage == grid_.split;
    if (stage == 0 || at_split) held.add(pieces_.first);
    if (stage == grid_.pipeline - 1) held.add(pieces_.last);
    if (stage == grid_.pipeline - 1 && stage > 0 && !at_split && tied_) held.add(pieces_.table);
    // Under ZeRO a tied embedding has its own buckets, and its holders sum their own shares. Either part of the layout
    // is rounded up to a multiple of 16 elements per shard, as flat_layout() does.
    const bool tied = tied_ && grid_.pipeline > 1 && embeds(stage);
    const double shards = static_cast<double>(sharded() ? grid_.data : 1), step = 16 * shards;
    const double alone = tied && sharded() ? pieces_.table.padded : 0;
    return {.numel = (std::ceil(alone / step) + std::ceil((held.padded - alone) / step)) * step,
            .parameters = held.tensors,
            .on_rows = held.on_rows,
            .tied = tied ? pieces_.table_numel / shards : 0,
            .positions = grid_.split > 0 && (stage == 0 || at_split) ? pieces_.positions_numel : 0};
  }

  /// Bytes of parameters, gradients and optimizer state, from N elements with padding. Moments of half-precision
  /// parameters are float32, beside a float32 copy of the parameters: AdamW keeps 12 N bytes for them, and 8 N for
  /// float32 ones. Under ZeRO each replica has its share of them, and a copy of its share of the parameters in any
  /// type.
  void add_state(RankCost& cost, double numel) const {
    const auto bytes = static_cast<double>(dtype_bytes(spec_.model.dtype));
    const OptimizerSpec& optimizer = spec_.optimizer;
    const auto moments = static_cast<double>(moments_of(optimizer));
    const double masters = bytes < 4 || sharded() ? 1 : 0;
    const double share = sharded() ? static_cast<double>(grid_.data) : 1;
    cost.parameters = to_bytes(numel * bytes);
    cost.gradients =
        to_bytes(numel * static_cast<double>(gradient_bytes(spec_.model.dtype, knobs_.accumulation_dtype)));
    // Of N / shards elements: moments (some in files) and perhaps a master, in float32 or wider.
    const double in_files = keeps_states_in_files(optimizer) ? optimizer.nvme_offload_fraction : 0.0;
    const double kept = moments * (numel / share - std::floor(in_files * (numel / share)));
    cost.optimizer = to_bytes((kept + masters * numel / share) * std::max(bytes, 4.0));
  }

  /// Bytes of activations when the stage holds its most forwards: flights (blocks + ends). A flight is one chunk of one
  /// micro-step, so the ends count only for flights of the chunk that has them.
  double kept(std::int64_t stage, std::int64_t flights) const {
    if (is_t5()) return static_cast<double>(flights) * kept_by_t5_stage(spec_, stage);
    double bytes = static_cast<double>(flights) * chunk_.blocks;
    if (stage == 0) bytes += flights_of_chunk(shape_, flights, 0) * chunk_.first;
    if (stage == grid_.pipeline - 1) bytes += flights_of_chunk(shape_, flights, shape_.chunks - 1) * chunk_.last;
    return bytes;
  }

  /// Bytes of the step's own memory. It reads gradients in the masters' type: a copy of this rank's share under ZeRO,
  /// of all if they are half precision, of none if parameters are their own masters.
  double step_bytes(double numel) const {
    const auto bytes = static_cast<double>(dtype_bytes(spec_.model.dtype));
    if (sharded()) return numel / static_cast<double>(grid_.data) * std::max(bytes, 4.0);
    return bytes < 4 ? numel * 4 : 0;
  }

  /// Bytes of messages in flight, e R D each (a T5's: t5_message()). A stage has few sends open, and one gradient
  /// received: those in the middle of the pipeline three in all, the first and the last, with one neighbour, two.
  double messages(std::int64_t stage) const {
    if (grid_.pipeline == 1) return 0;
    const MicroBatchShape shape(spec_);
    if (is_t5()) {
      const bool last = stage == grid_.pipeline - 1;
      return shape.element * 2 * t5_message(spec_, last ? stage - 1 : stage) +
             (ends(stage) ? 0 : shape.element * t5_message(spec_, stage - 1));
    }
    return (ends(stage) ? 2 : 3) * shape.hidden * shape.element;
  }

  /// Shared memory through which the tensor axis passes activations: two halves of a MiB per rank, all mapped by each.
  double staging() const {
    return grid_.tensor > 1 && spec_.launch.device == DeviceKind::cpu ? static_cast<double>(grid_.tensor) * (2 << 20)
                                                                      : 0;
  }

  /// Ranks that hold a part of the model assemble the final weights: each its stage, the first stage all of it. The
  /// memory of the last window is still allocated.
  double gathered_at_the_end(std::int64_t stage, double numel) const {
    const auto bytes = static_cast<double>(dtype_bytes(spec_.model.dtype));
    const double own = grid_.tensor > 1 ? numel * static_cast<double>(grid_.tensor) : 0;
    if (stage > 0 || grid_.pipeline == 1) return own * bytes;
    double others = 0;
    for (std::int64_t other = 1; other < grid_.pipeline; ++other)
      others += gradients_of(other).numel * static_cast<double>(grid_.tensor);
    return (own + others) * bytes;
  }

  std::int64_t ranks_along(Axis axis, std::int64_t stage) const {
    switch (axis) {
      case Axis::data:
        return grid_.data;
      case Axis::tensor:
        return grid_.tensor;
      case Axis::pipeline:
        return grid_.pipeline;
      case Axis::model:
        return grid_.tensor * grid_.pipeline;
      case Axis::embedding:
        return embeds(stage) ? static_cast<std::int64_t>(embedding_stages(grid_).size()) : 1;
      case Axis::position_embedding:
        return std::ranges::count(position_stages(grid_), stage) > 0
                   ? static_cast<std::int64_t>(position_stages(grid_).size())
                   : 1;
      case Axis::world:
        return grid_.world();
      case Axis::context:
        break;
    }
    return 1;
  }

  const RunSpec& spec_;
  AccumulationKnobs knobs_;
  RankGrid grid_;
  bool tied_;
  ModelPieces pieces_;
  std::int64_t blocks_;  ///< of a stage
  PipelineShape shape_;
  KeptByChunk chunk_;
  double working_;
};

}  // namespace

void AxisTraffic::add(std::string_view op, double bytes) {
  if (op == "all_reduce") all_reduced += bytes;
  if (op == "reduce_scatter") scattered += bytes;
  if (op == "all_gather") gathered += bytes;
  if (op == "send") sent += bytes;
}

AxisTraffic& AxisTraffic::operator+=(const AxisTraffic& other) {
  all_reduced += other.all_reduced;
  scattered += other.scattered;
  gathered += other.gathered;
  sent += other.sent;
  return *this;
}

AxisTraffic AxisTraffic::operator*(double times) const {
  return {all_reduced * times, scattered * times, gathered * times, sent * times};
}

std::int64_t AxisTraffic::wire_bytes(std::int64_t ranks) const {
  if (ranks <= 1) return 0;
  // A ring: reduce-scatter and all-gather send (n - 1) / n of the bytes each, and an all-reduce is both. Source:
  // Patarasuk and Yuan, 2009.
  const auto n = static_cast<double>(ranks), others = n - 1;
  return to_bytes(std::ceil((2 * all_reduced + scattered) * others / n + gathered * others + sent));
}

Axis carrier_of(Axis axis, const RankGrid& grid) {
  // An axis whose other degrees are 1 has the same ranks as the one that is left.
  const auto of_model = [&] {
    if (grid.pipeline == 1) return Axis::tensor;
    return grid.tensor == 1 ? Axis::pipeline : Axis::model;
  };
  switch (axis) {
    case Axis::model:
      return of_model();
    case Axis::world:
      if (grid.tensor * grid.pipeline == 1) return Axis::data;
      return grid.data == 1 ? of_model() : Axis::world;
    case Axis::embedding:
      return std::ssize(embedding_stages(grid)) == grid.pipeline ? Axis::pipeline : Axis::embedding;
    case Axis::position_embedding:
      if (position_stages(grid) == embedding_stages(grid)) return carrier_of(Axis::embedding, grid);
      return Axis::position_embedding;
    default:
      return axis;
  }
}

std::vector<RankCost> stage_costs(const RunSpec& spec) {
  const ParallelSpec& parallel = spec.parallel;
  if (std::min({parallel.data, parallel.tensor, parallel.pipeline, parallel.virtual_pipeline}) < 1 ||
      !check_division(spec.model, parallel).empty())
    return {};
  const Stages stages(spec);
  std::vector<RankCost> costs;
  for (std::int64_t stage = 0; stage < parallel.pipeline; ++stage) costs.push_back(stages.cost(stage));
  return costs;
}

std::vector<RankCost> rank_costs(const RunSpec& spec) {
  const std::vector<RankCost> by_stage = stage_costs(spec);
  const std::int64_t alike = spec.parallel.data * spec.parallel.tensor;
  std::vector<RankCost> costs;
  for (const RankCost& cost : by_stage) costs.insert(costs.end(), static_cast<std::size_t>(alike), cost);
  return costs;
}

}  // namespace accrue

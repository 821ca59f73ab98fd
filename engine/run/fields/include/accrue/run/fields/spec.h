// SPDX-License-Identifier: Apache-2.0
// RunSpec: everything the studio can do, as one value. Its text form is the *.accrue file (TOML); spec_fields.h has
// each member's key, unit, range and help. An empty std::optional is derived from the dialect's preset or by the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/fields/accumulation_knobs.h"
#include "accrue/run/fields/megatron_keys.h"

namespace accrue {

using Matrix = std::vector<std::vector<double>>;  ///< rows may differ in length

enum class ModelKind { linear, mlp, gpt, bert, t5, llama };
/// Whether a model predicts the next token of a text from those before it.
constexpr bool is_decoder_only(ModelKind kind) {
  return kind == ModelKind::gpt || kind == ModelKind::llama;
}
/// Whether a model consists of tokens and blocks, which ranks can divide.
constexpr bool is_transformer(ModelKind kind) {
  return is_decoder_only(kind) || kind == ModelKind::bert || kind == ModelKind::t5;
}
enum class Dtype { float32, float64, bfloat16, float16 };
enum class WeightInit { torch, zeros, normal, values, checkpoint };
enum class LossKind { mse, cross_entropy };
enum class Activation {
  relu,
  gelu,  ///< x P(X <= x) of a standard normal X
  tanh,
  gelu_tanh,  ///< GELU by its approximation with tanh
  swiglu      ///< silu(gate) * up, of two layers
};
enum class NormKind {
  layer,  ///< (x - mean) / deviation, with weight and bias
  rms     ///< x / root of the mean square, with weight
};
enum class PositionKind {
  learned,  ///< a table that is added to the token embedding
  rotary    ///< queries and keys are rotated by angles that grow with the position
};
enum class DataKind { text, tokens, indexed, csv, inline_, synthetic };
/// The kinds after adamw are Colossal-AI's, with their own names and rules.
enum class OptimizerKind { sgd, adam, adamw, cpu_adam, fused_adam, fused_lamb, fused_sgd, hybrid_adam, lamb, lars };
/// The kinds up to wsd are Megatron-LM's decay styles too.
enum class ScheduleKind { constant, linear, cosine, inverse_square_root, wsd, exponential };
/// Unit of a position of the learning-rate schedule: ticks of accumulation.schedule_clock, or samples trained on.
enum class RateClock { positions, samples };
/// Shape of the last part of a WSD schedule.
enum class DecayTail { linear, cosine, exponential, minus_square_root };
enum class WeightDecayStyle { constant, linear, cosine };
/// For indexed data: dataloader_type of Megatron-LM.
enum class SamplerKind { single, cyclic };
/// Number of rows of the token embedding.
enum class VocabularyPadding {
  fixed,    ///< a multiple of vocabulary_multiple in every layout; the added rows are not part of the softmax
  megatron  ///< a multiple of vocabulary_multiple x tensor ranks; the added rows are part of it: Megatron-LM's rule
};
/// Order of the micro-steps in a pipeline. one_forward_one_backward is interleaved if a stage has several chunks.
enum class PipelineOrder { one_forward_one_backward, all_forward };
enum class RecomputeKind { none, selective, full };
enum class RecomputeMethod { uniform, block };
enum class BackendKind { automatic, shm, gloo, nccl };
enum class DeviceKind { cpu, cuda };

struct ModelSpec {
  ModelKind kind = ModelKind::gpt;
  Dtype dtype = Dtype::float32;
  // gpt, llama, bert, t5
  std::int64_t layers = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t context = 128;     ///< tokens
  std::int64_t vocabulary = 256;  ///< token kinds; 256 for bytes
  std::int64_t vocabulary_multiple = 1;
  VocabularyPadding vocabulary_padding = VocabularyPadding::fixed;
  double dropout = 0.0;
  double label_smoothing = 0.0;                 ///< share of the target that the other tokens receive
  bool binary_head = true;                      ///< bert: a second loss, whether two segments are in order
  std::optional<std::int64_t> decoder_layers;   ///< t5; default layers
  std::optional<std::int64_t> decoder_context;  ///< t5: tokens; default context
  // gpt, llama; left out: the kind's own (BlockForm)
  std::optional<std::int64_t> kv_heads;    ///< heads of keys and values; default: as many as heads
  std::optional<std::int64_t> head_width;  ///< default width / heads
  std::optional<std::int64_t> mlp_width;
  std::optional<NormKind> norm;
  std::optional<double> norm_eps;
  std::optional<PositionKind> positions;
  double rotary_base = 10000.0;
  std::vector<double> rotary_scaling;  ///< Llama 3: factor, low and high frequency factor, original context
  std::optional<bool> qkv_bias;        ///< default: as bias
  std::optional<bool> tied_head;       ///< the head's matrix is the token embedding
  // linear, mlp
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  std::vector<std::int64_t> hidden = {64, 64};  ///< mlp: widths of the hidden layers
  std::optional<Activation> activation;         ///< mlp, gpt, llama
  bool batch_norm = false;                      ///< mlp: between each hidden layer and its activation
  std::optional<bool> bias;                     ///< linear, mlp, gpt, llama; default: all but llama
  WeightInit init = WeightInit::torch;
  std::string weights;           ///< init = "checkpoint": a folder; relative to the spec file
  std::vector<double> values;    ///< init = "values": weight row-major [outputs, inputs], then bias
  std::optional<LossKind> loss;  ///< default: cross_entropy for models of tokens; mse otherwise
  /// t5: number of blocks and tokens of the decoder.
  std::int64_t blocks_of_decoder() const { return decoder_layers.value_or(layers); }
  std::int64_t tokens_of_decoder() const { return decoder_context.value_or(context); }
  bool operator==(const ModelSpec&) const = default;
};

/// Whether the loss is the sum of two means, over items and over samples.
inline bool has_second_loss(const ModelSpec& model) {
  return model.kind == ModelKind::bert && model.binary_head;
}
/// Megatron-LM's names of the two losses: over the masked tokens, and over the order of the segments.
inline constexpr const char* token_loss_name = "lm loss";
inline constexpr const char* order_loss_name = "sop loss";

struct DataSpec {
  DataKind kind = DataKind::synthetic;
  std::string path;  ///< text, tokens, csv; relative to the spec file
  bool shuffle = true;
  double validation_fraction = 0.0;  ///< fraction of the data, at its end, that is kept for evaluation
  bool validation_shuffle = false;   ///< draws it from all samples instead of the end
  std::string validation_path;       ///< text, tokens, csv: data for evaluation instead of a part of data.path
  std::int64_t samples = 512;        ///< synthetic: number of samples of the seeded generator
  // indexed
  std::vector<std::string> paths;             ///< prefixes of .bin and .idx files; relative to the spec file
  std::vector<double> weights;                ///< of the paths in the blend; empty: proportional to their lengths
  std::string split = "969, 30, 1";           ///< parts for training, validation and test
  std::vector<std::string> validation_paths;  ///< instead of a split
  std::vector<double> validation_weights;
  SamplerKind sampler = SamplerKind::single;      ///< the order of the index, or a random one each epoch
  bool sharding = true;                           ///< cyclic: each replica stays in its own part of the samples
  std::string cache;                              ///< folder of the indices; default beside the data
  std::optional<std::int64_t> seed;               ///< of the indices; default run.seed
  std::optional<std::int64_t> end_of_document;    ///< gpt: token that ends a document
  bool mask_end_of_document = false;              ///< gpt: it is excluded from the loss
  bool reset_positions = false;                   ///< gpt: positions restart after it
  bool reset_attention = false;                   ///< gpt: tokens after it do not see those before
  double mask_probability = 0.15;                 ///< bert, t5: share of tokens that are masked
  double short_sequence_probability = 0.1;        ///< bert, t5: share of samples that are cut short
  std::vector<std::int64_t> consumed_samples;     ///< of training, validation and test: start of reading
  std::string token_type = "uint16";              ///< tokens: uint16 | uint32
  std::vector<std::string> label_columns;         ///< csv: label columns; default the last one
  Matrix x;                                       ///< inline
  Matrix y;                                       ///< inline
  Matrix sequences;                               ///< inline, ragged
  std::vector<std::vector<std::int64_t>> labels;  ///< inline, ragged; -100 is ignored
  bool operator==(const DataSpec&) const = default;
};

/// Whether the kind reads data.path.
inline bool is_file(DataKind kind) {
  return kind == DataKind::text || kind == DataKind::tokens || kind == DataKind::csv;
}
/// Whether a file of its own holds the evaluation data.
inline bool has_validation_file(const DataSpec& data) {
  return is_file(data.kind) && !data.validation_path.empty();
}

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = 1e-3;
  double weight_decay = 0.0;
  WeightDecayStyle weight_decay_style = WeightDecayStyle::constant;
  std::optional<double> start_weight_decay;          ///< linear, cosine: at the run's start
  std::optional<double> end_weight_decay;            ///< linear, cosine: at the run's end
  std::optional<std::vector<std::string>> no_decay;  ///< globs of parameter names; default: biases and norms
  std::vector<std::string> scaled_lr;                ///< globs of parameter names whose rate lr_mult multiplies
  double lr_mult = 1.0;
  std::optional<double> decoupled_lr;      ///< of the embeddings and the output layer; default lr
  std::optional<double> decoupled_min_lr;  ///< default schedule.min_lr
  double momentum = 0.0;                   ///< sgd, FusedSGD, Lars
  double dampening = 0.0;                  ///< FusedSGD
  bool nesterov = false;                   ///< FusedSGD
  bool wd_after_momentum = false;          ///< FusedSGD: decay after momentum
  std::optional<bool> bias_correction;     ///< the Adams, the LAMBs; default by kind
  bool adamw_mode = true;                  ///< the Adams, FusedLAMB: decay decoupled from the gradient
  bool adam = false;                       ///< Lamb: without its trust ratio
  bool grad_averaging = true;              ///< FusedLAMB
  double max_grad_norm = 1.0;              ///< FusedLAMB: its own clipping; 0 = none
  bool use_nvlamb = false;                 ///< FusedLAMB
  double eeta = 1e-3;                      ///< Lars
  double nvme_offload_fraction = 0.0;      ///< CPUAdam, HybridAdam: share of the states kept in files
  std::string nvme_offload_dir;            ///< CPUAdam, HybridAdam
  double beta1 = 0.9;                      ///< the Adams and the LAMBs
  double beta2 = 0.999;                    ///< the Adams and the LAMBs
  std::optional<double> eps;               ///< default by kind, see epsilon_of()
  double clip_norm = 0.0;                  ///< 0: no clipping; global L2 norm over all parameters
  std::optional<double> loss_scale;        ///< float16: initial dynamic scale; 0: no scaling
  std::int64_t loss_scale_window = 2000;   ///< updates without an overflow after which the scale doubles
  std::int64_t loss_scale_hysteresis = 1;  ///< overflows before the scale falls
  std::optional<double> min_loss_scale;    ///< default: no lower limit
  bool operator==(const OptimizerSpec&) const = default;
};

/// Returns optimizer.eps or its default: 1e-8 for the Adams, 1e-6 for the LAMBs, 0 for Lars.
double epsilon_of(const OptimizerSpec& optimizer);

/// Numbers of optimizer state per parameter element: two moments, a momentum, or none.
std::int64_t moments_of(const OptimizerSpec& optimizer);
/// Whether nvme_offload_fraction has an effect.
bool keeps_states_in_files(const OptimizerSpec& optimizer);
/// Whether a step is scaled by norms of each parameter, which ranks that hold parts of it must sum.
bool takes_parameter_norms(OptimizerKind kind);

/// Whether the schedule ends at its total: linear, cosine and WSD. The others continue as long as the run.
bool has_end(ScheduleKind kind);
/// Whether the rate falls towards min_lr: all but constant.
bool has_lowest_rate(ScheduleKind kind);

struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::constant;
  RateClock clock = RateClock::positions;
  std::int64_t warmup = 0;                ///< positions
  std::optional<double> warmup_fraction;  ///< fraction of total, instead of warmup
  double init_lr = 0.0;                   ///< clock samples: where the warm-up starts
  double min_lr = 0.0;
  double gamma = 0.9;                             ///< exponential
  double decay_fraction = 0.2;                    ///< WSD: fraction of the schedule that decays, at its end
  DecayTail decay_tail = DecayTail::exponential;  ///< WSD
  std::optional<std::int64_t> total;              ///< positions; derived by the plan if left out
  bool operator==(const ScheduleSpec&) const = default;
};

struct AccumulationSpec {
  Dialect dialect = Dialect::accrue;
  std::int64_t steps = 4;        ///< N: micro-steps per window
  std::int64_t micro_batch = 4;  ///< samples per rank and micro-step
  /// {first, increment, samples}: an update starts with `first` samples over all ranks and grows by `increment` until
  /// it has its full size after `samples` samples. Empty: full from the start.
  std::vector<std::int64_t> rampup;
  KnobOverrides knobs;  ///< each set member overrides the dialect's preset
  // Names that one dialect has (accelerate unless noted). Setting one under another dialect is a finding.
  std::optional<bool> sync_with_dataloader;
  std::optional<bool> sync_each_batch;
  std::optional<bool> split_batches;
  std::optional<bool> step_scheduler_with_optimizer;
  std::optional<bool> adjust_scheduler;
  std::optional<std::int64_t> max_iters;  ///< mmengine: micro-steps of the whole run
  std::vector<std::string> replay;        ///< names of Replay
  bool operator==(const AccumulationSpec&) const = default;
};

struct ParallelSpec {
  std::int64_t data = 1;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t virtual_pipeline = 1;
  PipelineOrder pipeline_order = PipelineOrder::one_forward_one_backward;
  std::optional<std::int64_t> pipeline_group;  ///< micro-steps that pass a chunk in turn; default pipeline
  std::optional<std::int64_t> split_stage;     ///< t5: the first stage of the decoder
  bool sequence = false;
  std::int64_t zero = 0;
  bool overlap_grad_reduce = true;    ///< gradients are reduced while the window's last backward still runs
  bool overlap_param_gather = false;  ///< zero: parameters are gathered while the next forward runs
  RecomputeKind recompute = RecomputeKind::none;
  RecomputeMethod recompute_method = RecomputeMethod::uniform;  ///< full
  std::int64_t recompute_layers = 1;          ///< full: blocks that one step recomputes, or first blocks
  bool distribute_saved_activations = false;  ///< full: tensor ranks share the kept inputs
  bool data_parallel_random_init = false;     ///< replicas draw their own dropout masks
  BackendKind backend = BackendKind::automatic;
  double bucket_mb = 25.0;  ///< gradient bucket size, MiB
  bool operator==(const ParallelSpec&) const = default;
};

struct LaunchSpec {
  DeviceKind device = DeviceKind::cpu;
  std::optional<std::int64_t> threads_per_rank;  ///< default: cores / ranks on this host, at least 1
  double collective_timeout_s = 60.0;
  double join_timeout_s = 60.0;   ///< time limit for the ranks to meet
  double stall_timeout_s = 30.0;  ///< time without progress that counts as a stall
  std::int64_t max_restarts = 0;  ///< automatic restarts from the last checkpoint after a lost rank
  bool operator==(const LaunchSpec&) const = default;
};

enum class NonFiniteRule { pause, stop, skip };
/// What a run is judged by.
enum class RunMeasure { none, validation_loss };

/// Updates of a run if [run] does not say.
inline constexpr std::int64_t updates_by_default = 200;

struct RunSection {
  std::optional<std::int64_t> updates;  ///< exactly one of the four; default 200 updates
  std::optional<double> epochs;
  std::optional<std::int64_t> samples;
  std::optional<std::int64_t> tokens;
  RunMeasure stop_when = RunMeasure::none;  ///< the run ends earlier once this no longer improves
  std::int64_t patience = 3;                ///< so many evaluations in a row without an improvement end the run
  double least_improvement = 0.0;           ///< an improvement is larger than this
  std::int64_t seed = 0;
  bool record_weights = false;
  NonFiniteRule on_non_finite = NonFiniteRule::pause;  ///< "pause" is "stop" in accrue-run, which has no user to answer
  bool update_norm = false;                            ///< measured at every update, like the next two
  bool parameter_norm = false;
  bool gradient_zeros = false;
  std::string tensorboard_dir;   ///< folder of the event files; empty: none
  std::int64_t timer_level = 2;  ///< timers in them: timer_level_of()
  std::string name;              ///< shown in the runs table; by default made from the spec
  bool operator==(const RunSection&) const = default;
  /// Whether the ranks reduce further numbers than the gradient's norm at a boundary.
  bool measures_updates() const { return update_norm || parameter_norm || gradient_zeros; }
};

struct EvaluateSpec {
  std::int64_t every_updates = 0;      ///< 0: never
  std::int64_t every_micro_steps = 0;  ///< 0: never; inside windows too
  std::int64_t batches = 8;            ///< per rank
  std::int64_t exactness_every = 0;    ///< updates between two checks against the one-batch gradient; 0: never
  bool operator==(const EvaluateSpec&) const = default;
};

struct CheckpointSpec {
  std::int64_t every_updates = 0;      ///< 0: only on request and at the end
  std::int64_t every_micro_steps = 0;  ///< 0: never; inside windows if the dialect's K15 allows it
  std::int64_t keep = 2;
  RunMeasure best = RunMeasure::none;  ///< the checkpoint with the lowest is taken and kept as well
  bool operator==(const CheckpointSpec&) const = default;
};

/// The fifteen bugs of the gallery: typical mistakes in gradient accumulation, as faults that a run can be given.
enum class Bug {
  none,
  mean_of_means,            ///< every micro-step has the same weight, whatever its size
  no_division,              ///< nothing divides the sum
  tail_by_steps,            ///< a short window is divided by N
  no_sync_off_by_one,       ///< the first micro-step reduces, the last does not
  no_sync_backward_only,    ///< reduction is decided in the forward, so nothing is saved
  no_no_sync,               ///< every micro-step reduces
  clip_every_micro_step,    ///< unfinished sums are clipped
  schedule_per_micro_step,  ///< the schedule advances N times too fast
  batch_norm,               ///< statistics of a micro-batch, not of the window
  skipped_micro_step,       ///< a non-finite micro-step is left out, the divisor stays
  unused_parameters,        ///< gradients that some micro-steps do not reach are not reduced
  pipeline_sync,            ///< one stage's gradients are never reduced
  divide_by_own_size,       ///< the loss is scaled by the micro-batch's own size
  repeated_samples,         ///< the last batch is filled up with used samples
  zero_grad_inside,         ///< gradients are cleared in every micro-step
};

/// Faults for tests and lessons. The record of a run with any of them says so.
struct TeachingSpec {
  Bug bug = Bug::none;
  std::vector<std::int64_t> overflow_at;  ///< micro-steps whose loss becomes infinite
  std::int64_t overflow_rank = 0;         ///< on this rank; -1: on all
  bool operator==(const TeachingSpec&) const = default;
};

struct RunSpec {
  std::int64_t accrue = 1;  ///< format version
  ModelSpec model;
  DataSpec data;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  AccumulationSpec accumulation;
  ParallelSpec parallel;
  LaunchSpec launch;
  RunSection run;
  EvaluateSpec evaluate;
  CheckpointSpec checkpoint;
  TeachingSpec teaching;
  MegatronSpec megatron;
  bool operator==(const RunSpec&) const = default;
};

}  // namespace accrue

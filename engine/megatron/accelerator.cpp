// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/accelerator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <stdexcept>

#include "accrue/megatron/data_parallel_groups.h"
#include "accrue/parallel/random_streams.h"
#include "accrue/run/base/program.h"
#include "accrue/run/cost/parameter_groups.h"
#include "accrue/run/fields/spec_io.h"
#include "comm/gathered.h"
#include "megatron/accelerator_impl.h"
#include "megatron/own_arguments.h"
#include "update/model_sums.h"
#include "update/rank_sums.h"

namespace accrue::megatron {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw std::invalid_argument(message);
}

/// Whether any parameter of the model is float16, on any stage. Collective: the world.
bool any_float16(const std::vector<std::shared_ptr<ModelChunk>>& chunks, const Mesh& mesh) {
  double found = 0.0;
  for (const auto& chunk : chunks)
    for (const at::Tensor& each : chunk->parameters()) found += each.scalar_type() == at::kHalf ? 1.0 : 0.0;
  return sum_over_ranks(mesh.world(), found) > 0.0;
}

/// float16 is scaled; other types where an argument names a scale. loss_scale is one that neither falls nor grows.
/// Source: Megatron-LM's ConstantGradScaler and DynamicGradScaler, by default from 2^32 and with a hysteresis of 2: the
/// first overflow does not shrink the scale.
DynamicScale loss_scale_of(const ResolvedMegatron& resolved, bool float16) {
  using Own = MegatronLossScale;
  const double constant = resolved.argument_or("loss_scale", 0.0);
  if (constant > 0.0) {
    if (const std::string why = constant_scale_conflict(resolved.arguments); !why.empty())
      refuse("other_megatron_args: loss_scale " + why);
    return {.scale = constant, .growth_factor = 1.0, .backoff_factor = 1.0, .lowest = constant};
  }
  const double first = resolved.argument_or("initial_loss_scale", float16 ? Own::initial_loss_scale : 0.0);
  const DynamicScale loss_scale{.scale = resolved.argument_or("loss_scale", first),
                                .growth_interval = resolved.argument_or("loss_scale_window", Own::loss_scale_window),
                                .lowest = resolved.argument_or("min_loss_scale", Own::min_loss_scale),
                                .hysteresis = resolved.argument_or("hysteresis", Own::hysteresis)};
  if (loss_scale.enabled() && loss_scale.scale < loss_scale.lowest)
    refuse("other_megatron_args: min_loss_scale is above the first loss scale (found " +
           format_value(loss_scale.lowest) + ", expected at most " + format_value(loss_scale.scale) + ")");
  return loss_scale;
}

}  // namespace

AcceleratorImpl::AcceleratorImpl(AcceleratorOptions given, Mesh& world) : options(std::move(given)), mesh(world) {
  options.megatron_lm_plugin = with_registered(std::move(options.megatron_lm_plugin),
                                               options.registry == nullptr ? Registry() : *options.registry);
  resolved = resolved_plugin(options, {.world = mesh.grid().world()});
  check_plugin();
  num_micro_batches = *plugin().num_micro_batches;
  if (mesh.grid().tensor > 1) axis = TensorAxis(mesh.tensor(), *plugin().sequence_parallelism);
  parallel.data = mesh.grid().data;
  parallel.tensor = mesh.grid().tensor;
  parallel.pipeline = mesh.grid().pipeline;
  parallel.sequence = axis.sequence();
  set_recompute(resolved, parallel);
}

// Source of 100 and 2718: Megatron-LM's _set_random_seed() and model_parallel_cuda_manual_seed(). Stages differ, and so
// do tensor ranks in the second stream; replicas draw alike.
void AcceleratorImpl::seed_generators(std::uint64_t seed) const {
  const std::uint64_t shared = seed + 100 * static_cast<std::uint64_t>(mesh.at().pipeline);
  seed_generator(at::detail::getDefaultCPUGenerator(), shared);
  if (axis.split())
    random_streams().seed(tensor_stream, at::kCPU, shared + 2718 + static_cast<std::uint64_t>(mesh.at().tensor));
}

std::string AcceleratorImpl::name_in_state(std::size_t chunk, const std::string& key, bool divided) const {
  const std::int64_t stages = mesh.grid().pipeline, parts = stages * std::ssize(chunks);
  const std::int64_t part = static_cast<std::int64_t>(chunk) * stages + mesh.at().pipeline;
  return (parts > 1 ? "part." + std::to_string(part) + "." : "") +
         (divided ? "tensor." + std::to_string(mesh.at().tensor) + "." : "") + key;
}

void AcceleratorImpl::check_plugin() {
  if (options.gradient_accumulation_steps != 1)
    refuse("gradient_accumulation_steps is " + std::to_string(options.gradient_accumulation_steps) +
           "; with the Megatron-LM plug-in it must be 1: set num_micro_batches");
  if (mesh.grid().tensor != *plugin().tp_degree || mesh.grid().pipeline != *plugin().pp_degree)
    refuse("the ranks are " + std::to_string(mesh.grid().tensor) + " x " + std::to_string(mesh.grid().pipeline) +
           " (tensor x pipeline), the plug-in's tp_degree x pp_degree " + std::to_string(*plugin().tp_degree) + " x " +
           std::to_string(*plugin().pp_degree) + ": build the mesh of Accelerator::grid_of()");
  check_arguments(resolved);
  const MegatronLMPlugin& given = options.megatron_lm_plugin;
  if (given.custom_prepare_model_function && !given.custom_model_provider_function)
    refuse("custom_prepare_model_function needs custom_model_provider_function, whose chunks it wraps");
  if (!given.custom_train_step_kwargs.empty() && !given.custom_train_step_class)
    refuse("custom_train_step_kwargs needs custom_train_step_class, which is made with them");
  if (mesh.grid().context != 1) refuse("the Megatron-LM plug-in has no use for a context axis");
}

void AcceleratorImpl::take_model(MadeModel made) {
  resolved = std::move(made.resolved);
  parallel = std::move(made.parallel);
  model_spec = std::move(made.spec);
  chunks = std::move(made.chunks);
  all_chunks = std::move(made.all);
}

void AcceleratorImpl::make_step(TrainStepArgs args) {
  const MegatronLMPlugin& given = options.megatron_lm_plugin;
  if (model_spec) args.binary_head = model_spec->binary_head;
  if (options.num_labels) {
    args.pretraining = false;
    args.num_labels = *options.num_labels;
  }
  step = given.custom_train_step_class ? make_train_step(given, args)
                                       : built_in_step(model_spec ? model_spec->kind : ModelKind::gpt, args);
  if (!given.custom_get_batch_function) return;
  if (given.custom_train_step_class)
    refuse(
        "custom_get_batch_function and custom_train_step_class are both given; a step of your own has its own "
        "get_batch(): leave the function out");
  step = with_get_batch(step, given.custom_get_batch_function);
}

void AcceleratorImpl::make_optimizer(const torch::optim::Optimizer& given) {
  const MegatronLMPlugin& callables = options.megatron_lm_plugin;
  OptimizerSpec groups{.no_decay = plugin().no_wd_decay_cond,
                       .scaled_lr = plugin().scale_lr_cond.value_or(std::vector<std::string>()),
                       .lr_mult = *plugin().lr_mult};
  if (resolved.argument("decoupled_lr") != nullptr) groups.decoupled_lr = resolved.argument_or("decoupled_lr", 0.0);
  std::vector<PlacedParameter> parameters;
  at::Tensor tied;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
    for (const auto& each : chunks[chunk]->named_parameters()) {
      PlacedParameter parameter{.tensor = each.value(), .place = chunks[chunk]->place_of(each.key())};
      // Named as in the whole model, so that globs need not know about chunks.
      const std::string bare = each.key().starts_with("part.") ? each.key().substr(5) : each.key();
      // Megatron-LM's default: biases and tensors of one dim, such as norms, do not decay.
      const bool decays = !bare.ends_with(".bias") && bare != "bias" && each.value().dim() != 1;
      parameter.group = parameter_group(bare, decays, groups);
      if (callables.no_wd_decay_cond)
        parameter.group.weight_decay = callables.no_wd_decay_cond(bare, each.value()) ? 0.0 : 1.0;
      if (callables.scale_lr_cond)
        parameter.group.lr = callables.scale_lr_cond(bare, each.value()) ? groups.lr_mult : 1.0;
      if (parameter.place.tied) tied = each.value();
      // A copy without a name in the whole model has an entry of its own, which its rank writes.
      parameter.writes = counts_here(parameter.place.shared && !parameter.place.name.empty(), parameter.place.divided,
                                     mesh.at().tensor);
      if (parameter.place.divided && !parameter.place.name.empty() && !parameter.place.slice)
        refuse("place_of(\"" + each.key() +
               "\") gives a divided parameter a name in the whole model and no slice of it");
      if (parameter.place.name.empty()) parameter.place.name = name_in_state(chunk, bare, parameter.place.divided);
      if (!parameter.place.slice) parameter.place.slice = whole_slice(each.value().sizes().vec());
      parameters.push_back(std::move(parameter));
    }
  const bool sharded = *plugin().use_distributed_optimizer;
  const bool per_token = resolved.argument_or("calculate_per_token_loss", false);
  // A mean over d replicas suits means of losses. Sums of tokens' losses are summed, and divided by all replicas'
  // tokens (finish_gradients()).
  ddp = std::make_unique<DistributedDataParallel>(
      *all_chunks, mesh.data(),
      DataParallelOptions{.op = per_token ? ReduceOp::sum : ReduceOp::mean, .shard = sharded, .alone = tied});
  optimizer = std::make_unique<ChunkOptimizer>(OptimizerCarrier(given), std::move(parameters), *ddp, mesh, timers,
                                               ChunkOptions{.sequence = axis.sequence(), .sharded = sharded});
  // A micro-step has d b samples over the replicas, so a window advances the schedule by B = d b m, as Megatron-LM's
  // increment does. Every window is full: true_size is m.
  const std::int64_t samples = mesh.grid().data * micro_batch;
  AccumulationKnobs knobs;
  knobs.normalizer = per_token ? Normalizer::tokens : Normalizer::true_size;
  const WindowShape shape{.knobs = knobs,
                          .steps = num_micro_batches,
                          .samples = {.each = samples, .last = samples},
                          .batches_per_epoch = unknown_length,
                          .world = mesh.grid().data,
                          .schedule_in_samples = true};
  driver.emplace(std::make_shared<AccumulationWindow>(shape), ClearGradients::engine, "", ddp.get());
}

void AcceleratorImpl::prepare(const ModelSource& model, const torch::optim::Optimizer& carrier,
                              const MegatronLMDummyScheduler& scheduler, const std::vector<LoaderSource>& sources) {
  if (prepared) refuse("prepare() was called before: an Accelerator holds one model");
  if (sources.empty()) refuse("prepare() needs a data loader: the micro-batch size is its batch size");
  TrainStepArgs args{.megatron_dataset_flag = *plugin().megatron_dataset_flag,
                     .reset_position_ids = resolved.argument_or("reset_position_ids", false),
                     .reset_attention_mask = resolved.argument_or("reset_attention_mask", false),
                     .eod_mask_loss = resolved.argument_or("eod_mask_loss", false),
                     .calculate_per_token_loss = resolved.argument_or("calculate_per_token_loss", false),
                     .data = &mesh.data()};
  bool first = true;
  for (const LoaderSource& source : sources) {
    const auto* dummy = std::get_if<MegatronLMDummyDataLoader>(&source);
    const std::int64_t size =
        dummy != nullptr ? dummy->micro_batch_size : std::get<accelerate::MapLoader<Batch>>(source).options.batch_size;
    const bool least = *plugin().is_train_batch_min;
    micro_batch = first ? size : least ? std::min(micro_batch, size) : std::max(micro_batch, size);
    first = false;
    if (dummy == nullptr) continue;
    args.megatron_dataset_flag = true;
    args.reset_position_ids = args.reset_position_ids || dummy->reset_position_ids;
    args.reset_attention_mask = args.reset_attention_mask || dummy->reset_attention_mask;
    args.eod_mask_loss = args.eod_mask_loss || dummy->eod_mask_loss;
  }
  if (micro_batch < 1) refuse("a data loader's batch size is below 1");
  // B = d b m.
  global_batch = mesh.grid().data * micro_batch * num_micro_batches;
  seed_generators(options.seed);
  take_model(make_model(model, options, resolved, parallel, mesh, axis));
  args.eod_token = options.eod_token;
  if (!args.eod_token && model_spec) args.eod_token = model_spec->vocabulary - 1;
  const bool needs_end = args.eod_mask_loss || args.reset_position_ids || args.reset_attention_mask;
  if (needs_end && !args.eod_token && !options.megatron_lm_plugin.custom_get_batch_function &&
      !options.megatron_lm_plugin.custom_train_step_class)
    refuse(
        "eod_mask_loss, reset_position_ids and reset_attention_mask need the token that ends a document: set "
        "AcceleratorOptions.eod_token");
  loss_scale = loss_scale_of(resolved, any_float16(chunks, mesh));
  make_step(args);
  make_optimizer(carrier);
  const OptimizerCarrier& of = optimizer->carrier();
  schedule = make_schedule(resolved, scheduler, global_batch, of.lr(), of.weight_decay());
  const MegatronLMPlugin& given = options.megatron_lm_plugin;
  const bool own_batches = given.custom_train_step_class || given.custom_megatron_datasets_provider_function ||
                           given.custom_get_batch_function;
  runner = std::make_unique<StepRunner>(chunks, *step, mesh, timers,
                                        StepRunnerOptions{.parallel = parallel,
                                                          .calculate_per_token_loss = args.calculate_per_token_loss,
                                                          .return_logits = *plugin().return_logits,
                                                          .compare_batches = own_batches,
                                                          .loss = given.custom_loss_function});
  if (plugin().tensorboard_dir && mesh.rank() + 1 == mesh.grid().world())
    tensorboard = TensorboardWriter(*plugin().tensorboard_dir, "MegatronLMPlugin");
  std::vector<PreparedLoader> loaders;
  for (std::size_t i = 0; i < sources.size(); ++i) loaders.push_back(make_loader(sources[i], i));
  note_progress();
  prepared.emplace(
      Prepared{PreparedModel(*this), PreparedOptimizer(*this), PreparedScheduler(*this), std::move(loaders)});
}

std::vector<Batch> AcceleratorImpl::micro_batches(const Batch& batch) const {
  if (batch.empty()) refuse("the batch holds no tensor");
  std::vector<Batch> cut(static_cast<std::size_t>(num_micro_batches));
  for (const auto& [name, tensor] : batch) {
    // [b m, ...] -> m views [b, ...].
    const std::int64_t rows = micro_batch * num_micro_batches;
    if (tensor.dim() == 0 || tensor.size(0) != rows)
      refuse("\"" + name + "\" has " + (tensor.dim() == 0 ? "no" : std::to_string(tensor.size(0))) +
             " rows; a batch has micro-batch size x num_micro_batches = " + std::to_string(micro_batch) + " x " +
             std::to_string(num_micro_batches) + " = " + std::to_string(rows));
    for (std::size_t i = 0; i < cut.size(); ++i)
      cut[i][name] = tensor.narrow(0, static_cast<std::int64_t>(i) * micro_batch, micro_batch);
  }
  return cut;
}

// The order of Megatron-LM's finalize_model_grads() and MixedPrecisionOptimizer.step(): reduce over replicas, complete
// over the model, divide by the tokens, divide by the loss scale S, take the norm, clip. With G the reduced sum:
//   g = G / tokens / S per token, else G / S, as each loss was divided by m before its backward;
//   then g min(1, c / (|g| + 1e-6)), with one norm over the whole model.
Judgement AcceleratorImpl::finish_gradients(const StepSums& sums, const Division& division) {
  timers.time("all-grads-sync", [&] { driver->reduce(); });
  optimizer->complete_gradients();
  if (division.counts()) {
    // Known on the last stage; the replicas' add up.
    const double own = mesh.last_stage() ? static_cast<double>(sums.tokens) : 0.0;
    const double tokens = sum_over_ranks(mesh.data(), sum_over_ranks(mesh.pipeline(), own));
    // Without a token the gradient is 0, and stays so.
    if (tokens > 0.0) optimizer->scale_gradients(1.0 / tokens);
  }
  Judgement judgement;
  const double max_norm = *plugin().gradient_clipping;
  const char* const timer = timer_of_norm(loss_scale.enabled(), max_norm > 0.0);
  if (timer == nullptr) return judgement;
  timers.time(timer, [&] {
    optimizer->scale_gradients(unscaled(loss_scale));
    judgement = judge_norm(optimizer->gradient_norm(), max_norm);
  });
  // A factor made of a norm that is not finite would be 0 or NaN; the update is skipped instead.
  if (max_norm > 0.0 && judgement.finite())
    timers.time(clip_timer, [&] { optimizer->scale_gradients(judgement.clip); });
  return judgement;
}

ModelOutput AcceleratorImpl::train_step(const Batch& batch) {
  const auto began = Timers::Clock::now();
  timers.reset();
  std::vector<Batch> cut;
  timers.time("batch-generator", [&] { cut = micro_batches(batch); });
  driver->clear([this] { ddp->zero_grad(); });
  driver->before_forward();
  const Division division = driver->window().peek()->division;  // the same of all micro-steps
  const StepSums sums = runner->train(cut, division, loss_scale.factor());
  const Judgement judgement = finish_gradients(sums, division);
  progress.grad_norm = judgement.norm;
  if (mesh.last_stage() && !sums.finite) ++progress.nan;
  const ModelOutput out = output_of(sums);
  // Number of samples before this update: Megatron-LM's scheduler steps after the optimizer, so the first update has
  // the rate of position 0.
  const std::int64_t clock = schedule_position();
  const double lr = lr_at(schedule.curve, clock);
  // Counted only now: a step that throws before has not taken place.
  for (std::int64_t i = 0; i < num_micro_batches; ++i) driver->next();  // the whole window has been computed
  const StepOutcome outcome = driver->step([&] {
    if (!judgement.finite()) return StepOutcome::skipped_overflow;
    optimizer->step(lr, lr_at(schedule.decoupled, clock), weight_decay_at(schedule.decay, clock));
    return StepOutcome::updated;
  });
  skipped_last = outcome != StepOutcome::updated;
  if (skipped_last) ++progress.skipped;
  loss_scale.after(outcome);
  note_progress();
  write_scalars(*this, out, lr, std::chrono::duration<double>(Timers::Clock::now() - began).count());
  const std::int64_t every = *plugin().eval_interval;
  if (prepared->loaders.size() > 1 && every > 0 && progress.iteration % every == 0) {
    evaluations.push_back(evaluate(prepared->loaders[1]));
    write_evaluation(*this, evaluations.back());
  }
  return out;
}

void AcceleratorImpl::note_progress() {
  const WindowPosition& at = driver->window().position();
  progress.iteration = at.updates();
  // Data of skipped updates are consumed too; the schedule's position leaves them out.
  progress.consumed_train_samples = samples_before + at.samples();
  progress.loss_scale = loss_scale.factor();
}

ModelOutput AcceleratorImpl::evaluate_step(const Batch& batch) {
  return output_of(runner->evaluate(micro_batches(batch)));
}

ModelOutput AcceleratorImpl::output_of(const StepSums& sums) const {
  ModelOutput out;
  double total = 0.0;
  for (const auto& [name, value] : sums.report) {
    // A pair [2] is (sum, count) over micro-batches and replicas, its loss the quotient; a value [] is a mean already.
    const at::Tensor flat = value.to(at::kDouble).reshape({-1});
    const double loss =
        flat.numel() == 2 ? flat[0].item<double>() / std::max(flat[1].item<double>(), 1.0) : flat[0].item<double>();
    out.losses.emplace_back(name, loss);
    total += loss;
  }
  out.loss = at::full({}, total, at::kDouble);
  if (sums.logits.empty()) return out;
  out.logits = whole_logits(at::cat(sums.logits));
  return out;
}

at::Tensor AcceleratorImpl::whole_logits(at::Tensor logits) const {
  if (axis.split()) {
    // [..., V / t] -> [t, ..., V / t] -> [..., V]: ranks hold ascending ranges of the vocabulary.
    const at::Tensor parts = gathered(axis.ranks(), logits.contiguous(), CollectivePurpose::activations);
    logits = at::cat(parts.unbind(0), -1);
  }
  if (model_spec && logits.size(-1) > model_spec->vocabulary) logits = logits.narrow(-1, 0, model_spec->vocabulary);
  return logits;
}

Accelerator::Accelerator(AcceleratorOptions options, Mesh& mesh)
    : impl_(std::make_unique<AcceleratorImpl>(std::move(options), mesh)) {}
Accelerator::~Accelerator() = default;

Result<RankGrid> Accelerator::grid_of(const MegatronLMPlugin& plugin, std::int64_t world,
                                      const MegatronEnvironment& environment) {
  const auto resolved = resolve_megatron_fields(
      plugin, environment ? environment : MegatronEnvironment(accrue::environment), {.world = world});
  const std::int64_t tensor = *resolved.effective.tp_degree, pipeline = *resolved.effective.pp_degree;
  if (tensor < 1 || pipeline < 1 || world % (tensor * pipeline) != 0)
    return fail(ErrorCode::config,
                std::to_string(world) + " ranks cannot be divided by tp_degree " + std::to_string(tensor) +
                    " x pp_degree " + std::to_string(pipeline),
                "MegatronLMPlugin", "Start a multiple of tp_degree x pp_degree ranks.");
  return RankGrid{.data = world / (tensor * pipeline),
                  .pipeline = pipeline,
                  .tensor = tensor,
                  .split = resolved.effective.pipeline_model_parallel_split_rank.value_or(0)};
}

Result<RankGrid> Accelerator::grid_of(const MegatronLMPlugin& plugin, std::int64_t world, const ModelSpec& model,
                                      const MegatronEnvironment& environment) {
  auto grid = grid_of(plugin, world, environment);
  if (grid && model.kind == ModelKind::t5 && grid->pipeline > 1 && grid->split == 0) grid->split = grid->pipeline / 2;
  return grid;
}

Prepared& Accelerator::prepare(const ModelSource& model, const torch::optim::Optimizer& optimizer,
                               const MegatronLMDummyScheduler& scheduler, const std::vector<LoaderSource>& loaders) {
  impl_->prepare(model, optimizer, scheduler, loaders);
  return *impl_->prepared;
}

bool Accelerator::is_main_process() const {
  return process_index() + 1 == num_processes();
}
std::int64_t Accelerator::process_index() const {
  return impl_->mesh.rank();
}
std::int64_t Accelerator::num_processes() const {
  return impl_->mesh.grid().world();
}
std::int64_t Accelerator::global_batch_size() const {
  return impl_->global_batch;
}
Mesh& Accelerator::mesh() {
  return impl_->mesh;
}
Evaluation Accelerator::evaluate(PreparedLoader& loader) {
  return impl_->evaluate(loader);
}
const std::vector<Evaluation>& Accelerator::evaluations() const {
  return impl_->evaluations;
}
at::Tensor Accelerator::gather(const at::Tensor& tensor) {
  return gather_across_data_parallel_groups(tensor, impl_->mesh.data()).tensor();
}
const Progress& Accelerator::progress() const {
  return impl_->progress;
}
const ResolvedMegatron& Accelerator::plugin() const {
  return impl_->resolved;
}
Timers& Accelerator::timers() {
  return impl_->timers;
}

ModelOutput PreparedModel::operator()(const Batch& batch) {
  return impl_.is_train ? impl_.train_step(batch) : impl_.evaluate_step(batch);
}

at::Tensor PreparedModel::logits(const Batch& batch) {
  return impl_.whole_logits(impl_.runner->logits(batch));
}

void PreparedModel::train(bool on) {
  impl_.is_train = on;
  impl_.all_chunks->train(on);
}
bool PreparedModel::is_training() const {
  return impl_.is_train;
}
const std::vector<std::shared_ptr<ModelChunk>>& PreparedModel::chunks() const {
  return impl_.chunks;
}

bool PreparedOptimizer::step_was_skipped() const {
  return impl_.skipped_last;
}
torch::optim::Optimizer& PreparedOptimizer::optimizer() {
  return impl_.optimizer->optimizer();
}

double PreparedScheduler::get_last_lr() const {
  return lr_at(impl_.schedule.curve, impl_.schedule_position());
}
std::int64_t PreparedScheduler::num_steps() const {
  return impl_.schedule_position();
}
const LrCurve& PreparedScheduler::curve() const {
  return impl_.schedule.curve;
}

}  // namespace accrue::megatron

// SPDX-License-Identifier: Apache-2.0
#include "megatron/made_model.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "accrue/run/base/program.h"
#include "accrue/run/cost/model_share.h"
#include "megatron/own_arguments.h"
#include "models/load_weights.h"

namespace accrue::megatron {
namespace {

/// Resolves the fields with the model's facts.
ResolvedMegatron resolved_for(const AcceleratorOptions& options, const ModelSpec& model, const RankGrid& grid) {
  if (!is_transformer(model.kind))
    throw std::invalid_argument("the Megatron-LM plug-in takes a GPT, a BERT or a T5, or a provider");
  MegatronFacts facts{.model = model.kind,
                      .world = grid.world(),
                      .layers = model.layers,
                      .width = model.width,
                      .heads = model.heads,
                      .positions = model.context};
  if (model.kind == ModelKind::t5) {
    facts.decoder_layers = model.decoder_layers.value_or(model.layers);
    facts.positions = std::max(model.context, model.tokens_of_decoder());
  }
  ResolvedMegatron resolved = resolved_plugin(options, facts);
  if (options.num_labels && model.kind != ModelKind::bert)
    throw std::invalid_argument("num_labels is for a BERT: it makes a classifier of it");
  if (options.num_labels && grid.pipeline > 1)
    throw std::invalid_argument("num_labels needs pp_degree 1: a classifier is a model in one part");
  return resolved;
}

/// Returns the number type of mixed precision; empty: the model's own.
std::optional<Dtype> half_type(const AcceleratorOptions& options, const ResolvedMegatron& resolved) {
  const bool fp16 = options.mixed_precision == MixedPrecision::fp16 || resolved.argument_or("fp16", false);
  const bool bf16 = options.mixed_precision == MixedPrecision::bf16 || resolved.argument_or("bf16", false);
  if (fp16 && bf16)
    throw std::invalid_argument("fp16 and bf16 exclude each other: mixed_precision and other_megatron_args name both");
  if (fp16) return Dtype::float16;
  return bf16 ? std::optional(Dtype::bfloat16) : std::nullopt;
}

/// Casts floating-point tensors only. Masks and counts keep their types; Module::to() would cast them as well.
void cast_floats(torch::nn::Module& module, at::ScalarType type) {
  for (const auto& tensors : {module.parameters(), module.buffers()})
    for (const at::Tensor& each : tensors)
      if (each.is_floating_point()) each.set_data(each.to(type));
}

/// Returns a function that makes chunks of the spec's model, and their number per stage.
std::pair<ModelProvider, std::int64_t> provider_of(MadeModel& made, const ModelSpec& given,
                                                   const AcceleratorOptions& options, const Mesh& mesh,
                                                   const TensorAxis& axis) {
  const RankGrid& grid = mesh.grid();
  made.resolved = resolved_for(options, given, grid);
  ParallelSpec& parallel = made.parallel;
  verify_weights(given, mesh.world().rank(), mesh.world().size());
  ModelSpec spec = given;
  spec.dtype = half_type(options, made.resolved).value_or(given.dtype);
  set_dropout(made.resolved, spec);
  std::int64_t count = 1;
  if (const auto of_chunk = made.resolved.effective.num_layers_per_virtual_pipeline_stage) {
    const std::int64_t each = grid.pipeline * *of_chunk;
    if (spec.layers % each != 0)
      throw std::invalid_argument("num_layers_per_virtual_pipeline_stage " + std::to_string(*of_chunk) +
                                  " times pp_degree " + std::to_string(grid.pipeline) +
                                  " does not divide the model's " + std::to_string(spec.layers) + " layers");
    // Chunks per stage: L / (p l), for l layers per chunk on each of p stages.
    count = spec.layers / each;
  }
  if (spec.kind == ModelKind::t5 && grid.pipeline > 1) {
    parallel.split_stage = grid.split;
    if (grid.split == 0)
      throw std::invalid_argument("a T5 in several stages needs the mesh of Accelerator::grid_of() with its model");
  }
  parallel.virtual_pipeline = count;
  if (const std::string why = check_division(spec, parallel); !why.empty()) throw std::invalid_argument(why);
  made.spec = spec;
  const auto provider = [spec, parallel, axis, at = mesh.at(), labels = options.num_labels,
                         seed = options.seed](const ChunkPlace& place) {
    if (labels) return bert_classifier_chunk(spec, *labels, seed, axis);
    const std::int64_t chunk = place.part / parallel.pipeline;
    const ModelShare share = share_under(spec, parallel, at.tensor, at.pipeline, chunk);
    return model_chunk(spec, seed, share, axis, parallel);
  };
  return {provider, count};
}

/// Returns the program's own provider. Errors: throws std::invalid_argument for fields that have no meaning with it.
ModelProvider checked_provider(ModelProvider provider, const ModelSource& source, const AcceleratorOptions& options,
                               const MadeModel& made) {
  if (!provider) provider = std::get<ModelProvider>(source);
  if (!provider) throw std::invalid_argument("there is neither a model nor a function that provides one");
  if (made.resolved.effective.num_layers_per_virtual_pipeline_stage)
    throw std::invalid_argument(
        "num_layers_per_virtual_pipeline_stage needs a model whose layers are known; a provider's are not");
  if (options.num_labels)
    throw std::invalid_argument("num_labels makes a classifier of a ModelSpec; a provider makes its own");
  ModelSpec none;
  if (!std::holds_alternative<ModelSpec>(source) && set_dropout(made.resolved, none))
    throw std::invalid_argument(
        "other_megatron_args: hidden_dropout and attention_dropout need a ModelSpec; a provider's model has its own");
  if (made.parallel.recompute != RecomputeKind::none)
    throw std::invalid_argument("recomputation needs a ModelSpec; a provider's model recomputes what it likes");
  return provider;
}

/// Returns the parts of the model that this rank holds.
std::vector<ChunkPlace> places_of(const ModelSpec* spec, std::int64_t count, const MadeModel& made, const Mesh& mesh) {
  const std::int64_t stages = mesh.grid().pipeline, stage = mesh.at().pipeline;
  std::vector<ChunkPlace> places;
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    ChunkPlace place{.parts = stages * count, .part = chunk * stages + stage};
    if (spec != nullptr) set_dropout(made.resolved, place.model.emplace(*spec));
    if (const auto split = made.resolved.effective.pipeline_model_parallel_split_rank) {
      place.add_encoder = stage < *split;
      place.add_decoder = stage >= *split;
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace

ResolvedMegatron resolved_plugin(const AcceleratorOptions& options, const MegatronFacts& facts) {
  ResolvedMegatron resolved = resolve_megatron_fields(
      options.megatron_lm_plugin, options.environment ? options.environment : MegatronEnvironment(accrue::environment),
      facts);
  std::string errors;
  for (const Finding& each : resolved.findings)
    if (each.severity == Severity::error) errors += (errors.empty() ? "" : "\n") + each.text();
  if (!resolved.ok()) throw std::invalid_argument(errors);
  return resolved;
}

MadeModel make_model(const ModelSource& source, const AcceleratorOptions& options, const ResolvedMegatron& resolved,
                     const ParallelSpec& parallel, const Mesh& mesh, const TensorAxis& axis) {
  MadeModel made{.resolved = resolved, .parallel = parallel};
  ModelProvider provider = options.megatron_lm_plugin.custom_model_provider_function;
  const auto* spec = std::get_if<ModelSpec>(&source);
  std::int64_t count = 1;
  if (spec != nullptr && !provider)
    std::tie(provider, count) = provider_of(made, *spec, options, mesh, axis);
  else
    provider = checked_provider(std::move(provider), source, options, made);
  const std::vector<ChunkPlace> places = places_of(spec, count, made, mesh);
  if (const auto& prepare = options.megatron_lm_plugin.custom_prepare_model_function)
    made.chunks = prepare(provider, places);
  else
    for (const ChunkPlace& place : places) made.chunks.push_back(provider(place));
  if (made.chunks.size() != places.size())
    throw std::invalid_argument("custom_prepare_model_function gave " + std::to_string(made.chunks.size()) +
                                " chunks of " + std::to_string(places.size()));
  made.all = std::make_shared<torch::nn::Module>();
  const auto half = half_type(options, made.resolved);
  for (std::size_t chunk = 0; chunk < made.chunks.size(); ++chunk) {
    if (!made.chunks[chunk]) throw std::invalid_argument("the model provider gave no chunk");
    if (half) cast_floats(*made.chunks[chunk], *half == Dtype::float16 ? at::kHalf : at::kBFloat16);
    made.all->register_module(std::to_string(chunk), made.chunks[chunk]);
  }
  return made;
}

}  // namespace accrue::megatron

// SPDX-License-Identifier: Apache-2.0
#include "train/run_hooks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "accrue/parallel/random_streams.h"
#include "accrue/run/record/tensorboard_scalars.h"
#include "megatron/hook_errors.h"
#include "megatron/same_batch.h"
#include "megatron/step_runner.h"
#include "train/step_reports.h"

namespace accrue {
namespace {

using megatron::AbstractTrainStep;
using megatron::find_tensor;
using megatron::LossOut;
using megatron::MegatronLMPlugin;
using megatron::ModelChunk;
using megatron::Tensors;
using megatron::TrainStepArgs;
using NamedBatch = megatron::Batch;

constexpr std::int64_t ignored = -100;

bool names_any(const MegatronSpec& spec) {
  return spec.custom_train_step_class || spec.custom_model_provider_function || spec.custom_prepare_model_function ||
         spec.custom_megatron_datasets_provider_function || spec.custom_get_batch_function || spec.custom_loss_function;
}

/// For a linear model or an MLP: "inputs" and "targets" unchanged, and the model's own loss.
class DenseStep final : public AbstractTrainStep {
 public:
  explicit DenseStep(bool classifies) : AbstractTrainStep("DenseStep"), classifies_(classifies) {}
  NamedBatch get_batch(megatron::DataIter& data) override { return data.next(); }
  LossOut loss_func(const NamedBatch& batch, const Tensors& outputs) override {
    const at::Tensor& y = outputs.at(0);
    const at::Tensor& targets = batch.at("targets");
    const at::Tensor loss = classifies_ ? at::cross_entropy_loss(y.reshape({-1, y.size(-1)}), targets.reshape({-1}))
                                        : at::mse_loss(y, targets.to(y.scalar_type()).view_as(y));
    return {loss, std::nullopt, {}};
  }

 private:
  bool classifies_;
};

std::shared_ptr<AbstractTrainStep> own_step(const ModelSpec& model, const TrainStepArgs& args) {
  if (auto step = megatron::built_in_step(model.kind, args)) return step;
  return std::make_shared<DenseStep>(model.loss == LossKind::cross_entropy);
}

/// Divisor of a batch's loss, as far as its names determine it. Shapes: loss_mask, labels [B, T]; text [B, T + 1], of
/// which each token but the first is a label.
std::int64_t items_of(const NamedBatch& batch, std::int64_t rows) {
  if (const at::Tensor mask = find_tensor(batch, "loss_mask"); mask.defined())
    return (mask != 0).sum().item<std::int64_t>();
  if (const at::Tensor labels = find_tensor(batch, "labels"); labels.defined())
    return (labels != ignored).sum().item<std::int64_t>();
  if (const at::Tensor targets = find_tensor(batch, "targets"); targets.defined()) return targets.numel();
  if (const at::Tensor text = find_tensor(batch, "text"); text.defined()) return text.size(0) * (text.size(1) - 1);
  return rows;
}

/// Forward of a library's model, for Accrue's own steps: its exceptions get the provider's name. A step of the library
/// gets the chunk itself.
class NamedForward final : public ModelChunk {
 public:
  NamedForward(ModelChunk& inner, const std::string& provider)
      : inner_(inner), hook_("the model of custom_model_provider_function \"" + provider + "\"") {}
  Tensors forward(const NamedBatch& batch) override {
    return megatron::call_hook(hook_, [&] { return inner_.forward(batch); });
  }

 private:
  ModelChunk& inner_;
  std::string hook_;
};

}  // namespace

struct RunHooks::Named {
  const Mesh* mesh = nullptr;
  RunSpec spec;
  bool per_token = false;
  MegatronLMPlugin plugin;
  std::unique_ptr<Communicator> alone = single_communicator();  ///< the run itself averages over replicas
  std::shared_ptr<AbstractTrainStep> step;
  std::vector<megatron::MegatronDataset> data;  ///< for training and validation; empty: the spec's
  DataFacts facts;
  std::int64_t position = 0;
  const std::shared_ptr<StepReports> training_reports = std::make_shared<StepReports>();
  const std::shared_ptr<StepReports> evaluation_reports = std::make_shared<StepReports>();

  NamedBatch raw(const Batch& batch) const;
  NamedBatch fetched(Split split, const std::vector<std::int64_t>& rows) const {
    return data[split == Split::train ? 0 : 1].fetch(rows);
  }
};

NamedBatch RunHooks::Named::raw(const Batch& batch) const {
  if (data.empty()) return megatron::named_batch(batch, spec.model.kind);
  const at::Tensor rows = batch.inputs.cpu();
  const auto* first = rows.const_data_ptr<std::int64_t>();
  const Split split = batch.types.defined() ? Split::validation : Split::train;
  NamedBatch fetched_batch = fetched(split, {first, first + rows.numel()});
  megatron::demand_same_batch(fetched_batch, *mesh);
  for (auto& each : fetched_batch) each.second = each.second.to(batch.inputs.device());
  return fetched_batch;
}

/// A chunk behind a train step, under the names of the chunk's own parameters. `widens`: numbers of the library's
/// batches are converted to float64.
class RunHooks::HookedPart final : public ModelPart {
 public:
  HookedPart(std::shared_ptr<const Named> named, std::shared_ptr<ModelChunk> chunk, torch::nn::Module& holder,
             bool widens)
      : named_(std::move(named)), chunk_(std::move(chunk)), widens_(widens) {
    for (const auto& each : holder.named_parameters(false))
      register_parameter(each.key(), each.value(), each.value().requires_grad());
    for (const auto& each : holder.named_buffers(false)) register_buffer(each.key(), each.value());
    for (const auto& each : holder.named_children()) register_module(each.key(), each.value());
    const MegatronSpec& names = named_->spec.megatron;
    if (names.custom_model_provider_function && !names.custom_train_step_class)
      named_forward_ = std::make_unique<NamedForward>(*chunk_, *names.custom_model_provider_function);
  }

  at::Tensor forward(const Batch& batch, const at::Tensor& received) override {
    chunk_->set_input_tensor(received);
    megatron::DataIter data({raw(batch)});
    ModelChunk& chunk = named_forward_ ? *named_forward_ : *chunk_;
    out_ = named_->step->forward_step(data, chunk, static_cast<int>(named_->position));
    if (out_.outputs.empty() || !out_.outputs.front().defined())
      throw std::invalid_argument("the plug-in library's forward() gave no output");
    if (named_->plugin.custom_train_step_class) megatron::demand_same_batch(out_.batch, *named_->mesh);
    return out_.outputs.front();
  }

  LossSum loss(const at::Tensor& /*outputs*/, const Batch& batch) override {
    const auto& own = named_->plugin.custom_loss_function;
    const LossOut out = own ? own(out_.batch, out_.outputs) : named_->step->loss_func(out_.batch, out_.outputs);
    out_ = {};
    megatron::check_loss(out);
    const auto& reports = is_training() ? named_->training_reports : named_->evaluation_reports;
    reports->add(out.report, loss_tag(named_->spec.model));
    // With num_tokens the loss is a sum (LossOut).
    at::Tensor mean = out.loss.reshape({});
    if (out.num_tokens) {
      if (named_->per_token && *out.num_tokens != batch.items)
        throw std::invalid_argument("the loss of the plug-in library counts " + std::to_string(*out.num_tokens) +
                                    " tokens, and the batch has " + std::to_string(batch.items) +
                                    " by which accumulation.normalizer = \"tokens\" divides");
      mean = mean / static_cast<double>(std::max<std::int64_t>(*out.num_tokens, 1));
    }
    // The library gives a mean; the trainer divides sums by their items.
    return {mean * static_cast<double>(std::max<std::int64_t>(batch.items, 1)), batch.items};
  }

  at::Tensor empty_input(const Batch& batch) const override {
    megatron::DataIter data({raw(batch)});
    return chunk_->empty_input(named_->step->get_batch(data));
  }

  void train(bool on = true) override {
    ModelPart::train(on);
    chunk_->train(on);
  }

 private:
  NamedBatch raw(const Batch& batch) const {
    NamedBatch named = named_->raw(batch);
    if (!widens_) return named;
    for (auto& [name, tensor] : named)
      if (tensor.defined() && tensor.is_floating_point()) tensor = tensor.to(at::kDouble);
    return named;
  }

  std::shared_ptr<const Named> named_;
  std::shared_ptr<ModelChunk> chunk_;
  std::unique_ptr<ModelChunk> named_forward_;
  bool widens_ = false;
  megatron::ForwardOut out_;
};

/// Batches that contain only sample numbers: each stage fetches the data itself.
class RunHooks::HookedSource final : public DataSource {
 public:
  explicit HookedSource(std::shared_ptr<const Named> named) : named_(std::move(named)) {}

  std::int64_t size(Split split) const override {
    return split == Split::train ? named_->facts.samples : named_->facts.validation_samples;
  }

  Batch batch(Split split, std::span<const std::int64_t> samples) override {
    Batch batch;
    if (samples.empty()) return batch;
    const std::vector<std::int64_t> rows(samples.begin(), samples.end());
    batch.inputs = at::tensor(rows, at::kLong);
    batch.samples = std::ssize(rows);
    batch.items = items_of(named_->fetched(split, rows), batch.samples);
    if (split == Split::validation) batch.types = at::ones({1}, at::kLong);
    return batch;
  }

 private:
  std::shared_ptr<const Named> named_;
};

RunHooks::RunHooks(const RunPlan& plan, const Mesh& mesh, const megatron::Registry& registry) {
  const RunSpec& spec = plan.spec;
  if (!names_any(spec.megatron)) return;
  named_ = std::make_shared<Named>();
  named_->mesh = &mesh;
  named_->spec = spec;
  named_->facts = plan.data;
  named_->per_token = plan.knobs.normalizer == Normalizer::tokens;
  static_cast<MegatronSpec&>(named_->plugin) = spec.megatron;
  named_->plugin = megatron::with_registered(std::move(named_->plugin), registry);
  const MegatronLMPlugin& plugin = named_->plugin;
  const TrainStepArgs args{.megatron_dataset_flag = true,
                           .eod_token = spec.data.end_of_document,
                           .calculate_per_token_loss = named_->per_token,
                           .binary_head = spec.model.binary_head,
                           .data = named_->alone.get()};
  named_->step = plugin.custom_train_step_class ? megatron::make_train_step(plugin, args) : own_step(spec.model, args);
  if (plugin.custom_get_batch_function)
    named_->step = megatron::with_get_batch(named_->step,
                                            [get = plugin.custom_get_batch_function, &mesh](megatron::DataIter& data) {
                                              NamedBatch batch = get(data);
                                              megatron::demand_same_batch(batch, mesh);
                                              return batch;
                                            });
  if (!plugin.custom_megatron_datasets_provider_function) return;
  const std::vector<std::int64_t> needed{plan.data.samples, plan.data.validation_samples, 0};
  named_->data = plugin.custom_megatron_datasets_provider_function(needed);
  if (named_->data.size() != 3)
    throw std::invalid_argument("custom_megatron_datasets_provider_function gave " +
                                std::to_string(named_->data.size()) +
                                " data sets; it must give three: training, validation and test");
  for (std::size_t i = 0; i < 2; ++i)
    if (needed[i] > 0 && (named_->data[i].samples < needed[i] || !named_->data[i].fetch))
      throw std::invalid_argument(
          "custom_megatron_datasets_provider_function gave " + std::to_string(named_->data[i].samples) +
          " samples for " + (i == 0 ? "training" : "validation") + ", and the run needs " + std::to_string(needed[i]));
}

std::unique_ptr<DataSource> RunHooks::data() const {
  if (!named_ || named_->data.empty()) return nullptr;
  return std::make_unique<HookedSource>(named_);
}

std::shared_ptr<ModelPart> RunHooks::part(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                          const TensorAxis& axis, const ParallelSpec& parallel) const {
  const bool widens = named_ && model.dtype != named_->spec.model.dtype;
  if (!named_ || !named_->plugin.custom_model_provider_function) {
    auto part = make_model_part(model, seed, share, axis, parallel);
    if (!named_) return part;
    return std::make_shared<HookedPart>(named_, megatron::chunk_of(part, model, share), *part, widens);
  }
  seed_generator(at::detail::getDefaultCPUGenerator(), seed);
  const auto& provider = named_->plugin.custom_model_provider_function;
  const auto& prepare = named_->plugin.custom_prepare_model_function;
  const megatron::ChunkPlace whole{.model = model};
  const auto chunks = prepare ? prepare(provider, {whole}) : std::vector{provider(whole)};
  if (chunks.size() != 1 || !chunks.front())
    throw std::invalid_argument(
        std::string(prepare ? "custom_prepare_model_function" : "custom_model_provider_function") +
        " must give one chunk");
  return std::make_shared<HookedPart>(named_, chunks.front(), *chunks.front(), widens);
}

NamedNumbers RunHooks::take_reports(Split split) const {
  if (!named_) return {};
  return (split == Split::train ? named_->training_reports : named_->evaluation_reports)->take(*named_->mesh);
}

void RunHooks::drop_reports() const {
  if (!named_) return;
  named_->training_reports->drop();
  named_->evaluation_reports->drop();
}

std::string RunHooks::open_reports() const {
  return named_ ? named_->training_reports->text() : std::string();
}

void RunHooks::restore_reports(const std::string& text) const {
  if (named_) named_->training_reports->restore(text);
}

void RunHooks::starts(std::int64_t position) const {
  if (named_) named_->position = position;
}

}  // namespace accrue

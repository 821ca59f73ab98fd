// SPDX-License-Identifier: Apache-2.0
// The rows of a step: each replica takes the next stretch of an epoch's order. Everything follows from the number of
// samples consumed, so that is all a resume needs. A cyclic sampler gives micro-batches, as Megatron-LM's does: its
// epochs have as many samples as whole micro-batches of all replicas take, and may turn within a step.
#include <ATen/ops/ones.h>

#include <algorithm>
#include <stdexcept>

#include "accrue/run/base/counted.h"
#include "megatron/accelerator_impl.h"
#include "megatron/indexed_text.h"
#include "models/evaluation_mode.h"

namespace accrue::megatron {

PreparedLoader::Iterator& PreparedLoader::Iterator::operator++() {
  batch_ = loader_->next();
  return *this;
}

std::int64_t PreparedLoader::length() const {
  return order_.batches_per_epoch();
}

void PreparedLoader::continue_after(std::int64_t consumed_samples) {
  // Batches of all replicas: epoch = b / length, place in it = b mod length.
  const std::int64_t batches = consumed_samples / (order_.micro_batch * order_.world);
  epoch_ = batches / length();
  position_ = batches % length();
}

std::optional<Batch> PreparedLoader::next() {
  if (position_ == length()) {
    position_ = 0;
    ++epoch_;
    return std::nullopt;
  }
  const std::int64_t position = position_++;
  if (cyclic_) {
    cyclic_->continue_after(order_.consumed_before(epoch_, position));
    std::vector<std::int64_t> samples;
    // order_.micro_batch is b m rows, the sampler's micro-batches have b.
    while (std::ssize(samples) < order_.micro_batch) {
      const SampleBatch micro_batch = cyclic_->next();
      samples.insert(samples.end(), micro_batch.begin(), micro_batch.end());
    }
    return data_.fetch(samples);
  }
  Batch batch = data_.fetch(order_.batch(epoch_, position, replica_));
  const std::int64_t rows = order_.micro_batch, all = rows * order_.world;
  const std::int64_t left = order_.samples - position * all;
  if (left >= all) return batch;
  const std::int64_t real = order_.fresh(position, replica_);
  at::Tensor mask = at::ones({rows}, at::kLong);
  mask.narrow(0, real, rows - real).zero_();
  // A last batch of `left` samples in `all` rows: each real row weighs all / left, so the mean over all rows of all
  // replicas is the mean over the samples.
  batch["row_weight"] =
      mask.to(at::kDouble) * (static_cast<double>(all) / static_cast<double>(left));  // of every replica
  if (real < rows) batch["row_mask"] = mask;
  return batch;
}

MegatronDataset AcceleratorImpl::indexed_data(const MegatronLMDummyDataLoader& loader, std::size_t which) const {
  check_names(loader);
  if (which > 2) throw std::invalid_argument("there are three sets of indexed data: training, validation and test");
  const MegatronSpec& p = plugin();
  // Source: Megatron-LM's get_train_valid_test_num_samples(). Validation has samples for one evaluation per
  // eval_interval and one at the end, test for one.
  const std::int64_t iterations = schedule.decay.samples / global_batch;
  const std::int64_t evaluations_made = *p.eval_interval > 0 ? iterations / *p.eval_interval + 1 : 1;
  std::vector<std::int64_t> needed{iterations * global_batch, evaluations_made * *p.eval_iters * global_batch,
                                   *p.eval_iters * global_batch};
  std::vector<MegatronDataset> made;
  if (const auto& provider = options.megatron_lm_plugin.custom_megatron_datasets_provider_function) {
    made = provider(needed);
    if (made.size() != 3)
      throw std::invalid_argument("custom_megatron_datasets_provider_function gave " + std::to_string(made.size()) +
                                  " data sets; it must give three: training, validation and test");
  } else {
    if (!p.seq_length) throw std::invalid_argument("indexed data need seq_length: how many tokens a sample has");
    for (std::size_t i = 0; i < needed.size(); ++i)
      if (i != which) needed[i] = 0;
    ModelSpec shape = model_spec.value_or(ModelSpec{.kind = ModelKind::gpt});
    shape.context = *p.seq_length;
    if (p.decoder_seq_length) shape.decoder_context = *p.decoder_seq_length;
    made = indexed_text(loader, shape, needed);
  }
  return made.at(which);
}

PreparedLoader AcceleratorImpl::make_loader(const LoaderSource& source, std::size_t which) {
  PreparedLoader loader;
  const bool drops = options.last_batch == LastBatch::drop;
  // A batch of all replicas has B = d b m rows. fill_alone fills up the last one of a single replica too, because a
  // step cuts b m rows.
  loader.order_ = {.micro_batch = micro_batch * num_micro_batches,
                   .world = mesh.grid().data,
                   .shuffle = false,
                   .seed = options.seed,
                   .uneven = drops ? UnevenRanks::drop : UnevenRanks::repeat,
                   .split_batches = true,
                   .fill_alone = true};
  loader.replica_ = mesh.data().rank();
  if (const auto* dummy = std::get_if<MegatronLMDummyDataLoader>(&source)) {
    loader.data_ = indexed_data(*dummy, which);
    indexed_samples[which] = loader.data_.samples;
  } else {
    const auto& map = std::get<accelerate::MapLoader<Batch>>(source);
    loader.data_ = {map.samples, map.fetch};
    loader.order_.shuffle = map.options.shuffle;
  }
  loader.order_.samples = loader.data_.samples;
  if (loader.length() < 1)
    throw std::invalid_argument("data loader " + std::to_string(which + 1) + " has " +
                                std::to_string(loader.data_.samples) + " samples; one batch of all replicas takes " +
                                std::to_string(global_batch));
  if (const auto* dummy = std::get_if<MegatronLMDummyDataLoader>(&source);
      dummy && dummy->dataloader_type == "cyclic") {
    const SamplerShape shape{.total_samples = loader.data_.samples,
                             .micro_batch_size = micro_batch,
                             .data_parallel_rank = loader.replica_,
                             .data_parallel_size = mesh.grid().data};
    loader.order_.uneven = UnevenRanks::drop;
    loader.cyclic_ = CyclicSampler::create(shape, dummy->data_sharding).value();
  }
  if (const auto& consumed = plugin().consumed_samples; consumed && which < consumed->size()) {
    const std::int64_t samples = (*consumed)[which];
    // A step takes B samples, so only multiples of B are places where one begins.
    if (samples < 0 || samples % global_batch != 0)
      throw std::invalid_argument("consumed_samples[" + std::to_string(which) + "] = " + std::to_string(samples) +
                                  " is no multiple of a batch of all replicas, " + std::to_string(global_batch));
    // A sampler of Megatron-LM's that gives each sample once ends there; own data and a cyclic one begin anew.
    if (std::holds_alternative<MegatronLMDummyDataLoader>(source) && !loader.cyclic_ && samples > 0 &&
        samples >= loader.data_.samples)
      throw std::invalid_argument("consumed_samples[" + std::to_string(which) + "] = " + std::to_string(samples) +
                                  " leaves nothing of data loader " + std::to_string(which + 1) + ", which has " +
                                  counted(loader.data_.samples, "sample") +
                                  ": lower it, or train for longer (train_iters, train_samples)");
    loader.continue_after(samples);
    if (which == 0) samples_before = samples;
    if (which == 1) progress.consumed_valid_samples = samples;
  }
  return loader;
}

Evaluation AcceleratorImpl::evaluate(PreparedLoader& loader) {
  const EvaluationMode mode(*all_chunks);
  Evaluation evaluation{.iteration = progress.iteration};
  const std::int64_t batches = *plugin().eval_iters;
  for (std::int64_t i = 0; i < batches; ++i) {
    auto batch = loader.next();
    if (!batch) batch = loader.next();  // the next epoch
    const ModelOutput out = evaluate_step(*batch);
    if (prepared->loaders.size() > 1 && &loader == &prepared->loaders[1])
      progress.consumed_valid_samples += global_batch;
    for (const auto& [name, loss] : out.losses) {
      const auto found = std::ranges::find(evaluation.losses, name, &std::pair<std::string, double>::first);
      if (found == evaluation.losses.end())
        evaluation.losses.emplace_back(name, loss);
      else
        found->second += loss;
    }
  }
  // The batches have equally many rows. A quotient (sum, count) is taken per batch, and then averaged.
  for (auto& each : evaluation.losses) each.second /= static_cast<double>(batches);
  return evaluation;
}

}  // namespace accrue::megatron

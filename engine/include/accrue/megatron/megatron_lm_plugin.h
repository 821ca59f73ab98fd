// SPDX-License-Identifier: Apache-2.0
// MegatronLMPlugin: the fields of Accelerate's plug-in, and the objects that stand for a scheduler and for data.
//
//   MegatronLMPlugin plugin;
//   plugin.tp_degree = 2;
//   plugin.num_micro_batches = 4;
//
// Fields that hold numbers, words and flags are those of a spec (megatron_keys.h). A class or function, which a spec
// can only name, is given here as what it is, under the same name; or it is named, and stands in a Registry.
// Thread: a value; the functions in it are called on the training thread. Source: accelerate v1.9.0,
// utils/dataclasses.py and utils/megatron_lm.py.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/megatron/step_keywords.h"
#include "accrue/megatron/train_step.h"
#include "accrue/run/fields/megatron_keys.h"
#include "accrue/run/megatron/megatron_fields.h"

namespace accrue::megatron {

/// Reads the keywords of its step: a name that it does not ask for is refused when it returns.
using TrainStepFactory =
    std::function<std::shared_ptr<AbstractTrainStep>(const TrainStepArgs& args, const StepKeywords& keywords)>;
/// True for a parameter that the rule is about. Shapes: as the rank holds it.
using ParameterCondition = std::function<bool(const std::string& name, const at::Tensor& parameter)>;
/// Samples of a custom data set: one tensor per name, with one row per sample.
struct MegatronDataset {
  std::int64_t samples = 0;
  std::function<Batch(const std::vector<std::int64_t>& samples)> fetch;
};
/// How many samples are needed for training, validation and test -> the three data sets.
using DatasetsProvider = std::function<std::vector<MegatronDataset>(const std::vector<std::int64_t>& samples)>;
/// Makes all chunks of a rank and prepares them as it likes: weights of a file, layers that stay as they are. The
/// engine reduces and updates what it gives.
using PrepareModelFunction = std::function<std::vector<std::shared_ptr<ModelChunk>>(const ModelProvider& provider,
                                                                                    const std::vector<ChunkPlace>&)>;
using GetBatchFunction = std::function<Batch(DataIter& data)>;
using LossFunction = std::function<LossOut(const Batch& batch, const Tensors& outputs)>;

/// The step with another get_batch().
std::shared_ptr<AbstractTrainStep> with_get_batch(std::shared_ptr<AbstractTrainStep> step, GetBatchFunction get);

struct MegatronLMPlugin : MegatronSpec {
  /// In place of the globs: parameters without weight decay, and those whose rate lr_mult multiplies.
  ParameterCondition no_wd_decay_cond;
  ParameterCondition scale_lr_cond;
  TrainStepFactory custom_train_step_class;
  StepKeywords custom_train_step_kwargs;
  ModelProvider custom_model_provider_function;
  PrepareModelFunction custom_prepare_model_function;
  DatasetsProvider custom_megatron_datasets_provider_function;
  GetBatchFunction custom_get_batch_function;
  LossFunction custom_loss_function;
};

/// The step of custom_train_step_class, which is set. Errors: throws std::invalid_argument where it made none, and
/// ResultError (config) for a keyword that it did not ask for.
std::shared_ptr<AbstractTrainStep> make_train_step(const MegatronLMPlugin& plugin, const TrainStepArgs& args);

/// Stands for a schedule: the plug-in makes it. total_num_steps: updates of the run, after which the rate has decayed.
struct MegatronLMDummyScheduler {
  std::optional<std::int64_t> total_num_steps;
  std::int64_t warmup_num_steps = 0;
};

/// Stands for the training, validation and test data of indexed datasets, each for each place where it is passed to
/// prepare(): the first is training. Names and defaults are Megatron-LM's.
struct MegatronLMDummyDataLoader {
  std::vector<std::string> data_path;  ///< prefixes, or weights and prefixes in turn
  /// In place of data_path and a split: data of their own for the three, of which those of the place are read.
  std::vector<std::string> train_data_path;
  std::vector<std::string> valid_data_path;
  std::vector<std::string> test_data_path;
  std::string split = "969, 30, 1";
  std::string data_cache_path;             ///< folder that keeps the indices; empty: they are built and not kept
  std::string dataloader_type = "single";  ///< single, or cyclic: each epoch shuffles all samples again
  bool data_sharding = true;               ///< cyclic: each replica keeps to its own part of the samples
  std::uint32_t seed = 1234;
  bool reset_position_ids = false;
  bool reset_attention_mask = false;
  bool eod_mask_loss = false;
  double mask_prob = 0.15;      ///< BERT, T5: share of tokens that are masked
  double short_seq_prob = 0.1;  ///< BERT, T5: share of samples that are cut short
  std::int64_t micro_batch_size = 1;
  // Those that have one meaning here; prepare() refuses another value with the reason.
  bool mmap_bin_files = true;
  bool mock_data = false;
  std::int64_t num_workers = 0;  ///< Megatron-LM's default is 2
  std::string vocab_file;
  std::string merge_file;
};

}  // namespace accrue::megatron

// SPDX-License-Identifier: Apache-2.0
// MegatronLMPlugin: the fields of Accelerate's plug-in, and the dummy objects for a scheduler and for data.
//
//   MegatronLMPlugin plugin;
//   plugin.tp_degree = 2;
//   plugin.num_micro_batches = 4;
//
// Numbers, words and flags are the fields of a spec (megatron_keys.h). A class or function, which a spec can only name,
// is passed here as an object under the same field name, or by its name in a Registry.
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

/// Makes a step from its keywords. A keyword that it does not read is refused when it returns.
using TrainStepFactory =
    std::function<std::shared_ptr<AbstractTrainStep>(const TrainStepArgs& args, const StepKeywords& keywords)>;
/// Returns true if the rule applies to the parameter. Shapes: as the rank holds it.
using ParameterCondition = std::function<bool(const std::string& name, const at::Tensor& parameter)>;
/// Samples of a custom data set: one tensor per name, with one row per sample.
struct MegatronDataset {
  std::int64_t samples = 0;
  std::function<Batch(const std::vector<std::int64_t>& samples)> fetch;
};
/// Takes the number of samples needed for training, validation and test; returns these three data sets.
using DatasetsProvider = std::function<std::vector<MegatronDataset>(const std::vector<std::int64_t>& samples)>;
/// Makes all chunks of a rank and prepares them in any way, for example with weights from a file or frozen layers. The
/// engine reduces and updates the chunks that it returns.
using PrepareModelFunction = std::function<std::vector<std::shared_ptr<ModelChunk>>(const ModelProvider& provider,
                                                                                    const std::vector<ChunkPlace>&)>;
using GetBatchFunction = std::function<Batch(DataIter& data)>;
using LossFunction = std::function<LossOut(const Batch& batch, const Tensors& outputs)>;

/// Returns the step with `get` as its get_batch().
std::shared_ptr<AbstractTrainStep> with_get_batch(std::shared_ptr<AbstractTrainStep> step, GetBatchFunction get);

struct MegatronLMPlugin : MegatronSpec {
  /// Replace the spec's globs: parameters without weight decay, and those whose rate is multiplied by lr_mult.
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

/// Makes the step of custom_train_step_class, which must be set. Errors: throws std::invalid_argument if it returns
/// none, ResultError (config) for a keyword that it did not read.
std::shared_ptr<AbstractTrainStep> make_train_step(const MegatronLMPlugin& plugin, const TrainStepArgs& args);

/// Placeholder for a schedule, which the plug-in makes. total_num_steps: updates after which the rate has decayed.
struct MegatronLMDummyScheduler {
  std::optional<std::int64_t> total_num_steps;
  std::int64_t warmup_num_steps = 0;
};

/// Placeholder for data from indexed datasets. Its position among the loaders passed to prepare() decides which data it
/// becomes: the first is training, the second validation, the third test. Names and defaults are Megatron-LM's.
struct MegatronLMDummyDataLoader {
  std::vector<std::string> data_path;  ///< prefixes, or weights and prefixes in turn
  /// Instead of data_path and split: separate data for the three uses. A loader reads those of its own use.
  std::vector<std::string> train_data_path;
  std::vector<std::string> valid_data_path;
  std::vector<std::string> test_data_path;
  std::string split = "969, 30, 1";
  std::string data_cache_path;             ///< folder where indices are kept; empty: they are built each time
  std::string dataloader_type = "single";  ///< single, or cyclic: each epoch shuffles all samples again
  bool data_sharding = true;               ///< cyclic: each replica draws from its own part of the samples
  std::uint32_t seed = 1234;
  bool reset_position_ids = false;
  bool reset_attention_mask = false;
  bool eod_mask_loss = false;
  double mask_prob = 0.15;      ///< BERT, T5: share of tokens that are masked
  double short_seq_prob = 0.1;  ///< BERT, T5: share of samples that are cut short
  std::int64_t micro_batch_size = 1;
  // Only these values are supported; prepare() refuses others and says why.
  bool mmap_bin_files = true;
  bool mock_data = false;
  std::int64_t num_workers = 0;  ///< Megatron-LM's default is 2
  std::string vocab_file;
  std::string merge_file;
};

}  // namespace accrue::megatron

// SPDX-License-Identifier: Apache-2.0
// Names for custom train steps, models, data sets and losses, by which a spec refers to them in [megatron].
//
//   Registry registry;
//   registry.custom_loss_function.add("focal", [](const Batch& batch, const Tensors& outputs) { ... });
//
// A program passes it to an Accelerator; a plug-in library fills the one that it is given (plugin_library.h).
// Thread: fill it before the training thread uses it; the entries are called on the training thread.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "accrue/megatron/megatron_lm_plugin.h"
#include "accrue/run/megatron/plugin_facts.h"

namespace accrue::megatron {

struct Registry {
  /// The entries of one field of the plug-in.
  template <typename Entry>
  class Names {
   public:
    explicit Names(const char* field) : field_(field) {}
    /// Errors: throws std::invalid_argument for an empty name, an empty entry, and a name that is taken.
    void add(const std::string& name, Entry entry) {
      if (name.empty() || !entry) throw std::invalid_argument(std::string(field_) + " needs a name and an entry");
      if (!entries_.emplace(name, std::move(entry)).second)
        throw std::invalid_argument(std::string(field_) + " has \"" + name + "\" twice");
    }
    /// Returns the entry; empty if the name is unknown.
    Entry find(const std::string& name) const {
      const auto found = entries_.find(name);
      return found == entries_.end() ? Entry() : found->second;
    }
    void add(const Names& others) {
      for (const auto& [name, entry] : others.entries_) add(name, entry);
    }
    const char* field() const { return field_; }
    const std::map<std::string, Entry>& all() const { return entries_; }

   private:
    const char* field_;
    std::map<std::string, Entry> entries_;
  };

  Names<TrainStepFactory> custom_train_step_class{"custom_train_step_class"};
  Names<ModelProvider> custom_model_provider_function{"custom_model_provider_function"};
  Names<PrepareModelFunction> custom_prepare_model_function{"custom_prepare_model_function"};
  Names<DatasetsProvider> custom_megatron_datasets_provider_function{"custom_megatron_datasets_provider_function"};
  Names<GetBatchFunction> custom_get_batch_function{"custom_get_batch_function"};
  Names<LossFunction> custom_loss_function{"custom_loss_function"};

  /// Adds data sets of a fixed size, which becomes data.samples and data.validation_fraction of a spec that names them.
  /// Other data sets give as many samples as the spec says. Errors: as Names::add(), and for a size without training
  /// samples.
  void add_datasets(const std::string& name, DatasetSizes sizes, DatasetsProvider provider);
  std::map<std::string, DatasetSizes> dataset_sizes;  ///< by the name of the provider

  /// Errors: as Names::add(), for a name that both have.
  void add(const Registry& others);
  /// Returns all entries, by field and name.
  std::vector<PluginEntry> entries() const;
};

/// Resolves the plug-in's names; values that the program set itself are kept. Errors: throws std::invalid_argument for
/// an unknown name. The error suggests the nearest registered name.
MegatronLMPlugin with_registered(MegatronLMPlugin plugin, const Registry& registry);

}  // namespace accrue::megatron

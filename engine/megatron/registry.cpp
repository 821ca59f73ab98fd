// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/registry.h"

#include <optional>
#include <stdexcept>
#include <utility>

#include "accrue/run/base/number_text.h"
#include "megatron/hook_errors.h"

namespace accrue::megatron {
namespace {

template <typename Entry>
void add_entries(std::vector<PluginEntry>& all, const Registry::Names<Entry>& names) {
  for (const auto& each : names.all()) all.push_back({.field = names.field(), .name = each.first});
}

/// A registered step; errors of its functions are reported under its name.
class GuardedStep final : public AbstractTrainStep {
 public:
  GuardedStep(std::shared_ptr<AbstractTrainStep> inner, std::string hook)
      : AbstractTrainStep(inner->name()), inner_(std::move(inner)), hook_(std::move(hook)) {}
  Batch get_batch(DataIter& data) override {
    return call_hook(hook_, [&] { return inner_->get_batch(data); });
  }
  ForwardOut forward_step(DataIter& data, ModelChunk& chunk, int microbatch) override {
    return call_hook(hook_, [&] { return inner_->forward_step(data, chunk, microbatch); });
  }
  LossOut loss_func(const Batch& batch, const Tensors& outputs) override {
    return call_hook(hook_, [&] { return inner_->loss_func(batch, outputs); });
  }

 private:
  std::shared_ptr<AbstractTrainStep> inner_;
  std::string hook_;
};

/// Wraps a hook's result that is called later, so that its errors are reported under the hook's name.
template <typename Given>
Given guarded_result(const std::string& /*hook*/, Given given) {
  return given;
}
std::shared_ptr<AbstractTrainStep> guarded_result(const std::string& hook, std::shared_ptr<AbstractTrainStep> step) {
  return step ? std::make_shared<GuardedStep>(std::move(step), hook) : nullptr;
}
std::vector<MegatronDataset> guarded_result(const std::string& hook, std::vector<MegatronDataset> sets) {
  for (MegatronDataset& set : sets)
    if (set.fetch)
      set.fetch = [hook, fetch = std::move(set.fetch)](const std::vector<std::int64_t>& samples) {
        return call_hook(hook, [&] { return fetch(samples); });
      };
  return sets;
}

template <typename Given, typename... Arguments>
std::function<Given(Arguments...)> guarded_hook(const std::string& hook, std::function<Given(Arguments...)> call) {
  return [hook, call = std::move(call)](Arguments... arguments) {
    return guarded_result(hook, call_hook(hook, [&] { return call(std::forward<Arguments>(arguments)...); }));
  };
}

template <typename Entry>
void take(Entry& member, const std::optional<std::string>& name, const Registry::Names<Entry>& names) {
  if (!name || member) return;
  if (Entry entry = names.find(*name)) member = guarded_hook(std::string(names.field()) + " \"" + *name + "\"", entry);
}

/// Errors: throws std::invalid_argument for malformed text, and for a name given twice.
StepKeywords step_keywords(const std::vector<std::string>& elements) {
  StepKeywords::Values keywords;
  for (const std::string& element : elements) {
    auto argument = step_argument(element);
    if (!argument || !keywords.insert(*std::move(argument)).second)
      throw std::invalid_argument("custom_train_step_kwargs: \"" + element +
                                  "\" is not \"name = value\" of a new name");
  }
  return StepKeywords(std::move(keywords));
}

}  // namespace

void Registry::add_datasets(const std::string& name, DatasetSizes sizes, DatasetsProvider provider) {
  if (sizes.training < 1 || sizes.validation < 0)
    throw std::invalid_argument("the data sets \"" + name + "\" need at least one training sample, and none or more " +
                                "for validation");
  custom_megatron_datasets_provider_function.add(name, std::move(provider));
  dataset_sizes.emplace(name, sizes);
}

void Registry::add(const Registry& others) {
  custom_train_step_class.add(others.custom_train_step_class);
  custom_model_provider_function.add(others.custom_model_provider_function);
  custom_prepare_model_function.add(others.custom_prepare_model_function);
  custom_megatron_datasets_provider_function.add(others.custom_megatron_datasets_provider_function);
  dataset_sizes.insert(others.dataset_sizes.begin(), others.dataset_sizes.end());
  custom_get_batch_function.add(others.custom_get_batch_function);
  custom_loss_function.add(others.custom_loss_function);
}

std::vector<PluginEntry> Registry::entries() const {
  std::vector<PluginEntry> all;
  add_entries(all, custom_train_step_class);
  add_entries(all, custom_model_provider_function);
  add_entries(all, custom_prepare_model_function);
  add_entries(all, custom_megatron_datasets_provider_function);
  for (PluginEntry& each : all)
    if (const auto sizes = dataset_sizes.find(each.name);
        each.field == custom_megatron_datasets_provider_function.field() && sizes != dataset_sizes.end())
      each.sizes = sizes->second;
  add_entries(all, custom_get_batch_function);
  add_entries(all, custom_loss_function);
  return all;
}

MegatronLMPlugin with_registered(MegatronLMPlugin plugin, const Registry& registry) {
  const MegatronSpec& named = plugin;
  const PluginFacts own{.file = {}, .name = {}, .sha256 = {}, .entries = registry.entries(), .error = {}};
  const std::string wrong = joined(check_plugins(named, {&own, 1}), "\n", &Finding::text);
  if (!wrong.empty()) throw std::invalid_argument(wrong);
  take(plugin.custom_train_step_class, named.custom_train_step_class, registry.custom_train_step_class);
  take(plugin.custom_model_provider_function, named.custom_model_provider_function,
       registry.custom_model_provider_function);
  take(plugin.custom_prepare_model_function, named.custom_prepare_model_function,
       registry.custom_prepare_model_function);
  take(plugin.custom_megatron_datasets_provider_function, named.custom_megatron_datasets_provider_function,
       registry.custom_megatron_datasets_provider_function);
  take(plugin.custom_get_batch_function, named.custom_get_batch_function, registry.custom_get_batch_function);
  take(plugin.custom_loss_function, named.custom_loss_function, registry.custom_loss_function);
  if (named.custom_train_step_kwargs && plugin.custom_train_step_kwargs.empty())
    plugin.custom_train_step_kwargs = step_keywords(*named.custom_train_step_kwargs);
  return plugin;
}

std::shared_ptr<AbstractTrainStep> with_get_batch(std::shared_ptr<AbstractTrainStep> step, GetBatchFunction get) {
  class WithGetBatch final : public AbstractTrainStep {
   public:
    WithGetBatch(std::shared_ptr<AbstractTrainStep> inner, GetBatchFunction get)
        : AbstractTrainStep(inner->name()), inner_(std::move(inner)), get_(std::move(get)) {}
    Batch get_batch(DataIter& data) override { return get_(data); }
    LossOut loss_func(const Batch& batch, const Tensors& outputs) override { return inner_->loss_func(batch, outputs); }

   private:
    std::shared_ptr<AbstractTrainStep> inner_;
    GetBatchFunction get_;
  };
  return std::make_shared<WithGetBatch>(std::move(step), std::move(get));
}

std::shared_ptr<AbstractTrainStep> make_train_step(const MegatronLMPlugin& plugin, const TrainStepArgs& args) {
  const StepKeywords keywords(plugin.custom_train_step_kwargs.values());
  auto step = plugin.custom_train_step_class(args, keywords);
  if (!step) throw std::invalid_argument("custom_train_step_class made no step");
  const auto& name = static_cast<const MegatronSpec&>(plugin).custom_train_step_class;
  keywords.demand_all_read(name ? '"' + *name + '"' : "custom_train_step_class");
  return step;
}

}  // namespace accrue::megatron

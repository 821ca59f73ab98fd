// SPDX-License-Identifier: GPL-3.0-or-later
#include "plugin_runner.h"

#include "accrue/run/megatron_lowering.h"

namespace accrue::ui {

PluginRunner::PluginRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent)
    : PlanFollower(
          document, preflight,
          [this](const Question& asked) -> std::function<void()> {
            std::optional<PluginComparison> result;
            // As it runs, and without the fields: they would bring back what is switched off. A model of one's own,
            // which sets none, stays what is trained.
            RunSpec effective = lower_megatron(asked.spec, environment_of(asked.host), asked.libraries).spec;
            effective.megatron = {.custom_model_provider_function =
                                      std::move(effective.megatron.custom_model_provider_function)};
            if (asked.data)
              result = compare_plugins(effective, asked.host, *asked.data, asked.base_dir, asked.libraries);
            return [this, result] { result_ = result; };
          },
          parent) {}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "plugin_runner.h"

namespace accrue::ui {

PluginRunner::PluginRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent)
    : PlanFollower(
          document, preflight,
          [this](const Question& asked) -> std::function<void()> {
            std::optional<PluginComparison> result;
            if (asked.data) result = compare_plugins(asked.spec, asked.host, *asked.data, asked.base_dir);
            return [this, result] { result_ = result; };
          },
          parent) {}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "iso_runner.h"

namespace accrue::ui {

IsoRunner::IsoRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent)
    : PlanFollower(
          document, preflight,
          [this](const Question& asked) -> std::function<void()> {
            std::shared_ptr<const std::vector<IsoPlan>> result;
            if (asked.data)
              result = std::make_shared<std::vector<IsoPlan>>(
                  plan_iso_ways(asked.spec, asked.host, *asked.data, asked.base_dir, asked.libraries));
            return [this, result] { result_ = result; };
          },
          parent) {}

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "dialect_runner.h"

namespace accrue::ui {

DialectRunner::DialectRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent)
    : PlanFollower(
          document, preflight,
          [this](const Question& asked) -> std::function<void()> {
            std::shared_ptr<const DialectComparison> result;
            if (asked.data)
              result = std::make_shared<DialectComparison>(compare_dialects(
                  asked.spec, asked.host, *asked.data, asked.base_dir, compared_steps, asked.libraries));
            return [this, result] { result_ = result; };
          },
          parent) {}

}  // namespace accrue::ui

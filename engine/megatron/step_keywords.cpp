// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/step_keywords.h"

#include <charconv>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/result.h"

namespace accrue::megatron {
namespace {

ResultError refused(const std::string& what) {
  return ResultError({.code = ErrorCode::config,
                      .message = what,
                      .where = "custom_train_step_kwargs",
                      .hint = "Correct the arguments."});
}

template <typename Number>
Number parsed(const std::string& name, const std::string& text, const char* wanted) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) throw refused(name + " must be " + wanted + ", found \"" + text + "\"");
  return value;
}

}  // namespace

std::optional<std::string> StepKeywords::find(const std::string& name) const {
  asked_->insert(name);
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

const std::string& StepKeywords::at(const std::string& name) const {
  asked_->insert(name);
  if (const auto found = values_.find(name); found != values_.end()) return found->second;
  const std::string given = joined(values_, ", ", [](const auto& each) { return each.first; });
  throw refused(name + " is missing" + (given.empty() ? "" : "; what is given: " + given));
}

double StepKeywords::number(const std::string& name) const {
  return parsed<double>(name, at(name), "a number");
}

std::int64_t StepKeywords::integer(const std::string& name) const {
  return parsed<std::int64_t>(name, at(name), "a whole number");
}

void StepKeywords::demand_all_read(const std::string& step) const {
  const std::string known = joined(*asked_);
  for (const auto& each : values_)
    if (!asked_->contains(each.first))
      throw refused(each.first + " is none of the arguments of " + step +
                    (known.empty() ? ", which takes none" : ", which are " + known));
}

}  // namespace accrue::megatron

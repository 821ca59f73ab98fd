// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/step_keywords.h"

#include <charconv>
#include <stdexcept>

namespace accrue::megatron {
namespace {

template <typename Number>
Number parsed(const std::string& name, const std::string& text, const char* wanted) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end)
    throw std::invalid_argument("custom_train_step_kwargs: " + name + " must be " + wanted + ", found \"" + text +
                                "\"");
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
  std::string given;
  for (const auto& each : values_) given += (given.empty() ? "" : ", ") + each.first;
  throw std::invalid_argument("custom_train_step_kwargs: " + name + " is missing" +
                              (given.empty() ? "" : "; what is given: " + given));
}

double StepKeywords::number(const std::string& name) const {
  return parsed<double>(name, at(name), "a number");
}

std::int64_t StepKeywords::integer(const std::string& name) const {
  return parsed<std::int64_t>(name, at(name), "a whole number");
}

std::vector<std::string> StepKeywords::unread() const {
  std::vector<std::string> names;
  for (const auto& each : values_)
    if (!asked_->contains(each.first)) names.push_back(each.first);
  return names;
}

}  // namespace accrue::megatron

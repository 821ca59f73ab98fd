// SPDX-License-Identifier: Apache-2.0
// The keyword arguments of a custom train step. They remember which names were read, so a name that the step does not
// know is an error, like an unexpected keyword in Python.
//
//   KeyTokenStep(const TrainStepArgs& args, const StepKeywords& keywords) : alpha_(keywords.number("alpha")) {}
//
// Thread: training. Source: Accelerate 1.9.0, custom_train_step_kwargs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace accrue::megatron {

class StepKeywords {
 public:
  using Values = std::map<std::string, std::string>;

  StepKeywords() = default;
  StepKeywords(std::initializer_list<Values::value_type> values) : values_(values) {}
  /// No name counts as read yet.
  explicit StepKeywords(Values values) : values_(std::move(values)) {}
  StepKeywords(const StepKeywords&) = default;
  StepKeywords& operator=(const StepKeywords&) = default;

  bool empty() const { return values_.empty(); }
  const Values& values() const { return values_; }

  /// Returns the text of a required keyword. Errors, for this and the next two: throws ResultError (config), which
  /// names the keyword, if it is missing or its text does not have the type.
  const std::string& at(const std::string& name) const;
  double number(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  /// Returns the text of an optional keyword; empty if it is missing.
  std::optional<std::string> find(const std::string& name) const;

  /// Errors: as above, for a keyword that was never read. Copies share the record of what was read.
  void demand_all_read(const std::string& step) const;

 private:
  Values values_;
  std::shared_ptr<std::set<std::string>> asked_ = std::make_shared<std::set<std::string>>();
};

}  // namespace accrue::megatron

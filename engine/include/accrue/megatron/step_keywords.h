// SPDX-License-Identifier: Apache-2.0
// The arguments of a train step of one's own. They remember which names were read: one that the step does not know is a
// mistake, as an unexpected keyword is in Python.
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
  /// None of the names is read yet.
  explicit StepKeywords(Values values) : values_(std::move(values)) {}
  StepKeywords(const StepKeywords&) = default;
  StepKeywords& operator=(const StepKeywords&) = default;

  bool empty() const { return values_.empty(); }
  const Values& values() const { return values_; }

  /// The text of a name that the step needs. Errors, here and below: throws ResultError (config), which names the
  /// keyword, where it is missing and where its text is not of the type.
  const std::string& at(const std::string& name) const;
  double number(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  /// Of a name that may be left out.
  std::optional<std::string> find(const std::string& name) const;

  /// Errors: as above, for a name that nothing asked for. Copies count as one.
  void demand_all_read(const std::string& step) const;

 private:
  Values values_;
  std::shared_ptr<std::set<std::string>> asked_ = std::make_shared<std::set<std::string>>();
};

}  // namespace accrue::megatron

// SPDX-License-Identifier: Apache-2.0
// Losses measured by the evaluations of a course, without their parts.
#pragma once

#include <cstdint>
#include <map>

#include "accrue/run/record/compare.h"

namespace accrue::test {

/// The losses of the evaluations, by the update that they follow.
inline std::map<std::int64_t, double> losses_of(const RunCourse& course) {
  std::map<std::int64_t, double> losses;
  for (const auto& [update, evaluation] : course.evaluations) losses[update] = evaluation.loss;
  return losses;
}

}  // namespace accrue::test

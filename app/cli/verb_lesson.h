// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace accrue::cli {

struct LessonOptions {
  std::string file;
  bool check = false;
};
int go_through_lesson(const LessonOptions& options);

}  // namespace accrue::cli

// SPDX-License-Identifier: Apache-2.0
#include "python_literal.h"

#include <fmt/format.h>

#include <cmath>

#include "json_text.h"

namespace accrue::export_detail {

std::string python(std::string_view text) {
  return json_text(Json(text));  // not escaped: JSON's pair of surrogates is two characters to Python
}

std::string python(double number) {
  if (std::isnan(number)) return "math.nan";
  if (std::isinf(number)) return number > 0 ? "math.inf" : "-math.inf";
  return fmt::format("{}", number);
}

std::string python(bool flag) {
  return flag ? "True" : "False";
}

}  // namespace accrue::export_detail

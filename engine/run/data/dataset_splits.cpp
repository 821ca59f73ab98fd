// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/dataset_splits.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "accrue/run/base/name_of.h"
#include "numpy_sum.h"

namespace accrue {
namespace {

constexpr std::string_view split_names[] = {"train", "valid", "test"};
constexpr std::string_view split_digits = ".0123456789";

tl::unexpected<Error> bad_split(std::string_view text, std::string_view why) {
  return fail(ErrorCode::config, fmt::format("\"{}\" is no split: {}", text, why), {},
              "Write one to three proportions, such as 969,30,1");
}

/// Rounds halves to even; implemented by hand because a program may have changed the rounding mode.
std::int64_t round_half_even(double value) {
  const double below = std::floor(value), rest = value - below;
  const auto whole = static_cast<std::int64_t>(below);
  return rest > 0.5 || (rest == 0.5 && whole % 2 != 0) ? whole + 1 : whole;
}

}  // namespace

std::string_view to_string(DatasetSplit split) {
  return name_of<DatasetSplit::test>(split, split_names);
}

Result<SplitMatrix> parse_split(std::string_view text) {
  std::vector<double> parts;
  for (std::string_view rest = text; !rest.empty();) {
    const auto begin = std::min(rest.find_first_of(split_digits), rest.size());
    for (const char sign : rest.substr(0, begin))
      if (sign == '-' || sign == '+' || std::isalpha(static_cast<unsigned char>(sign)) != 0)
        return bad_split(text, fmt::format("'{}' stands in it", sign));
    rest.remove_prefix(begin);
    const auto word = rest.substr(0, rest.find_first_not_of(split_digits));
    if (word.empty()) break;
    double part = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), part, std::chars_format::fixed);
    if (error != std::errc() || end != word.data() + word.size())
      return bad_split(text, fmt::format("{} is no number", word));
    parts.push_back(part);
    rest.remove_prefix(word.size());
  }
  if (parts.empty()) return bad_split(text, "it has no number");
  if (parts.size() > 3) return bad_split(text, fmt::format("it has {} numbers", parts.size()));
  parts.resize(3, 0.0);
  const double sum = numpy_sum(parts);
  if (!(sum > 0) || !std::isfinite(sum)) return bad_split(text, "its sum must be above 0");
  SplitMatrix matrix;
  double begin = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double end = begin + parts[i] / sum;
    if (end > begin) matrix[i] = SplitBounds{begin, end};
    begin = end;
  }
  return matrix;
}

IndexRange elements_of(const SplitBounds& bounds, std::int64_t elements) {
  const auto at = [elements](double bound) { return round_half_even(bound * static_cast<double>(elements)); };
  return {at(bounds.begin), std::min(at(bounds.end), elements)};
}

}  // namespace accrue

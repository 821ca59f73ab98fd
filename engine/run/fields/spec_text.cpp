// SPDX-License-Identifier: Apache-2.0
// Spelling of numbers and strings, similarity of names, and the check of one value against its row. Numbers use
// std::to_chars, whose shortest form is equal on every machine and in every locale.
#include "spec_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "accrue/run/base/name_of.h"
#include "accrue/run/base/non_finite.h"
#include "accrue/run/base/number_text.h"
#include "missing_keys.h"

namespace accrue::spec_detail {

namespace {

std::string shortest(double number) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  std::string text(buffer, end);
  const auto e = text.find('e');
  if (e == std::string::npos) return text;
  // "3e-04" and "1e+06" become "3e-4" and "1e6".
  std::string exponent = text.substr(e + 1);
  const bool negative = exponent[0] == '-';
  if (exponent[0] == '-' || exponent[0] == '+') exponent.erase(0, 1);
  exponent.erase(0, std::min(exponent.find_first_not_of('0'), exponent.size() - 1));
  return text.substr(0, e) + (negative ? "e-" : "e") + exponent;
}

bool in_range(const SpecField& field, double number) {
  if (field.open_minimum ? number <= field.minimum : number < field.minimum) return false;
  return number <= field.maximum;
}

std::string range_text(const SpecField& field) {
  const bool low = std::isfinite(field.minimum);
  const bool high = std::isfinite(field.maximum);
  std::string text;
  if (low) text = (field.open_minimum ? " above " : " from ") + number_text(field.minimum);
  if (high) text += (field.open_minimum && low ? " and up to " : " to ") + number_text(field.maximum);
  return text;
}

Finding value_finding(const SpecField& field, std::string message, std::string found) {
  return {.key = std::string(field.key),
          .message = std::move(message),
          .found = std::move(found),
          .expected = expected_text(field)};
}

Finding choice_finding(const SpecField& field, const std::string& name) {
  if (const RemovedKey* removed = removed_key(field.key, name)) {
    Finding finding = value_finding(field, "was removed: " + std::string(removed->advice), in_quotes(name));
    finding.fix_value = std::string(removed->fix);
    finding.removed = true;
    return finding;
  }
  Finding finding = value_finding(field, "is not one of the choices", in_quotes(name));
  const std::string_view near = nearest_of(field.choices, name);
  if (!near.empty()) finding.fix_value = std::string(near);
  return finding;
}

// Numbers of a value, in reading order; none for texts.
std::vector<double> numbers_of(const SpecValue& value) {
  std::vector<double> numbers;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) numbers = {static_cast<double>(*whole)};
  if (const auto* real = std::get_if<double>(&value)) numbers = {*real};
  if (const auto* wholes = std::get_if<std::vector<std::int64_t>>(&value))
    numbers.assign(wholes->begin(), wholes->end());
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) numbers = *reals;
  if (const auto* rows = std::get_if<Matrix>(&value))
    for (const auto& row : *rows) numbers.insert(numbers.end(), row.begin(), row.end());
  return numbers;
}

}  // namespace

std::string number_text(double number) {
  if (!std::isfinite(number)) return std::string(non_finite_name(number));
  if (number == 0 && std::signbit(number)) return "-0.0";
  if (number == std::trunc(number) && std::abs(number) < 1e15) return std::to_string(static_cast<std::int64_t>(number));
  return shortest(number);
}

std::string real_text(double number) {
  if (!std::isfinite(number)) return number_text(number);
  if (number == 0 && std::signbit(number)) return "-0.0";
  std::string text = shortest(number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string in_quotes(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += '\\', result += c;
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (c == '\r')
      result += "\\r";
    else if (byte < 0x20 || byte == 0x7f)
      result += "\\u00", result += digits[byte >> 4], result += digits[byte & 15];
    else
      result += c;
  }
  return result + "\"";
}

std::string folded(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  std::string text(name);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return text;
}

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before(right.size() + 1), last(right.size() + 1), row(right.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[right.size()];
}

std::string_view nearest_of(std::span<const std::string_view> names, std::string_view name) {
  if (name.size() > 100) return {};
  const std::string wanted = folded(name);
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string_view candidate : names) {
    const std::size_t distance = edit_distance(folded(candidate), wanted);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

std::string expected_text(const SpecField& field) {
  if (field.type == FieldType::choice) return "one of " + joined(field.choices);
  if (field.type == FieldType::texts && !field.choices.empty()) return "a list of any of " + joined(field.choices);
  if (field.type == FieldType::matrix) return "a list of rows " + std::string(field.rows);
  const std::string_view kind =
      name_of<FieldType::matrix>(field.type, {"true or false", "a whole number", "a number", "a string", "",
                                              "a list of whole numbers", "a list of numbers", "a list of strings", ""});
  return std::string(kind) + range_text(field);
}

std::optional<Finding> check_value(const SpecField& field, const SpecValue& value) {
  if (const auto* names = std::get_if<std::vector<std::string>>(&value); names && !field.choices.empty())
    for (const std::string& name : *names)
      if (std::ranges::find(field.choices, name) == field.choices.end())
        return value_finding(field, "has an element that is not one of the choices", in_quotes(name));
  if (field.type == FieldType::choice) {
    const auto& name = std::get<std::string>(value);
    if (std::ranges::find(field.choices, name) != field.choices.end()) return std::nullopt;
    return choice_finding(field, name);
  }
  for (const double number : numbers_of(value)) {
    if (!std::isfinite(number)) return value_finding(field, "is not a finite number", number_text(number));
    if (in_range(field, number)) continue;
    Finding finding = value_finding(field, "is out of range", number_text(number));
    const bool single = field.type == FieldType::integer || field.type == FieldType::real;
    if (single && number > field.maximum) finding.fix_value = number_text(field.maximum);
    if (single && number < field.minimum && !field.open_minimum) finding.fix_value = number_text(field.minimum);
    return finding;
  }
  RunSpec probe;
  field.set(probe, value);
  if (field.type == FieldType::matrix && field.get(probe) != value)
    return value_finding(field, "has a row that does not fit", format_value(value).substr(0, 60));
  return std::nullopt;
}

}  // namespace accrue::spec_detail

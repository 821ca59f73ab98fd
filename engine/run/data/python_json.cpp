// SPDX-License-Identifier: Apache-2.0
#include "python_json.h"

#include <fmt/format.h>

#include <charconv>

#include "json_text.h"

namespace accrue {
namespace {

std::string inner(const std::string& text) {
  std::string indented;
  for (const char each : text) {
    indented += each;
    if (each == '\n') indented += "    ";
  }
  return indented;
}

std::string enclosed(char open, const std::vector<std::string>& lines, char close) {
  std::string text(1, open);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "\n    " : ",\n    ") + inner(lines[i]);
  return text + (lines.empty() ? "" : "\n") + close;
}

}  // namespace

PythonJson PythonJson::of(std::string_view value) {
  return {json_ascii(Json(value))};
}

PythonJson PythonJson::of(double value) {
  char digits[64];
  const auto scientific = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific).ptr;
  const std::string_view form(digits, static_cast<std::size_t>(scientific - digits));
  int exponent = 0;
  const char* sign = form.data() + form.find('e') + 1;
  std::from_chars(*sign == '+' ? sign + 1 : sign, scientific, exponent);
  if (exponent < -4 || exponent >= 16) return {std::string(form)};
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed).ptr;
  std::string text(digits, end);
  return {text.find('.') == std::string::npos ? text + ".0" : text};
}

PythonJson PythonJson::list(const std::vector<PythonJson>& values) {
  std::vector<std::string> lines;
  for (const PythonJson& value : values) lines.push_back(value.text);
  return {enclosed('[', lines, ']')};
}

PythonJson PythonJson::object(const std::vector<std::pair<std::string, PythonJson>>& members) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : members) lines.push_back(of(name).text + ": " + value.text);
  return {enclosed('{', lines, '}')};
}

}  // namespace accrue

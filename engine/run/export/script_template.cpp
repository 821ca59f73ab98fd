// SPDX-License-Identifier: Apache-2.0
#include "script_template.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace accrue::export_detail {

namespace {

constexpr std::pair<std::string_view, std::string_view> templates[] = {
#include "script_templates.inc"
};

bool is_wanted(const std::string& block, const ScriptText& text) {
  std::istringstream names(block);
  std::string name;
  if (!(names >> name)) return true;
  do
    if (text.blocks.contains(name)) return true;
  while (names >> name);
  return false;
}

bool belongs_to_name(char each) {
  return each == '_' || (each >= '0' && each <= '9') || (each >= 'A' && each <= 'Z') || (each >= 'a' && each <= 'z');
}

/// The line with values in place of names; a name is a whole identifier of Python.
void append(std::string& script, std::string_view line, const ScriptText& text) {
  while (!line.empty()) {
    const auto begin = std::ranges::find_if(line, belongs_to_name);
    const auto end = std::find_if_not(begin, line.end(), belongs_to_name);
    script.append(line.begin(), begin);
    const std::string_view word(begin, end);
    const auto value = word.size() > 2 && word.front() == '_' && word.back() == '_'
                           ? text.values.find(word.substr(1, word.size() - 2))
                           : text.values.end();
    script += value == text.values.end() ? word : std::string_view(value->second);
    line = {end, line.end()};
  }
  script += '\n';
}

}  // namespace

std::string rendered(std::string_view name, const ScriptText& text) {
  constexpr std::string_view mark = "# %%";
  const auto found = std::ranges::find(templates, name, [](const auto& each) { return each.first; });
  std::istringstream lines{std::string(found->second)};
  std::string script;
  bool wanted = false;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(mark))
      wanted = is_wanted(line.substr(mark.size()), text);
    else if (wanted)
      append(script, line, text);
  return script;
}

}  // namespace accrue::export_detail

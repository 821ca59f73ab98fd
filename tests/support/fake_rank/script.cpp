// SPDX-License-Identifier: Apache-2.0
#include "script.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace fake_rank {
namespace {

constexpr std::array<std::string_view, 18> known = {
    "micro_ms", "rate",  "join_ms", "late", "absent",  "die",          "exit", "fail",    "stall",
    "nan",      "flood", "garble",  "gap",  "version", "hang_on_loss", "deaf", "save_ms", "finish_ms"};

std::int64_t to_number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Action parse(std::string_view entry) {
  Action action;
  const auto colon = entry.find(':');
  if (colon != std::string_view::npos) action.value = entry.substr(colon + 1);
  entry = entry.substr(0, colon);
  const auto at = entry.find('@');
  if (at != std::string_view::npos) action.micro_step = to_number(entry.substr(at + 1));
  entry = entry.substr(0, at);
  const auto equals = entry.find('=');
  if (equals != std::string_view::npos) action.rank = to_number(entry.substr(equals + 1));
  action.name = entry.substr(0, equals);
  return action;
}

bool is_known(std::string_view name) {
  if (name == "once") return true;
  for (const auto entry : known)
    if (entry == name) return true;
  return false;
}

}  // namespace

Script Script::from_environment(std::int64_t rank) {
  Script script;
  script.rank_ = rank;
  const char* text = std::getenv("ACCRUE_FAKE_RANK");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto entry = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    if (entry.empty()) continue;
    script.actions_.push_back(parse(entry));
    if (is_known(script.actions_.back().name)) continue;
    std::fprintf(stderr, "ACCRUE_FAKE_RANK: unknown entry \"%s\"\n", std::string(entry).c_str());
    std::exit(2);
  }
  return script;
}

std::int64_t Script::number(const char* name, std::int64_t otherwise) const {
  for (const auto& action : actions_)
    if (action.name == name) return action.rank;  // name=N: the number is in the place of a rank
  return otherwise;
}

bool Script::has(const char* name) const {
  for (const auto& action : actions_)
    if (action.name == name && (action.rank == rank_ || action.name == "once")) return true;
  return false;
}

std::optional<Action> Script::at(const char* name, std::int64_t micro_step) const {
  for (const auto& action : actions_)
    if (action.name == name && action.rank == rank_ && action.micro_step == micro_step) return action;
  return std::nullopt;
}

}  // namespace fake_rank

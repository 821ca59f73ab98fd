// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/events/rank_command.h"

#include <fmt/format.h>

#include <array>

#include "json_text.h"

namespace accrue {
namespace {

constexpr std::array<std::string_view, 10> command_names = {
    "hold",      "hold_after", "proceed",    "stop_after", "checkpoint", "checkpoint_and_stop",
    "set_steps", "hold_in",    "step_phase", "end_now"};
constexpr std::size_t max_command_bytes = 4096;
constexpr int command_version = 1;

/// The number of a command; null if it has none.
struct Argument {
  const char* name = nullptr;
  std::int64_t RankCommand::*value = nullptr;
};

Argument argument_of(RankCommandKind kind) {
  switch (kind) {
    case RankCommandKind::hold_after:
    case RankCommandKind::stop_after:
    case RankCommandKind::hold_in:
      return {"micro_step", &RankCommand::micro_step};
    case RankCommandKind::set_steps:
      return {"steps", &RankCommand::steps};
    default:
      return {};
  }
}

}  // namespace

std::string encode_command(const RankCommand& command) {
  const auto name = command_names[static_cast<std::size_t>(command.kind)];
  if (const Argument argument = argument_of(command.kind); argument.name != nullptr)
    return fmt::format(R"({{"v":{},"command":"{}","{}":{}}})", command_version, name, argument.name,
                       command.*argument.value);
  return fmt::format(R"({{"v":{},"command":"{}"}})", command_version, name);
}

Result<RankCommand> decode_command(std::string_view line) {
  const auto damaged = [](std::string message) {
    return fail(ErrorCode::protocol, std::move(message), "rank command");
  };
  if (line.size() > max_command_bytes || json_depth(line) > 4) return damaged("too long or too deep");
  const auto json = parse_json(line);
  if (!json.is_object()) return damaged("not a JSON object");
  const auto version = json.find("v");
  if (version == json.end() || *version != command_version)
    return damaged(fmt::format("version {} where this program knows version {}",
                               version == json.end() ? "none" : json_text(*version), command_version));
  const auto name = json.find("command");
  if (name == json.end() || !name->is_string()) return damaged("field \"command\" is missing");

  for (std::size_t i = 0; i < command_names.size(); ++i) {
    if (name->get_ref<const std::string&>() != command_names[i]) continue;
    RankCommand command;
    command.kind = static_cast<RankCommandKind>(i);
    const Argument argument = argument_of(command.kind);
    if (argument.name == nullptr) return command;
    const auto value = json.find(argument.name);
    if (value == json.end() || !value->is_number_integer())
      return damaged(fmt::format("field \"{}\" is missing", argument.name));
    command.*argument.value = value->get<std::int64_t>();
    return command;
  }
  return damaged(fmt::format("unknown command \"{}\"", name->get_ref<const std::string&>()));
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/rank_command.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "json_limits.h"

namespace accrue {
namespace {

constexpr std::array<std::string_view, 6> command_names = {"hold",       "hold_after", "proceed",
                                                           "stop_after", "checkpoint", "checkpoint_and_stop"};
constexpr std::size_t max_command_bytes = 4096;
constexpr int command_version = 1;

bool has_micro_step(RankCommandKind kind) {
  return kind == RankCommandKind::hold_after || kind == RankCommandKind::stop_after;
}

}  // namespace

std::string encode_command(const RankCommand& command) {
  const auto name = command_names[static_cast<std::size_t>(command.kind)];
  if (has_micro_step(command.kind))
    return fmt::format(R"({{"v":{},"command":"{}","micro_step":{}}})", command_version, name, command.micro_step);
  return fmt::format(R"({{"v":{},"command":"{}"}})", command_version, name);
}

Result<RankCommand> decode_command(std::string_view line) {
  const auto damaged = [](std::string message) {
    return fail(ErrorCode::protocol, std::move(message), "rank command");
  };
  if (line.size() > max_command_bytes || json_depth(line) > 4) return damaged("too long or too deep");
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return damaged("not a JSON object");
  const auto version = json.find("v");
  if (version == json.end() || *version != command_version)
    return damaged(fmt::format("version {} where this program knows version {}",
                               version == json.end() ? "none" : version->dump(), command_version));
  const auto name = json.find("command");
  if (name == json.end() || !name->is_string()) return damaged("field \"command\" is missing");

  for (std::size_t i = 0; i < command_names.size(); ++i) {
    if (name->get_ref<const std::string&>() != command_names[i]) continue;
    RankCommand command{static_cast<RankCommandKind>(i), 0};
    if (!has_micro_step(command.kind)) return command;
    const auto micro_step = json.find("micro_step");
    if (micro_step == json.end() || !micro_step->is_number_integer()) return damaged("field \"micro_step\" is missing");
    command.micro_step = micro_step->get<std::int64_t>();
    return command;
  }
  return damaged(fmt::format("unknown command \"{}\"", name->get_ref<const std::string&>()));
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "rank_text.h"

#include <fmt/format.h>

namespace accrue {

std::string name_of(const RankGrid& grid, std::size_t rank) {
  if (grid.pipeline * grid.tensor == 1) return fmt::format("Rank {}", rank);
  const GridCoordinate at = grid.coordinate(static_cast<std::int64_t>(rank));
  return fmt::format("Rank {} (data {}, stage {}, tensor {})", rank, at.data, at.pipeline, at.tensor);
}

std::string list_ranks(const std::vector<std::size_t>& ranks, char initial) {
  if (ranks.size() == 1) return fmt::format("{}ank {}", initial, ranks.front());
  std::string text = fmt::format("{}anks ", initial);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return text;
}

std::string place_of(const Heartbeat& last) {
  if (last.operation.find("micro-step") != std::string::npos)
    return fmt::format(" in {}, update {}", last.operation, last.update);
  return fmt::format("{}{}, update {}, micro-step {}", last.phase.empty() ? "" : " in ", last.phase, last.update,
                     last.micro_step);
}

std::string doing_text(const Heartbeat& last, const std::optional<Update>& done) {
  const bool of_micro_step = last.operation.find("micro-step") != std::string::npos;
  const bool ended = done && last.update <= done->update && last.micro_step <= done->micro_step;
  if (of_micro_step && !ended) return ", last seen in " + last.operation;
  if (last.phase.empty()) return {};
  const std::string phase = fmt::format(", last seen in phase \"{}\"", last.phase);
  return last.operation.empty() || of_micro_step ? phase : phase + fmt::format(" ({})", last.operation);
}

}  // namespace accrue

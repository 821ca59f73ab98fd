// SPDX-License-Identifier: Apache-2.0
// schedule and grid: division of the model and a window among a spec's ranks, without running anything.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "accrue/run/cost/rank_grid.h"
#include "accrue/run/window/pipeline_schedule.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

constexpr Axis axes[] = {Axis::data,  Axis::tensor, Axis::pipeline,  Axis::context,
                         Axis::model, Axis::world,  Axis::embedding, Axis::position_embedding};

using nlohmann::ordered_json;
using Lists = std::vector<std::vector<PipelineOperation>>;

/// The ranks of a pipeline stage.
RankList ranks_of_stage(const RankGrid& grid, std::int64_t stage) {
  RankList ranks;
  for (std::int64_t rank = 0; rank < grid.world(); ++rank)
    if (grid.coordinate(rank).pipeline == stage) ranks.push_back(rank);
  return ranks;
}

/// Returns "F3" for the third micro-step, counted from 1 like the studio and the events, or "F3.1" with the chunk,
/// counted from 0, if a stage has several; transfers name the other stage: "F3>1", "F3<0".
std::string word_of(const PipelineOperation& operation, std::int64_t chunks) {
  const auto named = [&](char letter) {
    return chunks > 1 ? fmt::format("{}{}.{}", letter, operation.micro_step + 1, operation.chunk)
                      : fmt::format("{}{}", letter, operation.micro_step + 1);
  };
  switch (operation.action) {
    case PipelineAction::forward:
      return named('F');
    case PipelineAction::backward:
      return named('B');
    case PipelineAction::send_output:
      return fmt::format("{}>{}", named('F'), operation.peer);
    case PipelineAction::receive_input:
      return fmt::format("{}<{}", named('F'), operation.peer);
    case PipelineAction::send_gradient:
      return fmt::format("{}>{}", named('B'), operation.peer);
    case PipelineAction::receive_gradient:
      return fmt::format("{}<{}", named('B'), operation.peer);
  }
  return {};
}

std::string text_of(const PipelineShape& shape, const Lists& lists, const RankGrid& grid) {
  std::string text =
      fmt::format("{}: stages {}, chunks per stage {}, micro-steps {}, bubble {:.1f} %\n", to_string(shape.schedule),
                  shape.stages, shape.chunks, shape.micro_steps, 100.0 * pipeline_bubble(shape));
  for (std::size_t stage = 0; stage < lists.size(); ++stage) {
    const auto index = static_cast<std::int64_t>(stage);
    text += fmt::format("\nstage {}, ranks {}, at most {} forward without their backward\n ", stage,
                        fmt::join(ranks_of_stage(grid, index), " "), pipeline_in_flight(shape, index));
    for (const PipelineOperation& operation : lists[stage]) text += " " + word_of(operation, shape.chunks);
    text += '\n';
  }
  return text;
}

ordered_json json_of(const PipelineShape& shape, const Lists& lists, const RankGrid& grid) {
  ordered_json stages = ordered_json::array();
  for (std::size_t stage = 0; stage < lists.size(); ++stage) {
    const auto index = static_cast<std::int64_t>(stage);
    ordered_json operations = ordered_json::array();
    for (const PipelineOperation& operation : lists[stage]) {
      ordered_json each = {
          {"action", to_string(operation.action)}, {"micro_step", operation.micro_step}, {"chunk", operation.chunk}};
      if (operation.peer >= 0) each["peer"] = operation.peer;
      operations.push_back(std::move(each));
    }
    stages.push_back({{"stage", index},
                      {"ranks", ranks_of_stage(grid, index)},
                      {"in_flight", pipeline_in_flight(shape, index)},
                      {"operations", std::move(operations)}});
  }
  return {{"schedule", to_string(shape.schedule)}, {"stages", shape.stages},           {"chunks", shape.chunks},
          {"micro_steps", shape.micro_steps},      {"bubble", pipeline_bubble(shape)}, {"lists", std::move(stages)}};
}

void print(const ordered_json& json) {
  put_data(json.dump(2) + "\n");
}

}  // namespace

int print_schedule(const LayoutOptions& options) {
  const auto plan = plan_from(options.input);
  if (!plan) return status_refused;
  const PipelineShape shape = pipeline_shape(plan->spec.parallel, plan->window.steps);
  const auto lists = pipeline_schedule(shape);
  if (!lists) return report(lists.error());
  if (options.json) {
    print(json_of(shape, *lists, plan->grid));
  } else {
    put(text_of(shape, *lists, plan->grid));
  }
  return status_done;
}

int print_grid(const LayoutOptions& options) {
  const auto plan = plan_from(options.input);
  if (!plan) return status_refused;
  const RankGrid& grid = plan->grid;
  ordered_json ranks = ordered_json::array(), groups = ordered_json::object();
  std::string text = fmt::format("{:>6} {:>6} {:>8} {:>6}\n", "rank", "data", "pipeline", "tensor");
  for (std::int64_t rank = 0; rank < grid.world(); ++rank) {
    const GridCoordinate at = grid.coordinate(rank);
    text += fmt::format("{:>6} {:>6} {:>8} {:>6}\n", rank, at.data, at.pipeline, at.tensor);
    ranks.push_back({{"rank", rank}, {"data", at.data}, {"pipeline", at.pipeline}, {"tensor", at.tensor}});
  }
  text += '\n';
  for (const Axis axis : axes) {
    std::vector<std::string> lists;
    for (const RankList& group : grid.groups(axis)) lists.push_back(fmt::format("[{}]", fmt::join(group, " ")));
    text += fmt::format("{:<18} {}\n", to_string(axis), fmt::join(lists, " "));
    groups[std::string(to_string(axis))] = grid.groups(axis);
  }
  if (options.json) {
    print({{"ranks", std::move(ranks)}, {"groups", std::move(groups)}});
  } else {
    put(text);
  }
  return status_done;
}

}  // namespace accrue::cli

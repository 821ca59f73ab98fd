// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/upstream_defects.h"

#include <fmt/format.h>

#include "accrue/run/choice_names.h"
#include "accrue/run/spec_fields.h"
#include "defect_effects.h"
#include "json_text.h"

namespace accrue {

namespace {

constexpr UpstreamDefect defects[] = {
#include "differences_table.inc"  // written by CMake from the manual's page
};

Json json_of(const UpstreamDefect& defect, const DefectEffect& effect) {
  return {{"id", defect.id},
          {"system", defect.system},
          {"title", defect.title},
          {"upstream", defect.upstream},
          {"here", defect.here},
          {"concerns", effect.concerns},
          {"can_replay", effect.can_replay},
          {"replayed", effect.replayed},
          {"effect", effect.sentence}};
}

}  // namespace

std::span<const UpstreamDefect> upstream_defects() {
  return defects;
}

DefectEffect effect_of(const UpstreamDefect& defect, const RunPlan& plan) {
  const DefectMeaning* meaning = meaning_of(defect.id);
  if (meaning == nullptr) return {};
  if (!meaning->replay) return meaning->effect(plan);
  const Dialect dialect = plan.spec.accumulation.dialect;
  if (!has_defect(dialect, *meaning->replay))
    return {.sentence = fmt::format("Nothing: the dialect is {}, whose original does not have it.", to_name(dialect))};
  DefectEffect effect = meaning->effect(plan);
  effect.can_replay = true;
  effect.replayed = plan.knobs.replays(*meaning->replay);
  return effect;
}

std::string replay_setting(const UpstreamDefect& defect, const RunSpec& spec, bool on) {
  const DefectMeaning* meaning = meaning_of(defect.id);
  if (meaning == nullptr || defect.setting.empty()) return {};
  if (!meaning->replay) {
    const std::string_view key = defect.setting.substr(0, defect.setting.find('='));
    const SpecField* field = find_field(key);
    return on || field == nullptr ? std::string(defect.setting)
                                  : fmt::format("{}={}", key, format_value(field->get(RunSpec())));
  }
  std::vector<std::string> names = spec.accumulation.replay;
  std::erase(names, defect.id);
  if (on) names.emplace_back(defect.id);
  return "accumulation.replay=" + format_value(names);
}

std::string differences_report(const RunPlan& plan) {
  std::string out = "What the originals would do otherwise with this spec\n";
  for (const UpstreamDefect& defect : defects) {
    const DefectEffect effect = effect_of(defect, plan);
    out += fmt::format("\n{}  {} ({})\n    there: {}\n    here: {}\n    {}{}\n", defect.id, defect.title, defect.system,
                       defect.upstream, defect.here, effect.concerns ? "this spec: " : "", effect.sentence);
    if (effect.replayed)
      out += "    This run does as upstream.\n";
    else if (effect.can_replay)
      out += fmt::format("    --set '{}' does as upstream.\n", replay_setting(defect, plan.spec, true));
  }
  return out;
}

std::string differences_json(const RunPlan& plan) {
  Json list = Json::array();
  for (const UpstreamDefect& defect : defects) list.push_back(json_of(defect, effect_of(defect, plan)));
  return json_text(list, 2);
}

}  // namespace accrue

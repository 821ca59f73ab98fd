// SPDX-License-Identifier: GPL-3.0-or-later
#include "form_sections.h"

#include <algorithm>
#include <iterator>

#include "accrue/run/megatron/megatron_fields.h"
#include "kit/text.h"

namespace accrue::ui {

namespace {

/// The plug-in has a section a group of its fields.
std::string_view megatronSection(MegatronGroup group) {
  static constexpr std::string_view names[] = {"megatron.layout",   "megatron.step",       "megatron.length",
                                               "megatron.schedule", "megatron.parameters", "megatron.data",
                                               "megatron.reports",  "megatron.hooks",      "megatron.others"};
  return names[static_cast<std::size_t>(group)];
}

}  // namespace

std::string_view sectionOf(const SpecField& field) {
  const MegatronField* plugin = field.section() == "megatron" ? find_megatron_field(field.name()) : nullptr;
  return plugin ? megatronSection(plugin->group) : field.section();
}

QString sectionTitle(std::string_view section) {
  if (section == "model") return tr("Model");
  if (section == "data") return tr("Data");
  if (section == "optimizer") return tr("Optimizer");
  if (section == "schedule") return tr("Learning-rate schedule");
  if (section == "accumulation") return tr("Accumulation");
  if (section == "parallel") return tr("Ranks");
  if (section == "launch") return tr("Launch");
  if (section == "run") return tr("Length and seed");
  if (section == "evaluate") return tr("Evaluation");
  if (section == "checkpoint") return tr("Checkpoints");
  if (section == "teaching") return tr("Deliberate faults");
  for (int group = 0; group <= static_cast<int>(MegatronGroup::others); ++group)
    if (section == megatronSection(static_cast<MegatronGroup>(group)))
      return tr("Megatron-LM: %1").arg(fromView(title(static_cast<MegatronGroup>(group))));
  return fromView(section);
}

int sectionOrder(std::string_view section) {
  static constexpr std::string_view order[] = {"accumulation", "model",    "data",     "optimizer",  "schedule",
                                               "run",          "parallel", "evaluate", "checkpoint", "launch"};
  const auto* at = std::find(std::begin(order), std::end(order), section);
  return static_cast<int>(at - std::begin(order));
}

}  // namespace accrue::ui

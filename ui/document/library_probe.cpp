// SPDX-License-Identifier: GPL-3.0-or-later
#include "library_probe.h"

#include <system_error>

#include "accrue/run/host/probe_plugins.h"
#include "kit/text.h"

namespace accrue::ui {

bool namesLibraries(const RunSpec& spec) {
  return !check_plugins(spec.megatron, {}).empty();
}

std::vector<PluginRecord> librariesOf(const RunSpec& spec, std::span<const PluginFacts> known) {
  return namesLibraries(spec) ? records_of(known) : std::vector<PluginRecord>();
}

std::vector<PluginFacts> LibraryProbe::describe(const std::vector<PluginRecord>& chosen) {
  std::vector<PluginFacts> all;
  for (const PluginRecord& each : chosen) {
    std::error_code ignored;
    const Stamp now{std::filesystem::last_write_time(each.file, ignored),
                    std::filesystem::file_size(each.file, ignored)};
    Answer& answer = answers_[each.file];
    const bool same = answer.chosen == each.sha256 || (answer.chosen.empty() && answer.facts.sha256 == each.sha256);
    if (answer.facts.file.empty() || answer.stamp != now || !same) answer = {now, each.sha256, ask(each)};
    all.push_back(answer.facts);
  }
  return all;
}

PluginFacts LibraryProbe::ask(const PluginRecord& chosen) const {
  const auto unusable = [&chosen](const QString& why) {
    return PluginFacts{chosen.file, chosen.name, chosen.sha256, {}, why.toStdString()};
  };
  const QString changed = tr("it has changed since it was chosen, and is not loaded until it is chosen again");
  const auto now = sha256_of_file(chosen.file);
  if (!now) return unusable(tr("it %1").arg(QString::fromStdString(now.error().message)));
  if (!chosen.sha256.empty() && *now != chosen.sha256) return unusable(changed);
  PluginFacts facts = describe_plugins(rank_program_, {chosen.file}).front();
  if (facts.sha256.empty()) facts.sha256 = *now;  // accrue-rank could not tell
  return facts.sha256 == *now ? facts : unusable(changed);
}

}  // namespace accrue::ui

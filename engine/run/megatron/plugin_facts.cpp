// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/plugin_facts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "accrue/run/megatron_fields.h"
#include "accrue/run/run_spec.h"
#include "accrue/run/sha256.h"
#include "accrue/run/system_error.h"
#include "json_limits.h"
#include "spec_text.h"

namespace accrue {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PluginEntry, field, name)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PluginFacts, file, name, sha256, entries, error)

namespace {

/// "focal, smooth", or that there is none.
std::string names_for(std::span<const PluginFacts> libraries, std::string_view field) {
  std::string all;
  for (const PluginFacts& library : libraries)
    for (const PluginEntry& each : library.entries)
      if (each.field == field) all += (all.empty() ? "" : ", ") + each.name;
  return all.empty() ? "nothing is registered for it" : "one of " + all;
}

/// Whether one of the libraries has the name.
void check_name(const MegatronField& field, const std::string& name, std::span<const PluginFacts> libraries,
                std::vector<Finding>& findings) {
  std::vector<std::string_view> known;
  for (const PluginFacts& library : libraries)
    for (const PluginEntry& each : library.entries)
      if (each.field == field.name) known.push_back(each.name);
  if (std::ranges::find(known, name) != known.end()) return;
  Finding finding{.key = std::string(field.key),
                  .message = "names what a plug-in library registers, and none was given",
                  .found = spec_detail::in_quotes(name),
                  .expected = "accrue-run with --plugin FILE"};
  if (!libraries.empty()) {
    finding.message = "names what no plug-in library registers";
    const std::string_view nearest = spec_detail::nearest_of(known, name);
    finding.expected = nearest.empty() ? names_for(libraries, field.name) : spec_detail::in_quotes(nearest);
    if (!nearest.empty()) finding.fix_value = std::string(nearest);
  }
  findings.push_back(std::move(finding));
}

/// Names that two of the libraries have.
void check_twice(std::span<const PluginFacts> libraries, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < libraries.size(); ++i)
    for (const PluginEntry& each : libraries[i].entries)
      for (std::size_t other = i + 1; other < libraries.size(); ++other)
        if (std::ranges::find(libraries[other].entries, each) != libraries[other].entries.end())
          findings.push_back({.message = "two plug-in libraries register " + each.field + " \"" + each.name + "\"",
                              .found = libraries[i].file + " and " + libraries[other].file,
                              .expected = "one of the two"});
}

}  // namespace

std::string to_json(std::span<const PluginFacts> libraries) {
  const nlohmann::json json = std::vector<PluginFacts>(libraries.begin(), libraries.end());
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::vector<PluginFacts>> plugin_facts_from_json(const std::string& text) {
  const auto damaged = [](const std::string& what) {
    return fail(ErrorCode::protocol, "what the plug-in libraries register cannot be read: " + what,
                "accrue-rank plugins", "Use an accrue-rank of this version.");
  };
  if (json_depth(text) > max_json_depth) return damaged("nested too deeply");
  try {
    return nlohmann::json::parse(text).get<std::vector<PluginFacts>>();
  } catch (const nlohmann::json::exception& error) {
    return damaged(error.what());
  }
}

std::vector<Finding> check_plugins(const MegatronSpec& spec, std::span<const PluginFacts> libraries) {
  std::vector<Finding> findings;
  for (const PluginFacts& library : libraries)
    if (!library.error.empty())
      findings.push_back({.message = "the plug-in library cannot be used: " + library.error, .found = library.file});
  if (has_errors(findings)) return findings;
  check_twice(libraries, findings);
  RunSpec holder;
  holder.megatron = spec;
  for (const MegatronField& field : megatron_fields()) {
    if (field.group != MegatronGroup::hooks) continue;
    const SpecValue value = field.spec_field().get(holder);
    if (const auto* name = std::get_if<std::string>(&value)) check_name(field, *name, libraries, findings);
  }
  return findings;
}

std::vector<PluginRecord> records_of(std::span<const PluginFacts> libraries) {
  std::vector<PluginRecord> records;
  for (const PluginFacts& each : libraries) records.push_back({each.file, each.name, each.sha256});
  return records;
}

Result<std::string> sha256_of_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const auto unreadable = [&file](const std::string& why) {
    return fail(ErrorCode::disk, "cannot be read: " + why, file.string(), "Check the path");
  };
  if (!stream) return unreadable(system_words(errno));
  Sha256 sum;
  std::array<char, 1 << 16> buffer{};
  while (stream.read(buffer.data(), buffer.size()) || stream.gcount() > 0)
    sum.update(buffer.data(), static_cast<std::size_t>(stream.gcount()));
  if (stream.bad()) return unreadable("an input error");
  return sum.hex();
}

Result<void> check_unchanged(std::span<const PluginRecord> recorded) {
  for (const PluginRecord& each : recorded) {
    const auto now = sha256_of_file(each.file);
    if (now && *now == each.sha256) continue;
    const std::string what = "the plug-in library \"" + each.name + "\" ";
    return fail(ErrorCode::config,
                now ? what + "is another than the run began with: its SHA-256 is " + *now + ", the run's record says " +
                          each.sha256
                    : what + "is not there any more",
                each.file, "Put the library back as it was, or start a new run.");
  }
  return {};
}

}  // namespace accrue

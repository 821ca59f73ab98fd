// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/megatron/plugin_facts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <utility>

#include "accrue/run/base/sha256.h"
#include "accrue/run/base/system_error.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/megatron/megatron_fields.h"
#include "json_text.h"
#include "spec_text.h"

namespace accrue {

namespace {

Json json_of(const PluginFacts& library) {
  Json entries = Json::array();
  for (const PluginEntry& each : library.entries) {
    Json entry = {{"field", each.field}, {"name", each.name}};
    if (each.sizes) entry["samples"] = {each.sizes->training, each.sizes->validation};
    entries.push_back(std::move(entry));
  }
  return {{"file", library.file},
          {"name", library.name},
          {"sha256", library.sha256},
          {"entries", std::move(entries)},
          {"error", library.error}};
}

PluginFacts facts_from(const Json& json) {
  PluginFacts library;
  json.at("file").get_to(library.file);
  json.at("name").get_to(library.name);
  json.at("sha256").get_to(library.sha256);
  for (const Json& each : json.at("entries")) {
    PluginEntry& entry =
        library.entries.emplace_back(each.at("field").get<std::string>(), each.at("name").get<std::string>());
    if (each.contains("samples")) {
      const auto [training, validation] = each.at("samples").get<std::pair<std::int64_t, std::int64_t>>();
      entry.sizes = DatasetSizes{training, validation};
    }
  }
  json.at("error").get_to(library.error);
  return library;
}

/// Returns "focal, smooth", or that there is none.
std::string names_for(std::span<const PluginFacts> libraries, std::string_view field) {
  std::string all;
  for (const PluginFacts& library : libraries)
    for (const PluginEntry& each : library.entries)
      if (each.field == field) all += (all.empty() ? "" : ", ") + each.name;
  return all.empty() ? "nothing is registered for it" : "one of " + all;
}

/// Checks that one of the libraries has the name.
void check_name(const MegatronField& field, const std::string& name, std::span<const PluginFacts> libraries,
                std::vector<Finding>& findings) {
  if (find_entry(libraries, field.name, name) != nullptr) return;
  std::vector<std::string_view> known;
  for (const PluginFacts& library : libraries)
    for (const PluginEntry& each : library.entries)
      if (each.field == field.name) known.push_back(each.name);
  Finding finding{.key = std::string(field.key),
                  .message = "names what a plug-in library registers, and none was given",
                  .found = spec_detail::in_quotes(name),
                  .expected = "--plugin FILE; in the studio: Tools, Choose plug-in libraries"};
  if (!libraries.empty()) {
    finding.message = "is a name that no plug-in library registers";
    const std::string_view nearest = spec_detail::nearest_of(known, name);
    finding.expected = nearest.empty() ? names_for(libraries, field.name) : spec_detail::in_quotes(nearest);
    if (!nearest.empty()) finding.fix_value = std::string(nearest);
  }
  findings.push_back(std::move(finding));
}

/// Reports names that two libraries have.
void check_twice(std::span<const PluginFacts> libraries, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < libraries.size(); ++i)
    for (const PluginEntry& each : libraries[i].entries)
      for (std::size_t other = i + 1; other < libraries.size(); ++other)
        if (find_entry({&libraries[other], 1}, each.field, each.name) != nullptr)
          findings.push_back({.message = "two plug-in libraries register " + each.field + " \"" + each.name + "\"",
                              .found = libraries[i].file + " and " + libraries[other].file,
                              .expected = "one of the two"});
}

}  // namespace

std::string to_json(std::span<const PluginFacts> libraries) {
  Json list = Json::array();
  for (const PluginFacts& library : libraries) list.push_back(json_of(library));
  return json_text(list);
}

Result<std::vector<PluginFacts>> plugin_facts_from_json(const std::string& text) {
  const auto damaged = [](const std::string& what) {
    return fail(ErrorCode::protocol, "what the plug-in libraries register cannot be read: " + what,
                "accrue-rank plugins", "Use an accrue-rank of this version.");
  };
  const Json list = parse_json(text);
  if (!list.is_array()) return damaged("it is no list");
  try {
    std::vector<PluginFacts> libraries;
    for (const Json& each : list) libraries.push_back(facts_from(each));
    return libraries;
  } catch (const Json::exception& error) {
    return damaged(error.what());
  }
}

const PluginEntry* find_entry(std::span<const PluginFacts> libraries, std::string_view field, std::string_view name) {
  for (const PluginFacts& library : libraries)
    for (const PluginEntry& each : library.entries)
      if (each.field == field && each.name == name) return &each;
  return nullptr;
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
    return fail(
        ErrorCode::config,
        now ? what + "is another than the run began with: its SHA-256 is " + *now + ", the run's record says " +
                  each.sha256
            : what + "is not there any more",
        each.file,
        "Put the library back as it was, say where it is now with accrue-run resume DIR --plugin FILE, or start "
        "a new run.");
  }
  return {};
}

}  // namespace accrue

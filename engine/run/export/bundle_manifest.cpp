// SPDX-License-Identifier: Apache-2.0
#include "bundle_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/version.h"
#include "accrue/run/preflight/run_order.h"
#include "bundle_archive.h"
#include "json_text.h"
#include "lower_case.h"

namespace accrue {

namespace {

constexpr int bundle_version = 1;
constexpr std::string_view runs_folder = "runs/";
constexpr std::string_view weights_folder = "final/";
constexpr std::size_t most_runs = 1'000;
constexpr std::size_t most_files = 10'000;
constexpr std::size_t longest_run_id = 48;
constexpr std::size_t longest_weight_file = 40;
constexpr std::int64_t largest_text = std::int64_t{1} << 20;     // of the spec and the notes
constexpr std::int64_t largest_record = std::int64_t{64} << 20;  // of the spec and the summary of a run
constexpr std::int64_t largest_events = std::int64_t{1} << 30;
constexpr std::int64_t largest_bundle = std::int64_t{256} << 30;
// Events compress to a tenth, weights not at all. A claim of far more is an attack on the disk.
constexpr std::int64_t largest_ratio = 200;
constexpr std::int64_t free_of_ratio = std::int64_t{64} << 20;

bool is_name_character(char each) {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') || each == '-' ||
         each == '_' || each == '.';
}

bool is_name(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && text.front() != '.' && std::ranges::all_of(text, is_name_character);
}

bool is_hash(std::string_view text) {
  constexpr std::size_t digits = 64;
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class ManifestReader {
 public:
  ManifestReader(std::int64_t file_bytes, const std::string& where) : file_bytes_(file_bytes), where_(where) {}

  Result<BundleManifest> read(const std::string& text) {
    const Json json = parse_json(text);
    if (!json.is_object() || !json.contains("accrue_bundle")) return refused("is not a bundle of Accrue");
    if (const Json& version = json["accrue_bundle"]; version != bundle_version)
      return fail(ErrorCode::protocol,
                  fmt::format("is a bundle of version {}, and this Accrue reads version {}",
                              quotable(json_ascii(version)), bundle_version),
                  where_, "Import it with a newer Accrue");
    BundleManifest manifest;
    if (auto taken = take_runs(json, manifest); !taken) return tl::unexpected(taken.error());
    if (auto taken = take_files(json, manifest); !taken) return tl::unexpected(taken.error());
    return manifest;
  }

 private:
  tl::unexpected<Error> refused(std::string what) const {
    return fail(ErrorCode::protocol, std::move(what), where_, "Ask for the bundle again; nothing was imported");
  }

  Result<void> take_runs(const Json& json, BundleManifest& manifest) {
    const auto runs = json.find("runs");
    if (runs == json.end() || !runs->is_array()) return refused("its manifest lists no runs");
    if (runs->size() > most_runs)
      return refused(fmt::format("its manifest lists {} runs; a bundle holds at most {}", runs->size(), most_runs));
    for (const Json& each : *runs) {
      if (!each.is_object()) return refused("its manifest lists a run that is none");
      const auto id = each.find("run_id");
      const auto name = each.find("name");
      if (id == each.end() || !id->is_string() || !is_portable_id(id->get<std::string>()))
        return refused(fmt::format("holds a run whose id cannot name a folder: {}",
                                   id == each.end() ? "none" : quotable(json_ascii(*id))));
      ManifestRun run{.run_id = id->get<std::string>()};
      if (name != each.end() && name->is_string()) run.name = quotable(name->get<std::string>());
      if (!ids_.insert(lowered(run.run_id)).second) return refused(fmt::format("holds the run {} twice", run.run_id));
      manifest.runs.push_back(std::move(run));
    }
    return {};
  }

  Result<void> take_files(const Json& json, BundleManifest& manifest) {
    const auto files = json.find("files");
    if (files == json.end() || !files->is_array()) return refused("its manifest lists no files");
    if (files->size() > most_files)
      return refused(fmt::format("its manifest lists {} files; a bundle holds at most {}", files->size(), most_files));
    for (const Json& each : *files) {
      if (!each.is_object()) return refused("its manifest lists a file that is none");
      auto file = file_of(each);
      if (!file) return tl::unexpected(file.error());
      manifest.files.push_back(std::move(*file));
    }
    const std::int64_t total = manifest.content_bytes();
    if (total > largest_bundle || total - free_of_ratio > largest_ratio * file_bytes_)
      return refused(fmt::format("says that it holds {} in a file of {}, which no bundle does", format_bytes(total),
                                 format_bytes(file_bytes_)));
    return {};
  }

  Result<ManifestFile> file_of(const Json& each) {
    const auto entry = each.find("path");
    const auto bytes = each.find("bytes");
    const auto hash = each.find("sha256");
    if (entry == each.end() || !entry->is_string()) return refused("its manifest lists a file without a path");
    ManifestFile file{.entry = entry->get<std::string>()};
    const std::string shown = quotable(file.entry);
    const std::int64_t limit = largest_size(file.entry);
    if (limit == 0) return refused(fmt::format("names \"{}\", which is no file of a bundle", shown));
    if (const std::string run = run_of(file.entry); !run.empty() && !ids_.contains(lowered(run)))
      return refused(fmt::format("names \"{}\" of a run that it does not list", shown));
    if (!entries_.insert(lowered(file.entry)).second) return refused(fmt::format("names \"{}\" twice", shown));
    if (bytes == each.end() || !bytes->is_number_unsigned() || bytes->get<std::uint64_t>() > std::uint64_t(limit))
      return refused(fmt::format("\"{}\" has a size that no bundle holds: {}", shown,
                                 bytes == each.end() ? "none" : quotable(json_ascii(*bytes))));
    if (hash == each.end() || !hash->is_string() || !is_hash(hash->get<std::string>()))
      return refused(fmt::format("\"{}\" has no SHA-256", shown));
    file.bytes = bytes->get<std::int64_t>();
    file.sha256 = hash->get<std::string>();
    return file;
  }

  std::int64_t file_bytes_;
  const std::string& where_;
  std::set<std::string> ids_;      ///< case-insensitive: folders must differ on any disk
  std::set<std::string> entries_;  ///< likewise
};

}  // namespace

std::int64_t BundleManifest::content_bytes() const {
  std::int64_t sum = 0;
  for (const ManifestFile& file : files) sum += file.bytes;
  return sum;
}

bool is_portable_id(std::string_view run_id) {
  return is_name(run_id, longest_run_id);
}

bool is_weight_file(std::string_view name) {
  return is_name(name, longest_weight_file) && name.ends_with(".safetensors");
}

bool begins_as_weights(std::string_view bytes) {
  constexpr std::size_t length_bytes = 8;
  constexpr std::uint64_t largest_header = 100'000'000;
  if (bytes.size() <= length_bytes) return false;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return length <= largest_header && bytes[length_bytes] == '{';
}

std::int64_t largest_size(std::string_view entry) {
  if (entry == spec_entry || entry == layout_entry || entry == notes_entry) return largest_text;
  const std::string place = place_of(entry);
  if (run_of(entry).empty()) return 0;
  if (place == "events.jsonl") return largest_events;
  if (place == "plan.json") return static_cast<std::int64_t>(max_plan_bytes);
  if (std::ranges::find(record_files, place) != std::end(record_files)) return largest_record;
  return place.starts_with(weights_folder) && is_weight_file(place.substr(weights_folder.size())) ? largest_entry : 0;
}

std::string run_entry(std::string_view run_id, std::string_view file) {
  return fmt::format("{}{}/{}", runs_folder, run_id, file);
}

std::string run_of(std::string_view entry) {
  if (!entry.starts_with(runs_folder)) return {};
  entry.remove_prefix(runs_folder.size());
  const auto slash = entry.find('/');
  const std::string_view id = entry.substr(0, slash);
  return slash != std::string_view::npos && is_portable_id(id) ? std::string(id) : std::string();
}

std::string place_of(std::string_view entry) {
  if (!entry.starts_with(runs_folder)) return std::string(entry);
  entry.remove_prefix(runs_folder.size());
  return std::string(entry.substr(std::min(entry.find('/'), entry.size() - 1) + 1));
}

std::string to_json(const BundleManifest& manifest) {
  Json json = {{"accrue_bundle", bundle_version}, {"accrue", version()}};
  json["runs"] = Json::array();
  for (const ManifestRun& run : manifest.runs) json["runs"].push_back({{"run_id", run.run_id}, {"name", run.name}});
  json["files"] = Json::array();
  for (const ManifestFile& file : manifest.files)
    json["files"].push_back({{"path", file.entry}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return json_text(json, 1) + "\n";
}

Result<BundleManifest> read_manifest(const std::string& text, std::int64_t file_bytes, const std::string& where) {
  return ManifestReader(file_bytes, where).read(text);
}

}  // namespace accrue

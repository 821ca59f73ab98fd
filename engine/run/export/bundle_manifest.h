// SPDX-License-Identifier: Apache-2.0
// What a bundle says of itself in its first entry. A manifest that was read names no file but those of a run's record,
// final weights, and the three of the studio; all its sizes lie within the limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

inline constexpr std::string_view manifest_entry = "manifest.json";
inline constexpr std::string_view spec_entry = "spec.accrue";
inline constexpr std::string_view notes_entry = "notes.json";
/// The layout of a window, in older bundles. It is ignored.
inline constexpr std::string_view layout_entry = "layout.json";
inline constexpr std::int64_t max_manifest_bytes = std::int64_t{4} << 20;

/// What of a run's folder is its record, in the order in which a bundle carries it.
inline constexpr std::string_view record_files[] = {"spec.toml", "plan.json", "events.jsonl", "summary.json"};

struct ManifestRun {
  std::string run_id;
  std::string name;
};

struct ManifestFile {
  std::string entry;  ///< "runs/ID/events.jsonl"
  std::int64_t bytes = 0;
  std::string sha256;
};

struct BundleManifest {
  std::vector<ManifestRun> runs;
  std::vector<ManifestFile> files;  ///< in the order of the entries

  std::int64_t content_bytes() const;
};

/// Whether a run's id can name a folder on any system, and an entry.
bool is_portable_id(std::string_view run_id);
/// Whether a bundle carries a file of this name of a run's final/.
bool is_weight_file(std::string_view name);
/// Whether a file begins as final weights do: with the length of a header that is a JSON object. What a loader of
/// programs would take begins otherwise.
bool begins_as_weights(std::string_view bytes);
/// The largest size that an entry of this name may have; 0 if no bundle has it.
std::int64_t largest_size(std::string_view entry);
std::string run_entry(std::string_view run_id, std::string_view file);
/// The run that an entry belongs to; empty for those of the studio.
std::string run_of(std::string_view entry);
/// The entry's place in the run's folder.
std::string place_of(std::string_view entry);

std::string to_json(const BundleManifest& manifest);
/// `file_bytes`: of the whole bundle, compressed. Errors (protocol): no manifest, a newer version, a name that no
/// bundle has, a name twice, sizes beyond the limits; each names the entry. `where` says which file they are about.
Result<BundleManifest> read_manifest(const std::string& text, std::int64_t file_bytes, const std::string& where);

}  // namespace accrue

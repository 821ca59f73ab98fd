// SPDX-License-Identifier: Apache-2.0
// Description of a bundle in its first entry. An accepted manifest names only files of a run's record, final weights,
// and the three files of the studio; all sizes are within the limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

inline constexpr std::string_view manifest_entry = "manifest.json";
inline constexpr std::string_view spec_entry = "spec.accrue";
inline constexpr std::string_view notes_entry = "notes.json";
/// The layout of a window, in older bundles. It is ignored.
inline constexpr std::string_view layout_entry = "layout.json";
inline constexpr std::int64_t max_manifest_bytes = std::int64_t{4} << 20;

/// Files of a run's record, in the order of a bundle.
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
/// Whether a bundle carries this file of a run's final/.
bool is_weight_file(std::string_view name);
/// Whether a file begins like final weights: with the length of a header that is a JSON object. Files that would load
/// code begin differently.
bool begins_as_weights(std::string_view bytes);
/// Maximum size of an entry with this name; 0 if no bundle has it.
std::int64_t largest_size(std::string_view entry);
std::string run_entry(std::string_view run_id, std::string_view file);
/// Run of an entry; empty for entries of the studio.
std::string run_of(std::string_view entry);
/// Path of the entry in the run's folder.
std::string place_of(std::string_view entry);

std::string to_json(const BundleManifest& manifest);
/// `file_bytes`: compressed size of the whole bundle. Errors (protocol): no manifest, a newer version, an unknown name,
/// a duplicate name, sizes beyond the limits; each names the entry. `where` names the file in errors.
Result<BundleManifest> read_manifest(const std::string& text, std::int64_t file_bytes, const std::string& where);

}  // namespace accrue

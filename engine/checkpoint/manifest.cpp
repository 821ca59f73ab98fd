// SPDX-License-Identifier: Apache-2.0
// A bounded, strict reader: a field is used only after its type was checked. File names are not taken from the manifest
// but compared with the only possible ones.
#include "checkpoint/manifest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "run/base/json_number.h"
#include "run/base/json_text.h"

namespace accrue {
namespace {

constexpr const char* schema_name = "accrue-checkpoint";
constexpr int schema_version = 3;
constexpr const char* self_hash_key = "manifest_xxh3";
constexpr std::uintmax_t max_manifest_bytes = 1 << 20;
/// Counts are sent between ranks as doubles, which are exact for integers up to here.
constexpr std::int64_t max_count = std::int64_t{1} << 53;
/// Like accumulation.steps.
constexpr std::int64_t max_steps = 1 << 20;
constexpr const char* earlier_hint = "The checkpoint is damaged or incomplete: an earlier one can be used.";

tl::unexpected<Error> damaged(std::string what) {
  return fail(ErrorCode::protocol, std::move(what), "manifest.json", earlier_hint);
}

/// Reader of typed members; remembers the first that is missing or of another type.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  void read(const char* key, std::int64_t& to) {
    const Json* value = find(key);
    if (value && value->is_number_integer())
      to = value->get<std::int64_t>();
    else
      note(key);
  }
  void read(const char* key, std::string& to) {
    const Json* value = find(key);
    if (value && value->is_string())
      to = value->get<std::string>();
    else
      note(key);
  }
  void read(const char* key, bool& to) {
    const Json* value = find(key);
    if (value && value->is_boolean())
      to = value->get<bool>();
    else
      note(key);
  }
  void read(const char* key, double& to) {
    const Json* value = find(key);
    if (const auto number = value ? read_json_number(*value) : std::nullopt)
      to = *number;
    else
      note(key);
  }
  const std::string& missing() const { return missing_; }

 private:
  const Json* find(const char* key) const {
    const auto found = object_.is_object() ? object_.find(key) : object_.end();
    return object_.is_object() && found != object_.end() ? &*found : nullptr;
  }
  void note(const char* key) {
    if (missing_.empty()) missing_ = key;
  }

  const Json& object_;
  std::string missing_;
};

/// Every member of the two structs under its own name; the writer and the reader share the list.
template <typename Visit>
void visit_cursor(TrainingCursor& c, Visit&& visit) {
  visit("optimizer_steps", c.optimizer_steps);
  visit("samples", c.samples);
  visit("tokens", c.tokens);
  visit("seconds", c.seconds);
  visit("loss", c.loss);
  visit("finite", c.finite);
}

/// Members that earlier versions did not write.
template <typename Visit>
void visit_skipped(TrainingCursor& c, Visit&& visit) {
  visit("empty_windows", c.empty_windows);
  visit("overflowed_windows", c.overflowed_windows);
  visit("best_update", c.evaluations.best_update);
  visit("best_loss", c.evaluations.best_loss);
  visit("unimproved_evaluations", c.evaluations.unimproved);
  visit("kept_update", c.evaluations.kept_update);
  visit("evaluation_due", c.evaluations.due);
}

template <typename Visit>
void visit_window(TrainingCursor& c, Visit&& visit) {
  for_each_field(c.window, visit);
  visit("loss_scale", c.loss_scale);
  visit("scale_growth", c.scale_growth);
  visit("scale_overflows", c.scale_overflows);
}

template <typename Visit>
void visit_identity(CheckpointIdentity& i, Visit&& visit) {
  visit("spec_sha256", i.spec_sha256);
  visit("data_fingerprint", i.data_fingerprint);
  visit("world", i.world);
  visit("replicas", i.replicas);
  visit("threads_per_rank", i.threads_per_rank);
  visit("torch_version", i.torch_version);
  visit("cpu_capability", i.cpu_capability);
}

struct Put {
  Json& object;
  void operator()(const char* key, double value) const { object[key] = json_number(value); }
  template <typename T>
  void operator()(const char* key, const T& value) const {
    object[key] = value;
  }
};

std::string hex_of(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  std::string text;
  for (const unsigned char byte : bytes.digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// Hash of the whole manifest except this hash itself: a flipped digit in the cursor must be detected.
std::string self_hash(Json json) {
  json.erase(self_hash_key);
  const std::string text = json_text(json);
  return hex_of(XXH3_128bits(text.data(), text.size()));
}

/// Search for the first number that no run can have reached; empty if there is none.
class PlausibleCounts {
 public:
  explicit PlausibleCounts(const char* section) : section_(section) {}
  void operator()(const char* key, std::int64_t value) {
    if (value < 0 || value > max_count) note(key, std::to_string(value));
  }
  void operator()(const char*, const std::string&) {}
  void operator()(const char*, bool) {}
  /// Losses may have any value; times and scales are not negative.
  void operator()(const char* key, double value) {
    if (std::string_view(key) == "loss" || std::string_view(key) == "best_loss") return;
    if (!std::isfinite(value) || value < 0.0) note(key, std::to_string(value));
  }
  const std::string& problem() const { return problem_; }

 private:
  void note(const char* key, const std::string& value) {
    if (problem_.empty()) problem_ = std::string("\"") + section_ + "." + key + "\" is " + value;
  }
  const char* section_;
  std::string problem_;
};

/// Returns counts of one run that contradict each other.
std::string contradiction(const TrainingCursor& c) {
  const WindowPosition& at = c.window;
  if (at.updates() > at.micro_step()) return "\"window.updates\" is beyond \"window.micro_step\"";
  if (c.optimizer_steps > at.updates()) return "\"cursor.optimizer_steps\" is beyond \"window.updates\"";
  if (c.empty_windows + c.overflowed_windows > at.updates())
    return "\"cursor.empty_windows\" and \"cursor.overflowed_windows\" are beyond \"window.updates\"";
  if (std::max({c.evaluations.best_update, c.evaluations.kept_update, c.evaluations.unimproved}) > at.updates())
    return "\"cursor.best_update\", \"kept_update\" or \"unimproved_evaluations\" is beyond \"window.updates\"";
  if (at.position() > at.micro_step()) return "\"window.position\" is beyond \"window.micro_step\"";
  if (at.counter() > at.micro_step()) return "\"window.counter\" is beyond \"window.micro_step\"";
  if (at.skipped_samples() > at.passed_samples()) return "\"window.skipped_samples\" is beyond \"window.samples\"";
  if (at.steps() > max_steps) return "\"window.steps\" is beyond the longest window";
  if (at.next_steps() > max_steps) return "\"window.next_steps\" is beyond the longest window";
  return {};
}

/// Returns damage that the manifest's own hash does not reveal.
std::string implausible(Manifest& manifest) {
  PlausibleCounts cursor("cursor");
  visit_cursor(manifest.cursor, cursor);
  visit_skipped(manifest.cursor, cursor);
  PlausibleCounts window("window");
  visit_window(manifest.cursor, window);
  PlausibleCounts identity("identity");
  visit_identity(manifest.identity, identity);
  for (const PlausibleCounts* counts : {&cursor, &window, &identity})
    if (!counts->problem().empty()) return counts->problem();
  if (!std::isfinite(manifest.cursor.evaluations.best_loss)) return "\"cursor.best_loss\" is not a number";
  if (!std::isfinite(manifest.cursor.frozen_lr)) return "\"window.frozen_lr\" is not a number";
  return contradiction(manifest.cursor);
}

std::optional<std::string> hash_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> block(1 << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
    XXH3_128bits_update(state.get(), block.data(), static_cast<std::size_t>(in.gcount()));
  if (in.bad()) return std::nullopt;
  return hex_of(XXH3_128bits_digest(state.get()));
}

Result<std::vector<ManifestFile>> parse_files(const Json& list, std::int64_t world) {
  if (world < 1 || !list.is_array() || static_cast<std::int64_t>(list.size()) != world)
    return damaged("the file list does not name one shard for each of " + std::to_string(world) + " ranks");
  std::vector<ManifestFile> files;
  for (const Json& entry : list) {
    ManifestFile file;
    Fields fields(entry);
    fields.read("name", file.name);
    fields.read("bytes", file.bytes);
    fields.read("xxh3", file.xxh3);
    if (file.bytes < 0) return damaged("\"files.bytes\" is " + std::to_string(file.bytes));
    if (!fields.missing().empty()) return damaged("files: \"" + fields.missing() + "\" is missing or mistyped");
    if (file.name != shard_name(static_cast<std::int64_t>(files.size())))
      return damaged("the file list names \"" + file.name + "\" where " +
                     shard_name(static_cast<std::int64_t>(files.size())) + " belongs");
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::string shard_name(std::int64_t rank) {
  return "shard-" + std::to_string(rank) + ".safetensors";
}

std::string to_json(const Manifest& manifest) {
  Manifest copy = manifest;
  Json cursor = Json::object(), window = Json::object(), identity = Json::object(), files = Json::array();
  visit_cursor(copy.cursor, Put{cursor});
  visit_skipped(copy.cursor, Put{cursor});
  visit_window(copy.cursor, Put{window});
  if (copy.cursor.frozen_lr >= 0.0) window["frozen_lr"] = copy.cursor.frozen_lr;
  visit_identity(copy.identity, Put{identity});
  for (const ManifestFile& file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.xxh3}});
  // Assembled last: an object of ordered JSON moves its contents when it grows.
  Json json{{"schema", schema_name},       {"version", schema_version},       {"cursor", std::move(cursor)},
            {"window", std::move(window)}, {"identity", std::move(identity)}, {"files", std::move(files)}};
  json[self_hash_key] = self_hash(json);
  return json_text(json, 2) + "\n";
}

namespace {

/// Checks that this is an unaltered manifest of the supported format.
Result<void> check_head(const Json& json) {
  if (!json.is_object()) return damaged("it is not a JSON object");
  const auto stated = json.find(self_hash_key);
  if (stated == json.end() || *stated != self_hash(json)) return damaged("its content does not match its own hash");
  std::string schema;
  std::int64_t version = 0;
  Fields head(json);
  head.read("schema", schema);
  head.read("version", version);
  if (schema == schema_name && version == schema_version) return {};
  return fail(ErrorCode::config,
              "the checkpoint is \"" + schema + "\" version " + std::to_string(version) +
                  ", and this program reads \"" + schema_name + "\" version " + std::to_string(schema_version),
              "manifest.json", "Continue this run with the version of Accrue that began it, or start a new run.");
}

}  // namespace

Result<Manifest> parse_manifest(const std::string& text) {
  const Json json = parse_json(text);
  if (json.is_discarded() && json_depth(text) > max_json_depth)
    return damaged("it is nested deeper than " + std::to_string(max_json_depth) + " levels");
  if (auto head = check_head(json); !head) return tl::unexpected(head.error());
  Manifest manifest;
  for (const char* section : {"cursor", "window", "identity", "files"})
    if (!json.contains(section)) return damaged(std::string("\"") + section + "\" is missing");
  Fields cursor(json["cursor"]);
  visit_cursor(manifest.cursor, [&](const char* key, auto& value) { cursor.read(key, value); });
  visit_skipped(manifest.cursor, [&](const char* key, auto& value) {
    if (json["cursor"].contains(key)) cursor.read(key, value);
  });
  Fields window(json["window"]);
  visit_window(manifest.cursor, [&](const char* key, auto& value) { window.read(key, value); });
  if (json["window"].contains("frozen_lr")) window.read("frozen_lr", manifest.cursor.frozen_lr);
  Fields identity(json["identity"]);
  visit_identity(manifest.identity, [&](const char* key, auto& value) { identity.read(key, value); });
  for (const std::string& missing : {cursor.missing(), window.missing(), identity.missing()})
    if (!missing.empty()) return damaged("\"" + missing + "\" is missing or mistyped");
  if (const std::string problem = implausible(manifest); !problem.empty()) return damaged(problem);
  auto files = parse_files(json["files"], manifest.identity.world);
  if (!files) return tl::unexpected(files.error());
  manifest.files = std::move(*files);
  return manifest;
}

Result<Manifest> read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "manifest.json";
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return damaged("it cannot be read: " + error.message());
  if (bytes > max_manifest_bytes) return damaged("it is larger than 1 MiB");
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(bytes))) return damaged("it cannot be read");
  return parse_manifest(text);
}

Result<void> verify_files(const std::filesystem::path& folder, std::span<const ManifestFile> files) {
  for (const ManifestFile& file : files) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(folder / file.name, error);
    if (error) return fail(ErrorCode::protocol, "it cannot be read: " + error.message(), file.name, earlier_hint);
    if (static_cast<std::int64_t>(bytes) != file.bytes)
      return fail(ErrorCode::protocol,
                  "it has " + std::to_string(bytes) + " bytes where the manifest says " + std::to_string(file.bytes),
                  file.name, earlier_hint);
    const auto hash = hash_file(folder / file.name);
    if (!hash) return fail(ErrorCode::protocol, "it cannot be read", file.name, earlier_hint);
    if (*hash != file.xxh3)
      return fail(ErrorCode::protocol, "its content hash is " + *hash + ", the manifest says " + file.xxh3, file.name,
                  earlier_hint);
  }
  return {};
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "support/signed_checkpoint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace accrue::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* hash_key = "manifest_xxh3";

std::string xxh3(const std::string& text) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, XXH3_128bits(text.data(), text.size()));
  std::string hex;
  for (const unsigned char byte : bytes.digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace

std::string signed_manifest(const std::string& members) {
  return members.substr(0, members.size() - 1) + ",\"" + hash_key + "\":\"" + xxh3(members) + "\"}";
}

void resign_manifest(const fs::path& folder, const std::function<void(Json&)>& change) {
  const fs::path file = folder / "manifest.json";
  std::ifstream in(file, std::ios::binary);
  Json json = Json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
  json.erase(hash_key);
  change(json);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << signed_manifest(json.dump());
}

void rewrite_shard(const fs::path& folder, const std::string& file, const std::function<void(Archive&)>& change) {
  auto archive = read_archive(folder / file);
  if (!archive) throw std::runtime_error(archive.error().text());
  change(*archive);
  fs::remove(folder / file);
  const auto written = write_archive(folder / file, archive->tensors, archive->metadata);
  if (!written) throw std::runtime_error(written.error().text());
  resign_manifest(folder, [&](Json& json) {
    for (Json& entry : json["files"]) {
      if (entry["name"] != file) continue;
      entry["bytes"] = written->bytes;
      entry["xxh3"] = written->xxh3;
    }
  });
}

}  // namespace accrue::test

// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/dataset_sidecar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "json_text.h"
#include "posix_file.h"

namespace accrue {
namespace {

constexpr std::size_t most_bytes = std::size_t{16} << 20;
constexpr std::int64_t most_tokens = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_sentinels = 100000;

/// Tokens of a SpecialTokens, by name.
constexpr std::array<std::pair<const char*, std::int64_t SpecialTokens::*>, 6> token_names = {
    {{"cls", &SpecialTokens::cls},
     {"sep", &SpecialTokens::sep},
     {"mask", &SpecialTokens::mask},
     {"pad", &SpecialTokens::pad},
     {"bos", &SpecialTokens::bos},
     {"eos", &SpecialTokens::eos}}};

/// Runs of tokens that continue a word, as [first, count].
Json runs_of(const std::vector<bool>& flags) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < flags.size();) {
    std::size_t end = i;
    while (end < flags.size() && flags[end]) ++end;
    if (end > i) runs.push_back({i, end - i});
    i = end + 1;
  }
  return runs;
}

struct Damage {
  std::string what;
};

std::int64_t whole(const Json& json, const char* name, std::int64_t least, std::int64_t most) {
  const bool fits =
      json.is_number_integer() && !(json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX});
  if (!fits || json.get<std::int64_t>() < least || json.get<std::int64_t>() > most)
    throw Damage{fmt::format("\"{}\" is not a whole number from {} to {}", name, least, most)};
  return json.get<std::int64_t>();
}

const Json& member(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) throw Damage{fmt::format("\"{}\" is missing", name)};
  return *found;
}

const Json& list(const Json& json, const char* name, std::size_t most) {
  const Json& found = member(json, name);
  if (!found.is_array() || found.size() > most)
    throw Damage{fmt::format("\"{}\" is not a list of at most {}", name, most)};
  return found;
}

std::string text(const Json& json, const char* name) {
  const Json& found = member(json, name);
  if (!found.is_string()) throw Damage{fmt::format("\"{}\" is not a text", name)};
  return found.get<std::string>();
}

bool truth(const Json& json, const char* name) {
  const Json& found = member(json, name);
  if (!found.is_boolean()) throw Damage{fmt::format("\"{}\" is not true or false", name)};
  return found.get<bool>();
}

std::vector<bool> flags_of(const Json& runs, std::int64_t vocabulary) {
  std::vector<bool> flags;
  for (const Json& run : runs) {
    if (!run.is_array() || run.size() != 2) throw Damage{"\"continues\" has an entry that is not [first, count]"};
    const std::int64_t first = whole(run[0], "continues", 0, vocabulary - 1);
    const std::int64_t count = whole(run[1], "continues", 1, vocabulary - first);
    flags.resize(static_cast<std::size_t>(vocabulary), false);
    std::fill_n(flags.begin() + first, count, true);
  }
  return flags;
}

DatasetSidecar sidecar_from(const Json& json) {
  if (!json.is_object()) throw Damage{"it is not a JSON object"};
  whole(member(json, "accrue_dataset"), "accrue_dataset", 1, 1);
  DatasetSidecar sidecar;
  sidecar.tokenizer = text(json, "tokenizer");
  constexpr std::array names = {"bytes", "bpe", "sentencepiece", "unigram", "wordlevel", "wordpiece"};
  if (std::ranges::find(names, sidecar.tokenizer) == names.end())
    throw Damage{"\"tokenizer\" is not bytes, bpe, sentencepiece, unigram, wordlevel or wordpiece"};
  for (const Json& file : list(json, "files", 16)) {
    if (!file.is_object()) throw Damage{"\"files\" has an entry that is not an object"};
    sidecar.files.push_back({text(file, "path"), text(file, "sha256")});
  }
  SpecialTokens& special = sidecar.special;
  special.vocabulary = whole(member(json, "vocabulary"), "vocabulary", 1, most_tokens);
  for (const auto& [name, token] : token_names)
    special.*token = json.contains(name) ? whole(json[name], name, 0, special.vocabulary - 1) : -1;
  for (const Json& sentinel : list(json, "sentinels", most_sentinels))
    special.sentinels.push_back(whole(sentinel, "sentinels", 0, special.vocabulary - 1));
  special.continues = flags_of(list(json, "continues", most_bytes), special.vocabulary);
  if (json.contains("end_of_document"))
    sidecar.end_of_document = whole(json["end_of_document"], "end_of_document", 0, special.vocabulary - 1);
  sidecar.keep_case = json.contains("keep_case") && truth(json, "keep_case");
  sidecar.largest_token = whole(member(json, "largest_token"), "largest_token", -1, most_tokens);
  sidecar.sentences = truth(json, "sentences");
  sidecar.prompts = json.contains("prompts") && truth(json, "prompts");
  return sidecar;
}

}  // namespace

std::filesystem::path sidecar_path(const std::filesystem::path& prefix) {
  return prefix.string() + ".json";
}

std::string to_json(const DatasetSidecar& sidecar) {
  Json json = {{"accrue_dataset", 1}, {"tokenizer", sidecar.tokenizer}, {"files", Json::array()}};
  for (const TokenizerFile& file : sidecar.files)
    json["files"].push_back({{"path", file.path}, {"sha256", file.sha256}});
  if (sidecar.keep_case) json["keep_case"] = true;
  json["vocabulary"] = sidecar.special.vocabulary;
  for (const auto& [name, token] : token_names)
    if (sidecar.special.*token >= 0) json[name] = sidecar.special.*token;
  if (sidecar.end_of_document) json["end_of_document"] = *sidecar.end_of_document;
  json["sentinels"] = sidecar.special.sentinels;
  json["continues"] = runs_of(sidecar.special.continues);
  json["largest_token"] = sidecar.largest_token;
  json["sentences"] = sidecar.sentences;
  if (sidecar.prompts) json["prompts"] = true;
  return json_text(json) + "\n";
}

Result<DatasetSidecar> parse_sidecar(const std::string& json, const std::string& where) {
  const auto damaged = [&](const std::string& what) {
    return fail(ErrorCode::protocol, "the description of the dataset is damaged: " + what, where,
                "Build the dataset again, or remove the file");
  };
  const Json parsed = parse_json(json, 8);
  if (parsed.is_discarded()) return damaged("it is not JSON");
  try {
    return sidecar_from(parsed);
  } catch (const Damage& damage) {
    return damaged(damage.what);
  }
}

Result<std::optional<DatasetSidecar>> read_sidecar(const std::filesystem::path& prefix) {
  const std::filesystem::path path = sidecar_path(prefix);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const auto json = read_file(path, most_bytes);
  if (!json) return tl::unexpected(json.error());
  auto sidecar = parse_sidecar(*json, path.string());
  if (!sidecar) return tl::unexpected(sidecar.error());
  return *std::move(sidecar);
}

Result<void> write_sidecar(const std::filesystem::path& prefix, const DatasetSidecar& sidecar) {
  return write_file(sidecar_path(prefix), to_json(sidecar), shared_mode);  // like .bin and .idx
}

void add_special_tokens(DatasetSidecar& sidecar) {
  constexpr int sentinels = 100;
  SpecialTokens& special = sidecar.special;
  for (const auto& [name, token] : token_names)
    if (special.*token < 0) special.*token = special.vocabulary++;
  if (special.sentinels.empty())
    for (int i = 0; i < sentinels; ++i) special.sentinels.push_back(special.vocabulary++);
  if (!special.continues.empty()) special.continues.resize(static_cast<std::size_t>(special.vocabulary), false);
}

}  // namespace accrue

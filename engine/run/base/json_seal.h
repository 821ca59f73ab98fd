// SPDX-License-Identifier: Apache-2.0
// A record that carries the hash of its own contents, so that damage and changes by hand are noticed. It is no secret:
// who changes the record can change the hash.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "accrue/run/sha256.h"

namespace accrue {

/// The record as text with a last member "sha256": that of the text without it.
inline std::string sealed_text(nlohmann::ordered_json record) {
  constexpr auto replace = nlohmann::ordered_json::error_handler_t::replace;
  record["sha256"] = sha256_hex(record.dump(2, ' ', false, replace));
  return record.dump(2, ' ', false, replace) + "\n";
}

enum class Seal { none, whole, broken };

/// What the hash says of a record that was parsed from such a text. The text's depth is to be checked before.
inline Seal seal_of(nlohmann::ordered_json record) {
  const auto found = record.find("sha256");
  if (found == record.end()) return Seal::none;
  const nlohmann::ordered_json hash = *found;
  record.erase(found);
  const std::string text = record.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return hash.is_string() && hash == sha256_hex(text) ? Seal::whole : Seal::broken;
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// A record that carries the hash of its own contents, so that damage and changes by hand are noticed. It is no secret:
// who changes the record can change the hash.
#pragma once

#include <string>

#include "accrue/run/sha256.h"
#include "json_text.h"

namespace accrue {

/// The record as text with a last member "sha256": that of the text without it.
inline std::string sealed_text(Json record) {
  record["sha256"] = sha256_hex(json_text(record, 2));
  return json_text(record, 2) + "\n";
}

enum class Seal { none, whole, broken };

/// What the hash says of a record that was parsed from such a text.
inline Seal seal_of(Json record) {
  const auto found = record.find("sha256");
  if (found == record.end()) return Seal::none;
  const Json hash = *found;
  record.erase(found);
  return hash.is_string() && hash == sha256_hex(json_text(record, 2)) ? Seal::whole : Seal::broken;
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// A record that carries the hash of its own contents, which reveals damage and manual edits. The hash is not a secret:
// an editor of the record can recompute it.
#pragma once

#include <string>

#include "accrue/run/base/sha256.h"
#include "json_text.h"

namespace accrue {

/// Returns the record as text, with a last member "sha256" that hashes the text without it.
inline std::string sealed_text(Json record) {
  record["sha256"] = sha256_hex(json_text(record, 2));
  return json_text(record, 2) + "\n";
}

enum class Seal { none, whole, broken };

/// Checks the hash of a record that was parsed from such a text.
inline Seal seal_of(Json record) {
  const auto found = record.find("sha256");
  if (found == record.end()) return Seal::none;
  const Json hash = std::move(*found);
  record.erase(found);
  return hash.is_string() && hash == sha256_hex(json_text(record, 2)) ? Seal::whole : Seal::broken;
}

}  // namespace accrue

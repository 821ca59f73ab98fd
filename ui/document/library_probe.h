// SPDX-License-Identifier: GPL-3.0-or-later
// Chosen plug-in libraries of a spec, as accrue-rank describes them. The studio itself loads none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/fields/spec.h"
#include "accrue/run/megatron/plugin_facts.h"

namespace accrue::ui {

/// Whether the spec names parts that only a library can provide.
bool namesLibraries(const RunSpec& spec);
/// Returns the libraries that the ranks of such a spec load; none for others.
std::vector<PluginRecord> librariesOf(const RunSpec& spec, std::span<const PluginFacts> known);

/// The choice is the contents of a file: if another file has its place, nothing is loaded, and its entry says so.
/// accrue-rank is called again only if a file has another time or size. Thread: one at a time, not the GUI's.
class LibraryProbe {
 public:
  explicit LibraryProbe(std::string rank_program) : rank_program_(std::move(rank_program)) {}

  /// Returns an entry for each, in order. One without a SHA-256 is taken in its current state.
  std::vector<PluginFacts> describe(const std::vector<PluginRecord>& chosen);

 private:
  struct Stamp {
    std::filesystem::file_time_type written;
    std::uintmax_t size = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Answer {
    Stamp stamp;
    std::string chosen;  ///< SHA-256
    PluginFacts facts;
  };
  PluginFacts ask(const PluginRecord& chosen) const;

  std::string rank_program_;
  std::map<std::string, Answer> answers_;  ///< by file
};

}  // namespace accrue::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// The plug-in libraries that were chosen for a spec, as accrue-rank describes them. The studio loads none of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/plugin_facts.h"
#include "accrue/run/run_spec.h"

namespace accrue::ui {

/// Whether the spec names what only a library can give.
bool namesLibraries(const RunSpec& spec);
/// What the ranks of such a spec load; nothing for another one.
std::vector<PluginRecord> librariesOf(const RunSpec& spec, std::span<const PluginFacts> known);

/// What is chosen is the contents of a file: where others lie in its place, nothing is loaded, and its entry says so.
/// accrue-rank is asked again only where a file has another time or size than before. Thread: one at a time, and not
/// the GUI's.
class LibraryProbe {
 public:
  explicit LibraryProbe(std::string rank_program) : rank_program_(std::move(rank_program)) {}

  /// An entry for each of them, in their order. One without a SHA-256 is taken as it is now.
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

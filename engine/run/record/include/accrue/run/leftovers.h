// SPDX-License-Identifier: Apache-2.0
// What killed processes leave in a run's folders, known by its names: ".NAME.part" was not finished, ".trash-NAME" was
// being removed, and ".replaced-NAME" had the name NAME until another folder was to take it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace accrue {

bool is_leftover(std::string_view name);
/// The name of a folder that gives up its name to another.
std::string replaced_name(std::string_view name);
/// Gives a replaced checkpoint without a successor its name back, and removes the other leftovers. What cannot be
/// removed stays for the next time. Needs the run's lock, or rank 0 of its ranks.
void clear_leftovers_in(const std::filesystem::path& folder);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/leftovers.h"

#include <system_error>
#include <vector>

#include "accrue/run/checkpoint_mark.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view replaced_prefix = ".replaced-";

}  // namespace

bool is_leftover(std::string_view name) {
  return name.starts_with(".trash-") || name.starts_with(replaced_prefix) ||
         (name.starts_with(".") && name.ends_with(".part"));
}

std::string replaced_name(std::string_view name) {
  return std::string(replaced_prefix) + std::string(name);
}

void clear_leftovers_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is_leftover(at->path().filename().string())) found.push_back(at->path().filename().string());
  std::error_code ignored;
  for (const std::string& name : found) {
    const bool replaced = name.starts_with(replaced_prefix);
    const std::string former = replaced ? name.substr(replaced_prefix.size()) : std::string();
    if (checkpoint_mark(former).valid() && !fs::exists(folder / former, ignored))
      fs::rename(folder / name, folder / former, ignored);
    else
      fs::remove_all(folder / name, ignored);
  }
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "slurm_hosts.h"

namespace accrue {

std::optional<std::string> first_slurm_host(std::string_view nodelist) {
  std::string host;
  std::size_t at = 0;
  while (at < nodelist.size() && nodelist[at] != ',') {
    if (nodelist[at] != '[') {
      host += nodelist[at++];
      continue;
    }
    const std::size_t close = nodelist.find(']', at);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view ranges = nodelist.substr(at + 1, close - at - 1);
    const std::string_view first = ranges.substr(0, ranges.find_first_of(",-"));
    if (first.empty()) return std::nullopt;
    host += first;
    at = close + 1;
  }
  if (host.empty()) return std::nullopt;
  return host;
}

}  // namespace accrue

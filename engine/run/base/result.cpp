// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/base/result.h"

#include <iterator>

namespace accrue {
namespace {

struct Code {
  const char* name;
  int exit_status;
};

/// In the order of ErrorCode.
constexpr Code codes[] = {{"unset", 0},         {"config", 2},    {"data", 2},     {"numerics", 3},
                          {"out_of_memory", 3}, {"peer_lost", 4}, {"hang", 4},     {"rendezvous", 4},
                          {"disk", 5},          {"device", 2},    {"protocol", 5}, {"cancelled", 130},
                          {"internal", 3}};
static_assert(std::size(codes) == static_cast<std::size_t>(ErrorCode::internal) + 1, "one row a code");

}  // namespace

const char* to_string(ErrorCode code) {
  return codes[static_cast<std::size_t>(code)].name;
}

int exit_status(ErrorCode code) {
  return codes[static_cast<std::size_t>(code)].exit_status;
}

std::string Error::text() const {
  std::string text = where.empty() ? message : where + ": " + message;
  if (!hint.empty()) text += (text.ends_with('.') ? " " : ". ") + hint;
  return text;
}

}  // namespace accrue

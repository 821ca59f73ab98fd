// SPDX-License-Identifier: Apache-2.0
// Names and exit statuses of failures. One switch each, so that a new code does not compile without a name.
#include "accrue/run/result.h"

namespace accrue {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::unset:
      return "unset";
    case ErrorCode::config:
      return "config";
    case ErrorCode::data:
      return "data";
    case ErrorCode::numerics:
      return "numerics";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::peer_lost:
      return "peer_lost";
    case ErrorCode::hang:
      return "hang";
    case ErrorCode::rendezvous:
      return "rendezvous";
    case ErrorCode::disk:
      return "disk";
    case ErrorCode::device:
      return "device";
    case ErrorCode::protocol:
      return "protocol";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::internal:
      return "internal";
  }
  return "unset";
}

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::unset:
      return 0;
    case ErrorCode::config:
    case ErrorCode::data:
    case ErrorCode::device:
      return 2;
    case ErrorCode::numerics:
    case ErrorCode::out_of_memory:
    case ErrorCode::internal:
      return 3;
    case ErrorCode::peer_lost:
    case ErrorCode::hang:
    case ErrorCode::rendezvous:
      return 4;
    case ErrorCode::disk:
    case ErrorCode::protocol:
      return 5;
    case ErrorCode::cancelled:
      return 130;
  }
  return 3;
}

std::string Error::text() const {
  std::string text = where.empty() ? message : where + ": " + message;
  if (!hint.empty()) text += (text.ends_with('.') ? " " : ". ") + hint;
  return text;
}

}  // namespace accrue

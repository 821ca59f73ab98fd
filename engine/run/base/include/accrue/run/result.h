// SPDX-License-Identifier: Apache-2.0
// How an expected failure travels: a value, never an exception, and always with what, where and what to do.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace accrue {

/// The classes in which every failure of a run ends; exit_status() maps them to accrue-run's exit status.
enum class ErrorCode {
  unset,
  config,    ///< bad spec or bad arguments; nothing was started
  data,      ///< the training data is missing, unreadable or changed
  numerics,  ///< non-finite values under a stop rule
  out_of_memory,
  peer_lost,   ///< a rank died
  hang,        ///< a rank makes no progress
  rendezvous,  ///< the ranks never met
  disk,        ///< the run folder cannot be written
  device,      ///< a device, backend or library asked for is not there
  protocol,    ///< a file or a peer speaks another version, or is damaged
  cancelled,   ///< the user stopped it
  internal,
};

/// The snake_case name of a code, as events and --json print it.
const char* to_string(ErrorCode code);
/// Exit status of contracts' table: 0 done, 2 refused, 3 training failed, 4 ranks lost, 5 disk or store, 130 stopped by
/// the user.
int exit_status(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::unset;
  std::string message;  ///< what happened, one sentence
  std::string where;    ///< file:line:column, key path, rank or step; empty where the message says it
  std::string hint;     ///< what to do

  bool operator==(const Error&) const = default;
  /// "where: message. hint", leaving out what is empty.
  std::string text() const;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string where = {}, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(where), std::move(hint)});
}

}  // namespace accrue

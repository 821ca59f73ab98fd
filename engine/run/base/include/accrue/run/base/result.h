// SPDX-License-Identifier: Apache-2.0
// How Accrue reports failures:
//
// - Failures that a correct program can meet (a full disk, a lost peer, a damaged file, a spec that cannot run) are
//   Results: the value, or an Error that says what, where and what to do. Results are [[nodiscard]]. `value()` on an
//   error throws ResultError, whose what() is the Error's text; must() (program.h) ends the program with it.
// - Mistakes of the calling program throw: std::invalid_argument for a wrong argument, std::logic_error for a call at
//   the wrong time. what() says what to do instead.
// - A collective that cannot complete throws CommError (comm/communicator.h). Its tensors are undefined afterwards.
#pragma once

#include <stdexcept>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace accrue {

/// Classes of failure of a run. exit_status() maps them to accrue-run's exit status.
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
  device,      ///< a requested device, backend or library is not there
  protocol,    ///< a file or a peer speaks another version, or is damaged
  cancelled,   ///< the user stopped it
  internal,
};

/// Returns the snake_case name of a code, as used in events and by --json.
const char* to_string(ErrorCode code);
/// Exit status of a code, as the manual's page on the command line lists them: 0 done, 2 refused, 3 training failed, 4
/// ranks lost, 5 disk or store, 130 stopped by the user.
int exit_status(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::unset;
  std::string message;  ///< what happened, one sentence
  std::string where;    ///< file:line:column, key path, rank or step; empty if the message contains it
  std::string hint;     ///< what to do

  bool operator==(const Error&) const = default;
  /// Returns "where: message. hint", without the empty parts.
  std::string text() const;
};

/// Exception that value() throws on an error.
struct ResultError : std::runtime_error {
  explicit ResultError(Error cause) : std::runtime_error(cause.text()), error(std::move(cause)) {}
  Error error;
};

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
  using Base = tl::expected<T, Error>;

 public:
  using Base::Base;
  Result() = default;
  Result(Base base) : Base(std::move(base)) {}

  /// Returns the value. Errors: throws ResultError if there is none.
  const T& value() const& { return checked(), Base::operator*(); }
  T& value() & { return checked(), Base::operator*(); }
  T&& value() && { return checked(), std::move(*this).Base::operator*(); }

 private:
  void checked() const {
    if (!this->has_value()) throw ResultError(this->error());
  }
};

template <>
class [[nodiscard]] Result<void> : public tl::expected<void, Error> {
  using Base = tl::expected<void, Error>;

 public:
  using Base::Base;
  Result() = default;
  Result(Base base) : Base(std::move(base)) {}

  /// Checks for success. Errors: throws ResultError if the result is an error.
  void value() const {
    if (!has_value()) throw ResultError(error());
  }
};

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string where = {}, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(where), std::move(hint)});
}

}  // namespace accrue

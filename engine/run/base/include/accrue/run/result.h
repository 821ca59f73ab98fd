// SPDX-License-Identifier: Apache-2.0
// How failures travel, in all of Accrue:
//
//  - What a correct program meets (a full disk, a lost peer, a damaged file, a spec that cannot be run) is a Result:
//    the value, or an Error that says what, where and what to do. Results are [[nodiscard]]; a call whose Result is
//    dropped does not compile without a warning. `value()` on an error throws ResultError, whose what() is the Error's
//    text; must() (program.h) ends the program with it.
//  - A mistake of the calling program throws: std::invalid_argument for what a call is given, std::logic_error for when
//    it is made. Its what() says what to do instead.
//  - A collective that cannot complete throws CommError (comm/communicator.h); tensors are not to be trusted after it.
#pragma once

#include <stdexcept>
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
  device,      ///< a requested device, backend or library is not there
  protocol,    ///< a file or a peer speaks another version, or is damaged
  cancelled,   ///< the user stopped it
  internal,
};

/// The snake_case name of a code, as events and --json print it.
const char* to_string(ErrorCode code);
/// Exit status, as in the manual's page on the command line: 0 done, 2 refused, 3 training failed, 4 ranks lost, 5 disk
/// or store, 130 stopped by the user.
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

/// What value() throws where there is none.
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

  /// The value. Errors: throws ResultError where there is an error instead.
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

  /// Errors: throws ResultError where there is an error.
  void value() const {
    if (!has_value()) throw ResultError(error());
  }
};

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string where = {}, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(where), std::move(hint)});
}

}  // namespace accrue

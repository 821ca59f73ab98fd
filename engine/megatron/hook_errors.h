// SPDX-License-Identifier: Apache-2.0
// Errors that a function of a plug-in library throws are reported under the function's name.
#pragma once

#include <string>
#include <utility>

namespace accrue::megatron {

/// In a catch block. What is not about the hook, a lost peer or an Error that has its words, goes on as it is; memory
/// that ran out becomes a ResultError (out_of_memory); std::invalid_argument stays one; all else becomes a
/// std::runtime_error.
[[noreturn]] void rethrow_of_hook(const std::string& hook);

/// Returns the result of `call`. `hook`: "custom_loss_function \"mine\"".
template <typename Call>
auto call_hook(const std::string& hook, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    rethrow_of_hook(hook);
  }
}

}  // namespace accrue::megatron

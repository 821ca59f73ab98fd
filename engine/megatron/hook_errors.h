// SPDX-License-Identifier: Apache-2.0
// Errors that a function of a plug-in library throws are reported under the function's name.
#pragma once

#include <string>
#include <utility>

namespace accrue::megatron {

/// Call it in a catch block. CommError and ResultError are rethrown unchanged, as they are not about the hook. Failed
/// allocations become a ResultError (out_of_memory), std::invalid_argument keeps its type, and everything else becomes
/// a std::runtime_error; these name the hook.
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

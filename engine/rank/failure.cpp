// SPDX-License-Identifier: Apache-2.0
#include "rank/failure.h"

#include <c10/util/Exception.h>

#include <new>
#include <stdexcept>
#include <string>

#include "accrue/comm/communicator.h"

namespace accrue {
namespace {

constexpr const char* memory_hint =
    "Halve accumulation.micro_batch and double accumulation.steps: the update stays the same.";

/// The CPU allocator has no exception of its own: c10::Error, or the form that a hook gave it.
Error told_by(const std::string& message) {
  const bool allocates = message.find("can't allocate memory") != std::string::npos ||
                         message.find("not enough memory") != std::string::npos;
  if (allocates) return {ErrorCode::out_of_memory, message, {}, memory_hint};
  return {ErrorCode::internal, message, {}, {}};
}

}  // namespace

Error current_failure() {
  try {
    throw;
  } catch (const CommError& error) {
    return {ErrorCode::peer_lost, error.what(), {}, "Another rank ended or is stuck: its own message says why."};
  } catch (const ResultError& error) {
    Error told = error.error;
    if (told.code == ErrorCode::out_of_memory && told.hint.empty()) told.hint = memory_hint;
    return told;
  } catch (const c10::OutOfMemoryError& error) {
    return {ErrorCode::out_of_memory, error.what_without_backtrace(), {}, memory_hint};
  } catch (const c10::Error& error) {
    return told_by(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "this rank ran out of memory", {}, memory_hint};
  } catch (const std::exception& error) {
    return told_by(error.what());
  } catch (...) {
    return {ErrorCode::internal, "an unknown exception", {}, {}};
  }
}

}  // namespace accrue

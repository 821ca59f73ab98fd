// SPDX-License-Identifier: Apache-2.0
#include "rank/failure.h"

#include <c10/util/Exception.h>

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "accrue/comm/communicator.h"

namespace accrue {
namespace {

constexpr const char* memory_hint =
    "Halve accumulation.micro_batch and double accumulation.steps: the update stays the same.";

/// The CPU allocator has no exception of its own.
bool is_allocation_failure(std::string_view message) {
  return message.find("can't allocate memory") != std::string_view::npos ||
         message.find("not enough memory") != std::string_view::npos;
}

}  // namespace

Error current_failure() {
  try {
    throw;
  } catch (const CommError& error) {
    return {ErrorCode::peer_lost, error.what(), {}, "Another rank ended or is stuck: its own message says why."};
  } catch (const ResultError& error) {
    return error.error;
  } catch (const c10::OutOfMemoryError& error) {
    return {ErrorCode::out_of_memory, error.what_without_backtrace(), {}, memory_hint};
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (is_allocation_failure(message)) return {ErrorCode::out_of_memory, message, {}, memory_hint};
    return {ErrorCode::internal, message, {}, {}};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "this rank ran out of memory", {}, memory_hint};
  } catch (const std::exception& error) {
    return {ErrorCode::internal, error.what(), {}, {}};
  } catch (...) {
    return {ErrorCode::internal, "an unknown exception", {}, {}};
  }
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
#include "megatron/hook_errors.h"

#include <c10/util/Exception.h>

#include <new>
#include <stdexcept>

#include "accrue/comm/communicator.h"
#include "accrue/run/base/result.h"

namespace accrue::megatron {

void rethrow_of_hook(const std::string& hook) {
  const std::string threw = hook + " threw: ";
  try {
    throw;
  } catch (const CommError&) {
    throw;
  } catch (const ResultError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw ResultError({ErrorCode::out_of_memory, hook + " ran out of memory", {}, {}});
  } catch (const c10::OutOfMemoryError& error) {
    throw ResultError({ErrorCode::out_of_memory, threw + error.what_without_backtrace(), {}, {}});
  } catch (const c10::Error& error) {
    throw std::runtime_error(threw + error.what_without_backtrace());
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(threw + error.what());
  } catch (const std::exception& error) {
    throw std::runtime_error(threw + error.what());
  } catch (...) {
    throw std::runtime_error(threw + "something that is no std::exception");
  }
}

}  // namespace accrue::megatron

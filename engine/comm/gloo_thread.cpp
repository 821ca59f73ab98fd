// SPDX-License-Identifier: Apache-2.0
#include "gloo_thread.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>

#include "accrue/comm/communicator.h"

namespace accrue {
namespace {

std::atomic<bool> gloo_halted{false};
std::terminate_handler previous_handler = nullptr;

bool thrown_by_gloo() {
  const std::exception_ptr thrown = std::current_exception();
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const CommError&) {
    return false;
  } catch (const std::exception& error) {
    return is_text_of_gloo(error.what());
  } catch (...) {
    return false;
  }
}

[[noreturn]] void at_terminate() {
  if (thrown_by_gloo()) {
    gloo_halted = true;
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (previous_handler != nullptr) previous_handler();
  std::abort();
}

}  // namespace

bool is_text_of_gloo(std::string_view text) {
  if (!text.starts_with('[')) return false;
  return text.substr(0, text.find(']')).find("gloo/transport/") != std::string_view::npos;
}

void halt_gloo_at_errors() {
  static std::once_flag once;
  std::call_once(once, [] { previous_handler = std::set_terminate(at_terminate); });
}

bool gloo_has_halted() {
  return gloo_halted;
}

}  // namespace accrue

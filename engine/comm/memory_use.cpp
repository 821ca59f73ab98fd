// SPDX-License-Identifier: Apache-2.0
#include "comm/memory_use.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "comm/device_loader.h"

namespace accrue {
namespace {

/// Maximum resident memory since this program began; 0 if the kernel does not say. getrusage() would include the
/// process before exec(), so a rank would report its supervisor's peak.
std::int64_t most_resident_bytes() {
  constexpr std::int64_t kibibyte = 1024;
  std::ifstream status("/proc/self/status");
  std::string word;
  std::int64_t kibibytes = 0;
  while (status >> word)
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * kibibyte;
  return 0;
}

}  // namespace

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  statm >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

MemoryUse memory_use(at::Device device) {
  if (!device.is_cpu()) {
    const auto backend = load_device_backend();
    return backend ? (*backend)->memory(device.index()) : MemoryUse{};
  }
  return {.reserved_bytes = resident_bytes(), .most_allocated_bytes = most_resident_bytes()};
}

}  // namespace accrue

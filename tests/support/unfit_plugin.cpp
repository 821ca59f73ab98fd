// SPDX-License-Identifier: Apache-2.0
// A plug-in library that no rank takes: built for interface 0, or, where MUTE is defined, without a word of what for.
#include <cstdint>

extern "C" {
#ifndef MUTE
struct Abi {
  std::uint32_t interface;
  const char* torch;
  const char* name;
};
[[gnu::visibility("default")]] extern const Abi accrue_plugin_abi;
const Abi accrue_plugin_abi{0, "1.0.0", "unfit"};
#endif
[[gnu::visibility("default")]] void accrue_plugin_register(void* /*registry*/) {}
}

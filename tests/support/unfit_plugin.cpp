// SPDX-License-Identifier: Apache-2.0
// A plug-in library that no rank takes: built for interface 0; where STALE is defined, with another Accrue; where MUTE
// is, without a word of what for.
#include <cstdint>

extern "C" {
#ifndef MUTE
struct Abi {
  std::uint32_t interface;
  const char* torch;
  const char* name;
  const char* accrue;
};
[[gnu::visibility("default")]] extern const Abi accrue_plugin_abi;
#ifdef STALE
const Abi accrue_plugin_abi{4, "1.0.0", "stale", "0.0.1"};
#else
const Abi accrue_plugin_abi{0, "1.0.0", "unfit", "0.0.1"};
#endif
#endif
[[gnu::visibility("default")]] void accrue_plugin_register(void* /*registry*/) {}
}

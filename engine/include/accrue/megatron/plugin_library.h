// SPDX-License-Identifier: Apache-2.0
// A plug-in library: a shared object that fills a Registry for accrue-rank, which alone loads it.
//
//   #include "accrue/megatron/plugin_library.h"
//   ACCRUE_PLUGIN("mine", registry) { registry.custom_loss_function.add("focal", focal_loss); }
//
// It exports two C symbols: accrue_plugin_abi, the versions that it was built with, and accrue_plugin_register, which
// is called only if the rank was built with the same versions. Classes of Accrue and LibTorch cross this boundary, so
// all versions must match. Thread: the training thread, before training.
#pragma once

#include <torch/headeronly/version.h>

#include <cstdint>
#include <filesystem>

#include "accrue/megatron/registry.h"
#include "accrue/run/base/result.h"
#include "accrue/run/base/version.h"

namespace accrue::megatron {

/// Raised whenever a class that crosses the boundary changes.
inline constexpr std::uint32_t plugin_interface = 4;

/// Versions that a library was built with. Members are only added at its end.
struct PluginAbi {
  std::uint32_t interface;
  const char* torch;
  const char* name;    ///< of the library
  const char* accrue;  ///< of the headers; since interface 2
};

/// Loads a library for good and lets it register. If the returned facts have no error, its entries are in `registry`.
/// Errors in them: a file that cannot be loaded, another version of interface, Accrue or LibTorch, a missing symbol, a
/// name that is taken.
PluginFacts load_plugin(const std::filesystem::path& file, Registry& registry);
/// Loads all libraries of a run; each must be exactly the file that the record names. Errors: config.
Result<void> load_plugins(std::span<const PluginRecord> recorded, Registry& registry);

}  // namespace accrue::megatron

#define ACCRUE_PLUGIN(library_name, registry)                                                    \
  extern "C" [[gnu::visibility("default")]] const accrue::megatron::PluginAbi accrue_plugin_abi{ \
      accrue::megatron::plugin_interface, TORCH_VERSION, library_name, accrue::headers_version}; \
  extern "C" [[gnu::visibility("default")]] void accrue_plugin_register(                         \
      accrue::megatron::Registry& registry)  // NOLINT(bugprone-macro-parentheses): a parameter's name

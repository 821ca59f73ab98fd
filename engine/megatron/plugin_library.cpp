// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/plugin_library.h"

#include <dlfcn.h>

#include <exception>
#include <string>

namespace accrue::megatron {
namespace {

std::string loader_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "no reason is known" : text;
}

/// Returns why the library does not fit; empty if it does.
std::string misfit(const PluginAbi& abi) {
  if (abi.interface != plugin_interface)
    return "it was built for plug-in interface " + std::to_string(abi.interface) + ", this is " +
           std::to_string(plugin_interface) + ": build it with this version's headers";
  if (std::string(abi.accrue) != headers_version)
    return std::string("it was built with Accrue ") + abi.accrue + ", this is " + headers_version +
           ": build it with this version's headers";
  if (std::string(abi.torch) != TORCH_VERSION)
    return std::string("it was built with LibTorch ") + abi.torch + ", this is " + TORCH_VERSION +
           ": build it with this one";
  return {};
}

}  // namespace

PluginFacts load_plugin(const std::filesystem::path& file, Registry& registry) {
  PluginFacts facts{.file = file.string(), .name = file.filename().string(), .sha256 = {}, .entries = {}, .error = {}};
  const auto fail_with = [&facts](std::string why) {
    facts.error = std::move(why);
    return facts;
  };
  auto sum = sha256_of_file(file);
  if (!sum) return fail_with("it " + sum.error().message + ". Check the path");
  facts.sha256 = *std::move(sum);
  void* library = ::dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail_with("it cannot be loaded: " + loader_error());
  const auto* abi = static_cast<const PluginAbi*>(::dlsym(library, "accrue_plugin_abi"));
  void* entry = ::dlsym(library, "accrue_plugin_register");
  if (abi == nullptr || entry == nullptr)
    return fail_with(std::string("it exports no ") + (abi == nullptr ? "accrue_plugin_abi" : "accrue_plugin_register") +
                     ": ACCRUE_PLUGIN of accrue/megatron/plugin_library.h makes it");
  if (std::string why = misfit(*abi); !why.empty()) return fail_with(std::move(why));
  facts.name = abi->name;
  try {
    Registry own;
    reinterpret_cast<void (*)(Registry&)>(entry)(own);
    registry.add(own);
    facts.entries = own.entries();
  } catch (const std::exception& error) {
    return fail_with(std::string("it cannot register: ") + error.what());
  }
  if (facts.entries.empty()) return fail_with("it registers nothing");
  return facts;
}

Result<void> load_plugins(std::span<const PluginRecord> recorded, Registry& registry) {
  if (auto unchanged = check_unchanged(recorded); !unchanged) return unchanged;
  for (const PluginRecord& each : recorded)
    if (const PluginFacts facts = load_plugin(each.file, registry); !facts.error.empty())
      return fail(ErrorCode::config, "the plug-in library cannot be used: " + facts.error, each.file,
                  "A run keeps to the file that it began with: with another one, start a new run.");
  return {};
}

}  // namespace accrue::megatron

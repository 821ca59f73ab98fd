// SPDX-License-Identifier: Apache-2.0
#include "rank_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace accrue {
namespace {

constexpr std::array<std::string_view, 17> allowed_names = {"PATH",
                                                            "HOME",
                                                            "USER",
                                                            "LOGNAME",
                                                            "LANG",
                                                            "LANGUAGE",
                                                            "TZ",
                                                            "TMPDIR",
                                                            "XDG_RUNTIME_DIR",
                                                            "XDG_CACHE_HOME",
                                                            "XDG_DATA_HOME",
                                                            "LD_LIBRARY_PATH",
                                                            "CUDA_VISIBLE_DEVICES",
                                                            "CUDA_DEVICE_ORDER",
                                                            "CUDA_DEVICE_MAX_CONNECTIONS",
                                                            "CUDA_HOME",
                                                            "CUBLAS_WORKSPACE_CONFIG"};
constexpr std::array<std::string_view, 10> allowed_prefixes = {"LC_",   "ACCRUE_", "NCCL_", "TORCH_", "MKL_",
                                                               "ASAN_", "UBSAN_",  "TSAN_", "LSAN_",  "NVIDIA_"};

bool is_allowed(std::string_view entry) {
  const auto name = entry.substr(0, entry.find('='));
  for (const auto allowed : allowed_names)
    if (name == allowed) return true;
  for (const auto prefix : allowed_prefixes)
    if (name.starts_with(prefix)) return true;
  return false;
}

}  // namespace

Environment Environment::allowed() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (is_allowed(*entry)) result.entries_.emplace_back(*entry);
  return result;
}

void Environment::hand_on(std::string_view prefix) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (const auto equals = text.find('='); text.starts_with(prefix) && equals != text.npos)
      set(text.substr(0, equals), text.substr(equals + 1));
  }
}

void Environment::unset(std::string_view name) {
  std::erase_if(entries_, [name](const std::string& entry) {
    return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
  });
}

void Environment::set(std::string_view name, std::string_view value) {
  unset(name);
  entries_.push_back(fmt::format("{}={}", name, value));
}

void Environment::set_rank(std::int64_t rank, std::int64_t world, std::int64_t threads) {
  const auto number = [this](std::string_view name, std::int64_t value) { set(name, std::to_string(value)); };
  number("RANK", rank);
  number("WORLD_SIZE", world);
  number("LOCAL_RANK", rank);
  number("LOCAL_WORLD_SIZE", world);
  number("OMP_NUM_THREADS", threads);
  set("OMP_WAIT_POLICY", "passive");
  set("GLOO_SOCKET_IFNAME", "lo");
  // Keeps the memory of a micro-batch's activations instead of mapping it again for every one (glibc accepts no mmap
  // threshold above 32 MiB).
  number("MALLOC_ARENA_MAX", 2);
  number("MALLOC_MMAP_THRESHOLD_", 32 << 20);
  number("MALLOC_TRIM_THRESHOLD_", 1 << 30);
}

}  // namespace accrue

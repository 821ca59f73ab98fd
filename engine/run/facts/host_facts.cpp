// SPDX-License-Identifier: Apache-2.0
// Facts of this host from the kernel's files. Any file may be missing or have another format; an unavailable fact keeps
// its default and does not fail a run.
#include "accrue/run/facts/host_facts.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "accrue/run/base/program.h"
#include "accrue/run/base/version.h"
#include "host_sources.h"
#include "json_text.h"

namespace accrue {

namespace {

// A set of 8,192 CPUs, the kernel's maximum; the plain cpu_set_t holds 1,024.
std::int64_t affinity_cores() {
  constexpr std::size_t cpus = 8192;
  cpu_set_t* set = CPU_ALLOC(cpus);
  if (set == nullptr) return 1;
  const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
  const int cores = ::sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 1;
  CPU_FREE(set);
  return std::max(cores, 1);
}

std::int64_t first_number(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::int64_t number = -1;
  return stream >> number ? number : -1;
}

std::int64_t total_memory(const std::filesystem::path& root) {
  std::ifstream stream(root / "proc/meminfo");
  std::string word;
  std::int64_t kilobytes = 0;
  while (stream >> word)
    if (word == "MemTotal:" && stream >> kilobytes) return kilobytes * 1024;
  return 0;
}

// Returns the lowest limit from a group up to its root; "max" and a missing file are no limit.
std::int64_t lowest_limit(const std::filesystem::path& mount, std::filesystem::path group, const char* file,
                          std::int64_t least) {
  group = group.relative_path();
  while (true) {
    const std::int64_t limit = first_number(mount / group / file);
    if (limit > 0) least = least > 0 ? std::min(least, limit) : limit;
    if (group.empty()) return least;
    group = group.parent_path();
  }
}

}  // namespace

namespace host_detail {

std::int64_t usable_memory(const std::filesystem::path& root) {
  std::int64_t least = total_memory(root);
  std::ifstream stream(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(stream, line)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::filesystem::path group = line.substr(second + 1);
    if (controllers == ",,") least = lowest_limit(root / "sys/fs/cgroup", group, "memory.max", least);
    if (controllers.find(",memory,") != std::string::npos)
      least = lowest_limit(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes", least);
  }
  return least;
}

void read_cpu(const std::filesystem::path& root, HostFacts& facts) {
  std::ifstream stream(root / "proc/cpuinfo");
  std::string line;
  while (std::getline(stream, line) && !line.empty()) {  // the first processor represents all
    const auto colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) facts.cpu_name = value;
    if (!line.starts_with("flags")) continue;
    std::istringstream flags(value);
    for (std::string flag; flags >> flag;) {
      facts.avx2 |= flag == "avx2";
      facts.avx512 |= flag == "avx512f";
      facts.avx512_bf16 |= flag == "avx512_bf16";
    }
  }
}

}  // namespace host_detail

MegatronEnvironment environment_of(const HostFacts& facts) {
  return [variables = facts.variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

HostFacts local_facts() {
  HostFacts facts;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) facts.host_name = name;
  facts.cores = affinity_cores();
  facts.memory_bytes = host_detail::usable_memory("/");
  host_detail::read_cpu("/", facts);
  facts.accrue_version = version();
  facts.backends = {"shm"};
  for (const MegatronField& field : megatron_fields())
    if (const auto value =
            field.environment.empty() ? std::nullopt : environment(std::string(field.environment).c_str()))
      facts.variables.emplace(field.environment, *value);
  return facts;
}

std::string to_json(const HostFacts& facts) {
  Json devices = Json::array();
  for (const DeviceFacts& each : facts.cuda_devices)
    devices.push_back({{"name", each.name}, {"memory_bytes", each.memory_bytes}});
  return json_text({{"host_name", facts.host_name},
                    {"cores", facts.cores},
                    {"memory_bytes", facts.memory_bytes},
                    {"cpu_name", facts.cpu_name},
                    {"avx2", facts.avx2},
                    {"avx512", facts.avx512},
                    {"avx512_bf16", facts.avx512_bf16},
                    {"torch_version", facts.torch_version},
                    {"accrue_version", facts.accrue_version},
                    {"backends", facts.backends},
                    {"cuda_devices", std::move(devices)},
                    {"cuda_error", facts.cuda_error}});
}

namespace {

HostFacts facts_from(const Json& json) {
  HostFacts facts;
  json.at("host_name").get_to(facts.host_name);
  json.at("cores").get_to(facts.cores);
  json.at("memory_bytes").get_to(facts.memory_bytes);
  json.at("cpu_name").get_to(facts.cpu_name);
  json.at("avx2").get_to(facts.avx2);
  json.at("avx512").get_to(facts.avx512);
  json.at("avx512_bf16").get_to(facts.avx512_bf16);
  json.at("torch_version").get_to(facts.torch_version);
  json.at("accrue_version").get_to(facts.accrue_version);
  json.at("backends").get_to(facts.backends);
  for (const Json& each : json.at("cuda_devices"))
    facts.cuda_devices.push_back({each.at("name").get<std::string>(), each.at("memory_bytes").get<std::int64_t>()});
  json.at("cuda_error").get_to(facts.cuda_error);
  return facts;
}

}  // namespace

Result<HostFacts> host_facts_from_json(const std::string& text) {
  const auto damaged = [](const std::string& what) {
    return fail(ErrorCode::protocol, "the host's facts cannot be read: " + what, "accrue-rank --probe",
                "Use an accrue-rank of this version.");
  };
  const Json json = parse_json(text);
  if (json.is_discarded()) return damaged("it is not JSON");
  try {
    return facts_from(json);
  } catch (const Json::exception& error) {
    return damaged(error.what());
  }
}

}  // namespace accrue

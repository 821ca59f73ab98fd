// SPDX-License-Identifier: Apache-2.0
// Facts about a host, as probed by "accrue-rank --probe" and cached; nothing here uses LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/megatron/megatron_fields.h"

namespace accrue {

/// Memory of a process on its compute device; 0: unknown. On a device, the counts of LibTorch's allocator; on a CPU,
/// resident memory, now (reserved) and at its peak (most_allocated).
struct MemoryUse {
  std::int64_t reserved_bytes = 0;
  std::int64_t allocated_bytes = 0;  ///< by tensors
  std::int64_t most_allocated_bytes = 0;
  std::int64_t allocations = 0;  ///< live tensor allocations
};

struct DeviceFacts {
  std::string name;  ///< "cpu" or the GPU's product name
  std::int64_t memory_bytes = 0;
  bool operator==(const DeviceFacts&) const = default;
};

struct HostFacts {
  std::string host_name;
  std::int64_t cores = 1;
  std::int64_t memory_bytes = 0;
  std::string cpu_name;
  bool avx2 = false;
  bool avx512 = false;
  bool avx512_bf16 = false;
  std::string torch_version;  ///< empty: no rank program or no LibTorch
  std::string accrue_version;
  std::vector<std::string> backends;  ///< of "shm", "gloo", "nccl"
  std::vector<DeviceFacts> cuda_devices;
  std::string cuda_error;                        ///< why there is no CUDA device, in the loader's words
  std::map<std::string, std::string> variables;  ///< of this process: those that correspond to fields of the plug-in
  bool operator==(const HostFacts&) const = default;
};

/// Returns the host's variables for lower_megatron().
MegatronEnvironment environment_of(const HostFacts& facts);

/// Facts that need no rank program: cores (of this process's affinity mask), memory (with cgroup limits), CPU flags,
/// "shm".
HostFacts local_facts();
/// Runs the rank program with --probe and merges its answer. Errors: the program's own. Takes about 0.3 s.
Result<HostFacts> probe_host(const std::string& rank_program);
std::string to_json(const HostFacts& facts);
Result<HostFacts> host_facts_from_json(const std::string& json);

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// The entry point of accrue_cuda, the only library of Accrue that uses CUDA or NCCL. Loading it loads LibTorch's CUDA
// half.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "cuda_updates.h"
#include "nccl_backend.h"

namespace accrue {
namespace {

class CudaModule final : public DeviceBackend {
 public:
  int device_count() const override { return c10::cuda::device_count(); }

  DeviceFacts facts(int device) const override {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return {"CUDA device " + std::to_string(device)};
    return {properties.name, static_cast<std::int64_t>(properties.totalGlobalMem)};
  }

  void use_device(int device) override { c10::cuda::set_device(static_cast<c10::DeviceIndex>(device)); }

  MemoryUse memory(int device) const override {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    // Of all sizes of blocks: the allocator also counts small and large ones apart.
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return {.reserved_bytes = stats.reserved_bytes[all].current,
            .allocated_bytes = stats.allocated_bytes[all].current,
            .most_allocated_bytes = stats.allocated_bytes[all].peak,
            .allocations = stats.allocation[all].current};
  }

  Result<std::unique_ptr<Communicator>> nccl_communicator(const CommGroup& group,
                                                          const c10::intrusive_ptr<c10d::Store>& store,
                                                          int device) override {
    return make_nccl_group(group, store, device);
  }

#ifdef ACCRUE_CUDA_KERNELS
  const DeviceUpdates* updates(int device) override {
    // One per device, made once: LibTorch's stream of the device is asked for at each launch, as a program may change
    // it.
    static const auto all = [] {
      std::vector<std::unique_ptr<DeviceUpdates>> made;
      for (int each = 0; each < c10::cuda::device_count(); ++each)
        made.push_back(make_cuda_updates(each, [](int its) {
          return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(its)).stream();
        }));
      return made;
    }();
    return all.at(static_cast<std::size_t>(device)).get();
  }
#else
  const DeviceUpdates* updates(int /*device*/) override {
    return nullptr;
  }
#endif
};

}  // namespace
}  // namespace accrue

extern "C" __attribute__((visibility("default"))) accrue::DeviceBackend* accrue_device_backend(int abi) {
  static accrue::CudaModule module;
  // Null for another version of the interface, whose classes are laid out otherwise.
  return abi == accrue::kDeviceBackendAbi ? &module : nullptr;
}

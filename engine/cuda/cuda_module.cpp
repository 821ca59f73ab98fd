// SPDX-License-Identifier: Apache-2.0
// The entry of accrue_cuda, the only library of Accrue that names CUDA or NCCL. Loading it loads LibTorch's CUDA half.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

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

  std::int64_t allocated_bytes(int device) const override {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
    return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].current;
  }

  Result<std::unique_ptr<Communicator>> nccl_communicator(const CommGroup& group,
                                                          const c10::intrusive_ptr<c10d::Store>& store,
                                                          int device) override {
    return make_nccl_group(group, store, device);
  }
};

}  // namespace
}  // namespace accrue

extern "C" __attribute__((visibility("default"))) accrue::DeviceBackend* accrue_device_backend(int abi) {
  static accrue::CudaModule module;
  return abi == accrue::kDeviceBackendAbi ? &module : nullptr;
}

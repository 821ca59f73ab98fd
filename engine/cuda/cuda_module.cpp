// SPDX-License-Identifier: Apache-2.0
// The entry of accrue_cuda, the only library of Accrue that names CUDA or NCCL. Loading it loads LibTorch's CUDA half.
#include <c10/cuda/CUDAFunctions.h>

#include "nccl_backend.h"

namespace accrue {
namespace {

class CudaModule final : public DeviceBackend {
 public:
  int device_count() const override { return c10::cuda::device_count(); }

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

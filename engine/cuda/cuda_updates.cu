// SPDX-License-Identifier: Apache-2.0
// CUDA's part of the kernels: threads, their shared memory, and the launch. kernels/device_kernels.inl.h has the
// computation. No header of LibTorch is included here, because nvcc would parse it twice for each architecture.
#include "cuda_updates.h"

#include <string>

#include "accrue/run/base/result.h"
#include "kernels/device_kernels.inl.h"

namespace accrue {
namespace {

/// The block of threads that runs this.
struct ThreadBlock {
  __device__ std::int64_t index() const { return blockIdx.x; }
  __device__ BlockSums& sums() const {
    __shared__ BlockSums shared;
    return shared;
  }
  /// Runs a step of the block: all threads finish it before any continues.
  template <typename Step>
  __device__ __forceinline__ void each_thread(const Step& step) const {
    step(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
};

/// A kernel is passed by value in constant memory: at most 4 KiB, read by all threads without a copy.
template <typename Kernel>
__global__ void __launch_bounds__(threads_per_block) run_kernel(const __grid_constant__ Kernel kernel) {
  kernel(ThreadBlock());
}

/// Makes a device the calling thread's current one, and restores the former one.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    if (cudaGetDevice(&former_) == cudaSuccess && former_ != device) changed_ = cudaSetDevice(device) == cudaSuccess;
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(former_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int former_ = 0;
  bool changed_ = false;
};

/// Starts a kernel in the device's current stream and returns. Errors of its execution appear at a later call.
struct CudaLaunch {
  template <typename Kernel>
  void operator()(const Kernel& kernel, std::int64_t blocks) const {
    const OnDevice on_device(device);
    // Without this an earlier failure would be blamed on this kernel.
    check(cudaPeekAtLastError(), "an operation before an optimizer's kernel failed");
    run_kernel<<<static_cast<unsigned>(blocks), threads_per_block, 0, stream(device)>>>(kernel);
    check(cudaGetLastError(), "an optimizer's kernel did not start");
  }

  void check(cudaError_t status, const std::string& what) const {
    if (status == cudaSuccess) return;
    throw ResultError({ErrorCode::device,
                       what + " on cuda:" + std::to_string(device) + ": " + cudaGetErrorString(status), "launch.device",
                       "Set launch.device = \"cpu\", or see what else uses the device"});
  }

  int device;
  CurrentStream stream;
};

}  // namespace

std::unique_ptr<DeviceUpdates> make_cuda_updates(int device, CurrentStream stream) {
  return std::make_unique<LaunchedUpdates<CudaLaunch>>(CudaLaunch{device, stream});
}

}  // namespace accrue

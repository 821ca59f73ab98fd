// SPDX-License-Identifier: Apache-2.0
// Interface of accrue_cuda. The engine links neither CUDA nor NCCL: it opens that library when a CUDA device is
// requested (device_loader.h), and uses only this interface.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>

#include "accrue/comm/communicator.h"
#include "accrue/run/base/result.h"
#include "accrue/run/facts/host_facts.h"
#include "group.h"
#include "kernels/device_updates.h"

namespace c10d {
class Store;
}

namespace accrue {

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// Returns 0 without a GPU or a driver.
  virtual int device_count() const = 0;
  virtual DeviceFacts facts(int device) const = 0;
  /// Makes it the calling thread's current device.
  virtual void use_device(int device) = 0;
  /// Memory of this process on the device.
  virtual MemoryUse memory(int device) const = 0;
  /// Collective: the group. Errors: device, rendezvous.
  virtual Result<std::unique_ptr<Communicator>> nccl_communicator(const CommGroup& group,
                                                                  const c10::intrusive_ptr<c10d::Store>& store,
                                                                  int device) = 0;
  /// The device's own kernels of the optimizers' rules. Null if CMake found no suitable CUDA compiler: install nvcc of
  /// LibTorch's CUDA release, 12.8 or later, then configure and build again. It lives as long as the process.
  virtual const DeviceUpdates* updates(int device) = 0;
};

/// The library's only entry point. abi: kDeviceBackendAbi of the caller; null if it differs from the library's.
constexpr int kDeviceBackendAbi = 5;
using DeviceBackendEntry = DeviceBackend* (*)(int abi);
constexpr const char* kDeviceBackendSymbol = "accrue_device_backend";

}  // namespace accrue

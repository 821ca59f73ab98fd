// SPDX-License-Identifier: Apache-2.0
// What accrue_cuda offers. The engine links neither CUDA nor NCCL: it opens that library when a CUDA device is asked
// for (device_loader.h) and sees only this.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>

#include "accrue/comm/communicator.h"
#include "accrue/run/host_facts.h"
#include "accrue/run/result.h"
#include "group.h"
#include "kernels/device_updates.h"

namespace c10d {
class Store;
}

namespace accrue {

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// 0 where there is no GPU or no driver.
  virtual int device_count() const = 0;
  virtual DeviceFacts facts(int device) const = 0;
  /// Makes it the calling thread's current one.
  virtual void use_device(int device) = 0;
  /// What this process holds there.
  virtual MemoryUse memory(int device) const = 0;
  /// Collective: the group. Errors: device, rendezvous.
  virtual Result<std::unique_ptr<Communicator>> nccl_communicator(const CommGroup& group,
                                                                  const c10::intrusive_ptr<c10d::Store>& store,
                                                                  int device) = 0;
  /// The device's own kernels of the optimizers' rules. Null where CMake found no CUDA compiler that fits: install nvcc
  /// of LibTorch's CUDA release, 12.8 or later, then configure and build again. It lives as long as the process.
  virtual const DeviceUpdates* updates(int device) = 0;
};

/// The library's one entry. abi: kDeviceBackendAbi of the caller; null where it differs from the library's.
constexpr int kDeviceBackendAbi = 5;
using DeviceBackendEntry = DeviceBackend* (*)(int abi);
constexpr const char* kDeviceBackendSymbol = "accrue_device_backend";

}  // namespace accrue

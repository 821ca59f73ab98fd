// SPDX-License-Identifier: Apache-2.0
#include "device_loader.h"

#include <dlfcn.h>

#include <string>

namespace accrue {
namespace {

const char* const kLibrary = "libaccrue_cuda.so";
const char* const kUseCpu =
    "Set launch.device = \"cpu\" and parallel.backend = \"auto\", or install the NVIDIA driver and the full LibTorch "
    "set";

std::string own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&load_device_backend), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

Result<DeviceBackend*> open_library() {
  // Symbols stay local: constructors of LibTorch's CUDA half register it with the CPU half.
  void* library = ::dlopen((own_folder() + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* said = library == nullptr ? ::dlerror() : nullptr;
  const std::string beside = said != nullptr ? said : "";
  if (library == nullptr) library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(ErrorCode::device, "the CUDA module could not be opened: " + beside, kLibrary, kUseCpu);
  }
  const auto entry = reinterpret_cast<DeviceBackendEntry>(::dlsym(library, kDeviceBackendSymbol));
  DeviceBackend* backend = entry != nullptr ? entry(kDeviceBackendAbi) : nullptr;
  if (backend == nullptr) {
    return fail(ErrorCode::device, "the CUDA module is of another version than the engine", kLibrary,
                "Build both together");
  }
  return backend;
}

}  // namespace

Result<DeviceBackend*> load_device_backend() {
  static const Result<DeviceBackend*> loaded = open_library();
  return loaded;
}

Result<int> own_cuda_device(std::int64_t local_rank) {
  const auto backend = load_device_backend();
  if (!backend) return tl::unexpected(backend.error());
  const int devices = (*backend)->device_count();
  if (devices == 0)
    return fail(ErrorCode::device, "CUDA is needed, but this host shows no CUDA device", "launch.device", kUseCpu);
  if (local_rank >= devices)
    return fail(ErrorCode::device,
                "rank " + std::to_string(local_rank) + " of this host has no CUDA device of its own: there are " +
                    std::to_string(devices),
                "parallel.data",
                "Each rank needs a device; start at most " + std::to_string(devices) + " ranks on this host");
  return static_cast<int>(local_rank);
}

Result<std::unique_ptr<Communicator>> make_nccl_communicator(const CommGroup& group,
                                                             const c10::intrusive_ptr<c10d::Store>& store,
                                                             std::int64_t local_rank) {
  const auto backend = load_device_backend();
  if (!backend) return tl::unexpected(backend.error());
  return (*backend)->nccl_communicator(group, store, static_cast<int>(local_rank));
}

}  // namespace accrue

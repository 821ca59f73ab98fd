// SPDX-License-Identifier: Apache-2.0
#include "train/compute_device.h"

#include <ATen/Context.h>

#include <utility>

#include "comm/device_loader.h"

namespace accrue {
namespace {

class DeviceSource final : public DataSource {
 public:
  DeviceSource(std::unique_ptr<DataSource> data, at::Device device) : data_(std::move(data)), device_(device) {}

  std::int64_t size(Split split) const override { return data_->size(split); }

  Batch batch(Split split, std::span<const std::int64_t> samples) override {
    Batch batch = data_->batch(split, samples);
    for (at::Tensor* each : {&batch.inputs, &batch.targets, &batch.positions, &batch.document_starts, &batch.types,
                             &batch.padding, &batch.order, &batch.decoder_inputs})
      if (each->defined()) *each = each->to(device_);
    return batch;
  }

 private:
  std::unique_ptr<DataSource> data_;
  at::Device device_;
};

}  // namespace

Result<at::Device> open_compute_device(DeviceKind kind, std::int64_t local_rank) {
  if (kind == DeviceKind::cpu) return at::Device(at::kCPU);
  const auto index = own_cuda_device(local_rank);
  if (!index) return tl::unexpected(index.error());
  (*load_device_backend())->use_device(*index);
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(*index));
}

std::unique_ptr<DataSource> on_device(std::unique_ptr<DataSource> data, at::Device device) {
  if (device.is_cpu()) return data;
  return std::make_unique<DeviceSource>(std::move(data), device);
}

at::Generator default_generator(at::Device device) {
  return at::globalContext().defaultGenerator(device);
}

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// Collectives between GPUs: LibTorch's ProcessGroupNCCL, called directly. The communicator is connected at once rather
// than at the first call, so that the first update is no outlier. Small control sums may come as CPU tensors; they
// travel through a device copy, because NCCL sees device memory only.
//
// After a failure the group is aborted: NCCL's own watchdog would otherwise end the process in its own time. A clean
// end shuts it down before static destruction.
#include "nccl_backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAFunctions.h>

#include <utility>
#include <vector>

#include "comm/error_text.h"

namespace accrue {
namespace {

constexpr std::chrono::milliseconds kNoDeadline = std::chrono::hours(24 * 365);

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const CommGroup& group, c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl, int device)
      : group_(group), nccl_(std::move(nccl)), device_(at::kCUDA, static_cast<c10::DeviceIndex>(device)) {}

  ~NcclCommunicator() override {
    try {
      failed_ ? void(nccl_->abort()) : nccl_->shutdown();
    } catch (const std::exception&) {
      // The group is given up either way; a failure was reported by the call that met it.
    }
  }

  std::int64_t rank() const override { return group_.rank; }
  std::int64_t size() const override { return group_.size(); }
  Axis axis() const override { return group_.axis; }
  std::string backend() const override { return "nccl"; }

  at::Tensor shared_buffer(std::int64_t numel, at::ScalarType dtype) override {
    return at::zeros({numel}, at::TensorOptions(dtype).device(device_));
  }

 protected:
  void do_all_reduce(at::Tensor& tensor, Reduce op) override {
    std::vector<at::Tensor> tensors{on_device(tensor)};
    c10d::AllreduceOptions options;
    options.reduceOp = op == Reduce::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    guarded("all_reduce", [&] { return nccl_->allreduce(tensors, options); });
    hand_back(tensor, tensors[0]);
  }

  void do_broadcast(at::Tensor& tensor, std::int64_t root) override {
    std::vector<at::Tensor> tensors{on_device(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    guarded("broadcast", [&] { return nccl_->broadcast(tensors, options); });
    hand_back(tensor, tensors[0]);
  }

  void do_all_gather(at::Tensor& out, const at::Tensor& in) override {
    at::Tensor gathered = out.is_cuda() ? out : at::empty(out.sizes(), out.options().device(device_));
    at::Tensor mine = on_device(in);
    guarded("all_gather", [&] { return nccl_->_allgather_base(gathered, mine, c10d::AllgatherOptions()); });
    hand_back(out, gathered);
  }

  void do_barrier() override {
    c10d::BarrierOptions options;
    options.device_ids = {device_.index()};
    guarded("barrier", [&] { return nccl_->barrier(options); });
  }

  /// NCCL's watchdog measures on the monotonic clock, a freeze included.
  void do_set_untimed(bool untimed) override { nccl_->setTimeout(untimed ? kNoDeadline : group_.timeout); }

 private:
  at::Tensor on_device(const at::Tensor& tensor) const { return tensor.is_cuda() ? tensor : tensor.to(device_); }

  static void hand_back(at::Tensor& tensor, const at::Tensor& result) {
    if (!tensor.is_same(result)) tensor.copy_(result);
  }

  template <typename F>
  void guarded(const char* op, F&& start) {
    if (failed_) throw CommError("the group has failed before and cannot be used again");
    try {
      start()->wait();
    } catch (const std::exception& error) {
      failed_ = true;
      throw CommError(std::string(op) + " on the " + std::string(to_string(group_.axis)) +
                      " axis failed: " + first_line(error.what()));
    }
  }

  CommGroup group_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
  at::Device device_;
  bool failed_ = false;
};

}  // namespace

Result<std::unique_ptr<Communicator>> make_nccl_group(const CommGroup& group,
                                                      const c10::intrusive_ptr<c10d::Store>& store, int device) {
  try {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = group.timeout;
    auto nccl = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, static_cast<int>(group.rank),
                                                            static_cast<int>(group.size()), std::move(options));
    nccl->eagerConnectSingleDevice(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device)));
    return std::make_unique<NcclCommunicator>(group, std::move(nccl), device);
  } catch (const std::exception& error) {
    return fail(ErrorCode::rendezvous, "NCCL could not connect the GPUs: " + first_line(error.what()), "backend nccl",
                "NCCL_DEBUG=INFO in the environment makes it say more");
  }
}

}  // namespace accrue

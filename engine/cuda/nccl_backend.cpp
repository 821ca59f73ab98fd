// SPDX-License-Identifier: Apache-2.0
// Collectives between GPUs: LibTorch's ProcessGroupNCCL, called directly. The communicator is connected at once rather
// than at the first call, so that the first update is no outlier. Small control sums may come as CPU tensors; they
// travel through a device copy, because NCCL sees device memory only.
//
// After a failure the group is aborted: NCCL's own watchdog would otherwise end the process in its own time. A clean
// end shuts it down before static destruction.
#include "nccl_backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAFunctions.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "accrue/run/monotonic_clock.h"
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
  std::string axis() const override { return group_.axis; }
  std::string backend() const override { return "nccl"; }

  at::Tensor shared_buffer(std::int64_t numel, at::ScalarType dtype) override {
    return at::zeros({numel}, at::TensorOptions(dtype).device(device_));
  }

 protected:
  using Call = std::unique_ptr<PendingCall>;

  /// The maximum is taken here: whether NCCL's keeps a NaN is not written down anywhere.
  Call do_all_reduce(at::Tensor tensor, Reduce op, Waits) override {
    at::Tensor mine = on_device(tensor);
    if (op == Reduce::max) {
      at::Tensor all = at::empty({size() * tensor.numel()}, mine.options());
      at::Tensor flat = mine.view({tensor.numel()});
      return begun(
          "all_reduce", [&] { return nccl_->_allgather_base(all, flat, c10d::AllgatherOptions()); },
          [this, all, tensor]() mutable {
            tensor.copy_(all.view({size(), -1}).amax(0).view_as(tensor));
          });
    }
    std::vector<at::Tensor> tensors{mine};
    return begun(
        "all_reduce", [&] { return nccl_->allreduce(tensors, c10d::AllreduceOptions()); }, back(tensor, mine));
  }

  Call do_reduce_scatter(at::Tensor out, at::Tensor in, Waits) override {
    at::Tensor mine = on_device(in);
    at::Tensor piece = out.is_cuda() ? out : at::empty(out.sizes(), out.options().device(device_));
    return begun(
        "reduce_scatter", [&] { return nccl_->_reduce_scatter_base(piece, mine, c10d::ReduceScatterOptions()); },
        back(out, piece));
  }

  Call do_all_gather(at::Tensor out, at::Tensor in, Waits) override {
    at::Tensor gathered = out.is_cuda() ? out : at::empty(out.sizes(), out.options().device(device_));
    at::Tensor mine = on_device(in);
    return begun(
        "all_gather", [&] { return nccl_->_allgather_base(gathered, mine, c10d::AllgatherOptions()); },
        back(out, gathered));
  }

  Call do_broadcast(at::Tensor tensor, std::int64_t root) override {
    std::vector<at::Tensor> tensors{on_device(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return begun(
        "broadcast", [&] { return nccl_->broadcast(tensors, options); }, back(tensor, tensors[0]));
  }

  Call do_send(at::Tensor tensor, std::int64_t to, MessageLabel) override {
    std::vector<at::Tensor> tensors{on_device(tensor)};
    return message("send", [this, tensors, to]() mutable { nccl_->send(tensors, static_cast<int>(to), 0); });
  }

  Call do_receive(at::Tensor tensor, std::int64_t from, MessageLabel) override {
    at::Tensor mine = tensor.is_cuda() ? tensor : at::empty(tensor.sizes(), tensor.options().device(device_));
    std::vector<at::Tensor> tensors{mine};
    return message(
        "receive", [this, tensors, from]() mutable { nccl_->recv(tensors, static_cast<int>(from), 0); },
        back(tensor, mine));
  }

  Call do_barrier() override {
    c10d::BarrierOptions options;
    options.device_ids = {device_.index()};
    return begun("barrier", [&] { return nccl_->barrier(options); });
  }

  /// NCCL's watchdog measures on the monotonic clock, a freeze included.
  void do_set_untimed(bool untimed) override { nccl_->setTimeout(untimed ? kNoDeadline : group_.timeout); }

 private:
  using NcclWork = c10::intrusive_ptr<c10d::Work>;

  struct Operation final : PendingCall {
    NcclCommunicator* owner = nullptr;
    std::string op;
    std::shared_ptr<NcclWork> work =
        std::make_shared<NcclWork>();  ///< keeps its tensors; a message has it once it goes
    std::function<void()> afterwards;
    std::int64_t wait() override { return owner->finish(*this); }
  };

  at::Tensor on_device(const at::Tensor& tensor) const { return tensor.is_cuda() ? tensor : tensor.to(device_); }

  /// Copies the result to where the caller wants it, if that is another place.
  static std::function<void()> back(const at::Tensor& tensor, const at::Tensor& result) {
    if (tensor.is_same(result)) return {};
    return [tensor, result] { tensor.copy_(result); };
  }

  struct Message {
    std::function<void()> start;
    std::shared_ptr<NcclWork> work;
  };

  std::unique_ptr<Operation> made(const char* op, std::function<void()> afterwards) {
    if (failed_) throw CommError("the group has failed before and cannot be used again");
    auto operation = std::make_unique<Operation>();
    operation->owner = this;
    operation->op = op;
    operation->afterwards = std::move(afterwards);
    return operation;
  }

  template <typename F>
  Call begun(const char* op, F&& start, std::function<void()> afterwards = {}) {
    send_off();
    auto operation = made(op, std::move(afterwards));
    guarded(op, [&] { *operation->work = start(); });
    return operation;
  }

  /// NCCL takes the messages of a pair in order, and a send ends with its receive: two ranks that send to each other
  /// would wait forever. So messages stay here until one is waited for or another call begins, and go as one group.
  Call message(const char* op, std::function<void()> start, std::function<void()> afterwards = {}) {
    auto operation = made(op, std::move(afterwards));
    messages_.push_back({std::move(start), operation->work});
    return operation;
  }

  void send_off() {
    const std::vector<Message> going = std::exchange(messages_, {});
    if (going.empty()) return;
    guarded("send and receive", [&] {
      nccl_->startCoalescing();
      for (const Message& each : going) each.start();
      const NcclWork work = nccl_->endCoalescing();
      for (const Message& each : going) *each.work = work;
    });
  }

  std::int64_t finish(Operation& operation) {
    send_off();
    guarded(operation.op, [&] {
      (*operation.work)->wait();
      if (operation.afterwards) operation.afterwards();
    });
    return monotonic_ns();
  }

  template <typename F>
  void guarded(const std::string& op, F&& call) {
    try {
      call();
    } catch (const std::exception& error) {
      failed_ = true;
      throw CommError(op + " on the " + group_.axis + " axis failed: " + first_line(error.what()));
    }
  }

  CommGroup group_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
  at::Device device_;
  std::vector<Message> messages_;  ///< started, and not yet on their way
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

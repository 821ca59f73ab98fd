// SPDX-License-Identifier: Apache-2.0
// Collectives between GPUs: LibTorch's ProcessGroupNCCL, called directly. The communicator is connected at once instead
// of at the first call, so that the first update is not an outlier. Small control sums may be CPU tensors; they pass
// through a device copy, because NCCL supports only device memory.
//
// A call waits on the device, so the host need not notice that a peer is lost or stopped. LibTorch's watchdog does, and
// is configured to leave the process alone. It marks the group at the first error and at the time-out, and soon aborts
// running calls, so that the device continues. The mark is read at every wait, and repeatedly if the host waits for the
// result, as at each boundary. If only the device waits, as for a loss in between, it continues when the call has been
// aborted. The first message between two ranks connects them, and waits for a lost rank that the watchdog does not see;
// a supervisor does.
//
// After a failure the group is aborted. A clean end shuts it down before static destruction.
#include "nccl_backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "accrue/run/base/monotonic_clock.h"
#include "comm/error_text.h"

namespace accrue {
namespace {

constexpr std::chrono::milliseconds kNoDeadline = std::chrono::hours(24 * 365);
constexpr std::chrono::microseconds kPollInterval{50};

/// For groups made from here on, unless the user has set the variables. NCCL connects collectives when a group is made:
/// a first call that connects them would wait for a lost rank that the watchdog does not see. The watchdog uses
/// ErrorHandlingMode's CleanUpOnly, and waits 250 ms for a dump before it aborts.
void set_up_nccl() {
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", 0);
  ::setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "250", 0);
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const CommGroup& group, c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl, int device)
      : group_(group), nccl_(std::move(nccl)), device_(at::kCUDA, static_cast<c10::DeviceIndex>(device)) {}

  ~NcclCommunicator() override {
    try {
      failed_ ? void(nccl_->abort()) : nccl_->shutdown();
    } catch (const std::exception&) {
      // The group is abandoned either way; the failed call has reported its error.
    }
  }

  std::int64_t rank() const override { return group_.rank; }
  std::int64_t size() const override { return group_.size(); }
  std::string axis() const override { return group_.axis; }
  std::string backend() const override { return "nccl"; }

  void push() override { send_off(); }

  at::Tensor shared_buffer(std::int64_t numel, at::ScalarType dtype) override {
    return at::zeros({numel}, at::TensorOptions(dtype).device(device_));
  }

 protected:
  using Call = std::unique_ptr<PendingCall>;

  /// The maximum is computed here, because it is undocumented whether NCCL's keeps a NaN.
  Call do_all_reduce(at::Tensor tensor, Reduce op, Waits) override {
    at::Tensor mine = on_device(tensor);
    if (op == Reduce::max) {
      // [ranks, numel]; amax() keeps a NaN, so that a rank's overflow reaches all.
      at::Tensor all = at::empty({size() * tensor.numel()}, mine.options());
      at::Tensor flat = mine.view({tensor.numel()});
      return begun("all_reduce", [&] { return nccl_->_allgather_base(all, flat, c10d::AllgatherOptions()); },
                   {[this, all, tensor]() mutable {
                      tensor.copy_(all.view({size(), -1}).amax(0).view_as(tensor));
                    },
                    !tensor.is_cuda()});
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
    return message("send", to, [this, tensors, to]() mutable { nccl_->send(tensors, static_cast<int>(to), 0); }, {});
  }

  Call do_receive(at::Tensor tensor, std::int64_t from, MessageLabel) override {
    at::Tensor mine = tensor.is_cuda() ? tensor : at::empty(tensor.sizes(), tensor.options().device(device_));
    std::vector<at::Tensor> tensors{mine};
    return message(
        "receive", from, [this, tensors, from]() mutable { nccl_->recv(tensors, static_cast<int>(from), 0); },
        back(tensor, mine));
  }

  Call do_barrier() override {
    c10d::BarrierOptions options;
    options.device_ids = {device_.index()};
    return begun("barrier", [&] { return nccl_->barrier(options); }, {.for_host = true});
  }

  /// NCCL's watchdog uses the monotonic clock, which advances during a freeze.
  void do_set_untimed(bool untimed) override { nccl_->setTimeout(untimed ? kNoDeadline : group_.timeout); }

 private:
  using NcclWork = c10::intrusive_ptr<c10d::Work>;

  /// Remaining work when a call has ended.
  struct Ending {
    std::function<void()> call = {};
    bool for_host = false;  ///< the host waits for it, not only the device
  };

  struct Operation final : PendingCall {
    NcclCommunicator* owner = nullptr;
    std::string op;
    std::shared_ptr<NcclWork> work =
        std::make_shared<NcclWork>();  ///< keeps its tensors; a message gets it when it is sent
    Ending ending;
    std::int64_t wait() override { return owner->finish(*this); }
  };

  at::Tensor on_device(const at::Tensor& tensor) const { return tensor.is_cuda() ? tensor : tensor.to(device_); }

  /// Copies the result to the caller's tensor, if that is another one.
  static Ending back(const at::Tensor& tensor, const at::Tensor& result) {
    if (tensor.is_same(result)) return {};
    return {[tensor, result] { tensor.copy_(result); }, true};
  }

  struct Message {
    std::string op;
    std::int64_t peer;
    std::function<void()> start;
    std::shared_ptr<NcclWork> work;
  };

  std::unique_ptr<Operation> made(const char* op, Ending ending) {
    if (failed_) throw CommError("the group has failed before and cannot be used again");
    auto operation = std::make_unique<Operation>();
    operation->owner = this;
    operation->op = op;
    operation->ending = std::move(ending);
    return operation;
  }

  template <typename F>
  Call begun(const char* op, F&& start, Ending ending) {
    send_off();
    auto operation = made(op, std::move(ending));
    guarded(op, [&] { *operation->work = start(); });
    return operation;
  }

  /// NCCL processes the messages of a pair in order, and a send ends with its receive: two ranks that send to each
  /// other would deadlock. So messages stay here until they are pushed, one is waited for or another call begins, and
  /// are sent as one group. Of several sends to a rank in one group, NCCL would begin the second only when a receive
  /// beside the first has ended. So the second waits here for the next group.
  Call message(const char* op, std::int64_t peer, std::function<void()> start, Ending ending) {
    if (std::ranges::any_of(messages_, [&](const Message& each) { return each.op == op && each.peer == peer; }))
      send_off();
    auto operation = made(op, std::move(ending));
    messages_.push_back({op, peer, std::move(start), operation->work});
    return operation;
  }

  void send_off() {
    const std::vector<Message> going = std::exchange(messages_, {});
    if (going.empty()) return;
    guarded("send and receive", [&] {
      nccl_->startCoalescing();
      try {
        for (const Message& each : going) each.start();
      } catch (const std::exception&) {
        close_group();
        throw;
      }
      const NcclWork work = nccl_->endCoalescing();
      for (const Message& each : going) *each.work = work;
    });
  }

  /// Call after one of its messages could not be started: NCCL groups all calls until the group is closed.
  void close_group() {
    try {
      (void)nccl_->endCoalescing();
    } catch (const std::exception&) {
      // The error of the failed start is reported.
    }
  }

  std::int64_t finish(Operation& operation) {
    send_off();
    if (failed_ || !*operation.work)  // messages of one group all fail with the first
      throw CommError(operation.op + " on the " + group_.axis + " axis failed with an earlier call of the group");
    guarded(operation.op, [&] {
      c10d::Work& work = **operation.work;
      while (operation.ending.for_host && !work.isCompleted()) {
        check();
        std::this_thread::sleep_for(kPollInterval);
      }
      if (work.exception()) std::rethrow_exception(work.exception());
      check();
      work.wait();
      if (operation.ending.call) operation.ending.call();
    });
    return monotonic_ns();
  }

  /// Checks the watchdog's findings.
  void check() {
    switch (nccl_->getError()) {
      case c10d::ErrorType::SUCCESS:
        return;
      case c10d::ErrorType::TIMEOUT:
        throw std::runtime_error("a call of this group did not end within " + std::to_string(group_.timeout.count()) +
                                 " ms: a rank of it is stopped, lost or in another call");
      default:
        throw std::runtime_error("NCCL reports an error of this group: a rank of it may be lost");
    }
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
  std::vector<Message> messages_;  ///< started, but not yet sent
  bool failed_ = false;
};

}  // namespace

Result<std::unique_ptr<Communicator>> make_nccl_group(const CommGroup& group,
                                                      const c10::intrusive_ptr<c10d::Store>& store, int device) {
  try {
    set_up_nccl();
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

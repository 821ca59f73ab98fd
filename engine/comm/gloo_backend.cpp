// SPDX-License-Identifier: Apache-2.0
// Collectives over sockets, for ranks on several hosts: LibTorch's ProcessGroupGloo, called directly rather than
// through the dispatcher. LibTorch carries Gloo but not its headers; Debian's older ones declare enough to construct
// the process group. They are included here alone, this file is compiled with hidden visibility and no Gloo symbol
// leaves the library, so the two versions cannot meet.
//
// Gloo's own time-outs are out of the way after the connection is made: they measure on a clock that goes on while the
// process is frozen. The caller waits for the end of an operation itself, with its own patience (patience.h).
//
// On one host the device listens on 127.0.0.1 only. Gloo says that a connection broke, not whose: where the peers live
// on this host, their pidfds tell which one died. After a failure the process group is abandoned rather than destroyed,
// because its destructor waits for operations that can no longer end.
#include "gloo_backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <ATen/ops/from_blob.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "error_text.h"
#include "patience.h"
#include "peer_watch.h"

namespace accrue {
namespace {

constexpr std::chrono::milliseconds kNameTheDead{300};  // a broken connection can be seen before its process has ended

constexpr std::chrono::milliseconds kNoDeadline = std::chrono::hours(24 * 365);

/// Told by Gloo's thread that an operation has ended; outlives a caller that gave up.
class Ending {
 public:
  void happen() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  /// False where the patience came to its end first.
  bool wait(Patience patience) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, patience.slice(), [this] { return ended_; })) {
      if (patience.exhausted()) return false;
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

/// The same memory as bytes: Gloo then needs to know no dtype where nothing is added.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return at::from_blob(tensor.mutable_data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())},
                       at::TensorOptions(at::kByte));
}

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const CommGroup& group, c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo)
      : group_(group), watch_(group), gloo_(std::move(gloo)) {}

  ~GlooCommunicator() override {
    if (failed_) static_cast<void>(gloo_.release());
  }

  std::int64_t rank() const override { return group_.rank; }
  std::int64_t size() const override { return group_.size(); }
  Axis axis() const override { return group_.axis; }
  std::string backend() const override { return "gloo"; }

 protected:
  void do_all_reduce(at::Tensor& tensor, Reduce op) override {
    std::vector<at::Tensor> tensors{tensor};
    c10d::AllreduceOptions options;
    options.reduceOp = op == Reduce::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    guarded("all_reduce", [&] { return gloo_->allreduce(tensors, options); });
  }

  void do_broadcast(at::Tensor& tensor, std::int64_t root) override {
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    guarded("broadcast", [&] { return gloo_->broadcast(tensors, options); });
  }

  void do_all_gather(at::Tensor& out, const at::Tensor& in) override {
    std::vector<at::Tensor> inputs{as_bytes(in)};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (std::int64_t r = 0; r < size(); ++r) outputs[0].push_back(as_bytes(out[r]));
    guarded("all_gather", [&] { return gloo_->allgather(outputs, inputs); });
  }

  void do_barrier() override {
    guarded("barrier", [&] { return gloo_->barrier(); });
  }

  void do_set_untimed(bool untimed) override { untimed_ = untimed; }

 private:
  template <typename F>
  void guarded(const char* op, F&& start) {
    if (failed_) throw CommError("the group has failed before and cannot be used again");
    try {
      const auto work = start();
      const auto ending = std::make_shared<Ending>();
      work->getFuture()->addCallback([ending](c10::ivalue::Future&) { ending->happen(); });
      if (ending->wait(Patience(group_.timeout, untimed_))) return void(work->wait());
    } catch (const std::exception& error) {
      failed_ = true;
      throw CommError(explain("the connection to a peer failed in ") + doing(op) + ": " + first_line(error.what()));
    }
    failed_ = true;
    throw CommError(explain("a peer did not come within " + std::to_string(group_.timeout.count()) + " ms to ") +
                    doing(op));
  }

  std::string doing(const char* op) const {
    return std::string(op) + " on the " + std::string(to_string(group_.axis)) + " axis";
  }

  /// A dead peer's name, or otherwise what was seen.
  std::string explain(std::string seen) const {
    const auto dead = watch_.first_ended(kNameTheDead);
    return dead ? group_.name_of(*dead) + " ended while the others waited for it in " : std::move(seen);
  }

  CommGroup group_;
  PeerWatch watch_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  bool failed_ = false;
  bool untimed_ = false;
};

}  // namespace

Result<std::unique_ptr<Communicator>> make_gloo_communicator(const CommGroup& group,
                                                             const c10::intrusive_ptr<c10d::Store>& store) {
  try {
    auto options = group.one_host ? c10d::ProcessGroupGloo::Options::create(group.join_timeout)
                                  : c10d::ProcessGroupGloo::Options::create_default(group.join_timeout);
    if (group.one_host) options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    options->threads = 1;
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(group.rank),
                                                            static_cast<int>(group.size()), std::move(options));
    gloo->setTimeout(kNoDeadline);
    return std::make_unique<GlooCommunicator>(group, std::move(gloo));
  } catch (const std::exception& error) {
    return fail(ErrorCode::rendezvous, "Gloo could not connect the ranks: " + first_line(error.what()), "backend gloo",
                "See the ranks' logs; on several hosts, GLOO_SOCKET_IFNAME names the network interface to use");
  }
}

}  // namespace accrue

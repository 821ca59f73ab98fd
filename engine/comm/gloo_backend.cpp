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

#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <signal.h>
#include <chrono>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "accrue/run/monotonic_clock.h"
#include "error_text.h"
#include "patience.h"
#include "peer_watch.h"

namespace accrue {
namespace {

constexpr std::chrono::milliseconds kNameTheDead{300};  // a broken connection can be seen before its process has ended
constexpr std::chrono::milliseconds kLook{5};

constexpr std::chrono::milliseconds kNoDeadline = std::chrono::hours(24 * 365);

/// Told by another thread that an operation has ended; outlives a caller that gave up.
class Ending {
 public:
  void happen() {
    const std::lock_guard lock(mutex_);
    end_ns_ = monotonic_ns();
    ended_ = true;
    changed_.notify_all();
  }
  std::int64_t end_ns() {
    const std::lock_guard lock(mutex_);
    return end_ns_;
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
  std::int64_t end_ns_ = 0;
};

/// The same memory as bytes: Gloo then needs to know no dtype where nothing is added.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return at::from_blob(
      tensor.mutable_data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())}, [tensor](void*) {},
      at::TensorOptions(at::kByte));
}

void require_cpu(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) throw std::invalid_argument("backend gloo moves CPU tensors only; use backend nccl on a GPU");
}

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const CommGroup& group, c10::intrusive_ptr<c10d::Store> store,
                   c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo)
      : group_(group), watch_(group), store_(std::move(store)), gloo_(std::move(gloo)) {}

  ~GlooCommunicator() override {
    if (failed_ || under_way_ > 0) static_cast<void>(gloo_.release());
  }

  std::int64_t rank() const override { return group_.rank; }
  std::int64_t size() const override { return group_.size(); }
  std::string axis() const override { return group_.axis; }
  std::string backend() const override { return "gloo"; }

 protected:
  using Call = std::unique_ptr<PendingCall>;

  /// Gloo's own maximum drops a NaN that meets a number in one order and not in the other.
  Call do_all_reduce(at::Tensor tensor, Reduce op, Waits) override {
    require_cpu(tensor);
    if (op == Reduce::sum) {
      std::vector<at::Tensor> tensors{tensor};
      return begun("all_reduce", [&] { return gloo_->allreduce(tensors); });
    }
    at::Tensor all = at::empty({size(), tensor.numel()}, tensor.options());
    return gathered("all_reduce", all, tensor, [all, tensor]() mutable { tensor.copy_(all.amax(0).view_as(tensor)); });
  }

  /// As an all-reduce, which is what Gloo itself makes of it.
  Call do_reduce_scatter(at::Tensor out, at::Tensor in, Waits) override {
    require_cpu(out);
    require_cpu(in);
    at::Tensor sum = in.clone();
    std::vector<at::Tensor> tensors{sum};
    return begun(
        "reduce_scatter", [&] { return gloo_->allreduce(tensors); },
        [this, sum, out]() mutable { out.copy_(sum.narrow(0, rank() * out.size(0), out.size(0))); });
  }

  Call do_all_gather(at::Tensor out, at::Tensor in, Waits) override {
    require_cpu(out);
    require_cpu(in);
    return gathered("all_gather", out.view({size(), in.numel()}), in, {});
  }

  Call do_broadcast(at::Tensor tensor, std::int64_t root) override {
    require_cpu(tensor);
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return begun("broadcast", [&] { return gloo_->broadcast(tensors, options); });
  }

  Call do_send(at::Tensor tensor, std::int64_t to) override {
    require_cpu(tensor);
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    return message("send", tensors, to, [&] { return gloo_->send(tensors, static_cast<int>(to), 0); });
  }

  Call do_receive(at::Tensor tensor, std::int64_t from) override {
    require_cpu(tensor);
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    return message("receive", tensors, from, [&] { return gloo_->recv(tensors, static_cast<int>(from), 0); });
  }

  Call do_barrier() override {
    return begun("barrier", [&] { return gloo_->barrier(); });
  }

  void do_set_untimed(bool untimed) override { untimed_ = untimed; }

 private:
  using GlooWork = c10::intrusive_ptr<c10d::Work>;

  /// What is kept for an operation under way. A message has no callback at its end: a thread waits for it.
  struct Operation final : PendingCall {
    GlooCommunicator* owner = nullptr;
    std::string op;
    std::int64_t peer = -1;  ///< of a message
    GlooWork work;
    std::vector<at::Tensor> kept;
    std::function<void()> afterwards;
    std::int64_t wait() override { return owner->finish(*this); }
  };

  /// Shapes: out [size, in.numel()].
  Call gathered(const char* op, const at::Tensor& out, const at::Tensor& in, std::function<void()> afterwards) {
    std::vector<at::Tensor> inputs{as_bytes(in)};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (std::int64_t r = 0; r < size(); ++r) outputs[0].push_back(as_bytes(out[r]));
    return begun(
        op, [&] { return gloo_->allgather(outputs, inputs); }, std::move(afterwards));
  }

  template <typename F>
  std::unique_ptr<Operation> begun(const char* op, F&& start, std::function<void()> afterwards = {}) {
    if (failed_) throw CommError("the group has failed before and cannot be used again");
    auto operation = std::make_unique<Operation>();
    operation->owner = this;
    operation->op = op;
    operation->afterwards = std::move(afterwards);
    try {
      operation->work = start();
    } catch (const std::exception& error) {
      fail(*operation, error);
    }
    ++under_way_;
    return operation;
  }

  template <typename F>
  Call message(const char* op, std::vector<at::Tensor>& kept, std::int64_t peer, F&& start) {
    auto operation = begun(op, start);
    operation->peer = peer;
    operation->kept = kept;
    return operation;
  }

  std::int64_t finish(Operation& operation) {
    const auto ending = std::make_shared<Ending>();
    if (operation.peer < 0) {
      operation.work->getFuture()->addCallback([ending](c10::ivalue::Future&) { ending->happen(); });
    } else {
      std::thread([ending, work = operation.work, kept = operation.kept] {
        try {
          work->wait();
        } catch (const std::exception&) {
          // The caller asks the work itself.
        }
        ending->happen();
      }).detach();
    }
    if (!ending->wait(Patience(group_.timeout, untimed_))) {
      failed_ = true;
      const auto late = operation.peer < 0 ? "a peer" : group_.name_of(static_cast<std::size_t>(operation.peer));
      throw CommError(explain(late + " did not come " + group_.within() + " to ") + doing(operation));
    }
    try {
      // A message has been waited for already, and can be only once.
      if (operation.peer < 0) operation.work->wait();
      if (operation.work->exception()) std::rethrow_exception(operation.work->exception());
    } catch (const std::exception& error) {
      fail(operation, error);
    }
    if (operation.afterwards) operation.afterwards();
    --under_way_;
    return ending->end_ns();
  }

  [[noreturn]] void fail(const Operation& operation, const std::exception& error) {
    failed_ = true;
    throw CommError(explain("the connection to a peer failed in ") + doing(operation) + ": " +
                    first_line(error.what()));
  }

  std::string doing(const Operation& operation) const {
    const std::string peer =
        operation.peer < 0 ? "" : " with " + group_.name_of(static_cast<std::size_t>(operation.peer));
    return operation.op + peer + " on the " + group_.axis + " axis";
  }

  static std::string gave_up_key(std::size_t member) { return "gave up/" + std::to_string(member); }

  /// A rank that ends because another one did says so first: it is not the one to name.
  bool gave_up(std::size_t member) const {
    try {
      return store_->check({gave_up_key(member)});
    } catch (const std::exception&) {
      return false;  // the store has gone with its host
    }
  }

  /// A dead peer's name, or otherwise what was seen.
  std::string explain(std::string seen) const {
    try {
      store_->set(gave_up_key(static_cast<std::size_t>(group_.rank)), std::vector<std::uint8_t>{1});
    } catch (const std::exception&) {
    }
    const auto deadline = std::chrono::steady_clock::now() + kNameTheDead;
    do {
      for (std::size_t member = 0; member < group_.members.size(); ++member) {
        if (watch_.ended(member) && !gave_up(member))
          return group_.name_of(member) + " ended while the others waited for it in ";
      }
      std::this_thread::sleep_for(kLook);
    } while (std::chrono::steady_clock::now() < deadline);
    return seen;
  }

  CommGroup group_;
  PeerWatch watch_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  bool failed_ = false;
  bool untimed_ = false;
  int under_way_ = 0;  ///< begun and not waited for
};

/// Gloo writes to sockets whose peer may have died. That is a CommError here, not the end of the process, unless the
/// program has a handler of its own.
void ignore_broken_pipes() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_gloo_communicator(const CommGroup& group,
                                                             const c10::intrusive_ptr<c10d::Store>& store) {
  ignore_broken_pipes();
  try {
    auto options = group.one_host ? c10d::ProcessGroupGloo::Options::create(group.join_timeout)
                                  : c10d::ProcessGroupGloo::Options::create_default(group.join_timeout);
    if (group.one_host) options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    options->threads = 1;
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(group.rank),
                                                            static_cast<int>(group.size()), std::move(options));
    gloo->setTimeout(kNoDeadline);
    return std::make_unique<GlooCommunicator>(group, store, std::move(gloo));
  } catch (const std::exception& error) {
    return fail(ErrorCode::rendezvous, "Gloo could not connect the ranks: " + first_line(error.what()), "backend gloo",
                "See the ranks' logs; on several hosts, GLOO_SOCKET_IFNAME names the network interface to use");
  }
}

}  // namespace accrue

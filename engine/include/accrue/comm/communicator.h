// SPDX-License-Identifier: Apache-2.0
// One group of ranks and what they call together. Every call is counted (calls and payload bytes), so tests and the
// sync strip read the same numbers. Collectives must be called in the same order by all ranks of the group; messages
// between two ranks arrive in the order in which they were sent.
//
// A start_...() begins a call and returns at once; its tensors belong to the call until wait() has returned. Started
// calls need no further help from this thread: two ranks may start to send to each other and wait afterwards. Two
// backends ask for more care. NCCL sends a message together with the next call on the group, or at the next push():
// both sides must start the message before any other call on the group, and wait for it before they wait for anything
// else. A second message the same way between the same two ranks acts as a push() there, so with several messages
// under way each side's order must be one that works with blocking calls. Over shared memory the time-out of a started
// collective runs from its start.
//
// Errors: a lost peer or a time-out throws CommError (caught at the rank's one seam), but the first message between two
// ranks over NCCL waits for a lost one as long as nobody ends it; nothing in memory is to be trusted afterwards, and
// the group cannot be used again. std::invalid_argument: tensors or ranks that do not fit; nothing was begun. Thread:
// the training thread; one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "accrue/run/collective_purpose.h"
#include "accrue/run/rank_grid.h"

namespace accrue {

struct CommError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Reduce { sum, max };  ///< a NaN on any rank wins the maximum

/// Describes a message between stages; sender and receiver must pass the same label.
struct MessageLabel {
  enum class What : std::int32_t { tensor, input, gradient, parameter };
  What what = What::tensor;
  std::int32_t part = 0;        ///< of the model: whose input it is, or of whose output the gradient
  std::int64_t micro_step = 0;  ///< in the window, from 0
  /// "input of part 3, micro-step 2".
  std::string text() const;
  bool operator==(const MessageLabel&) const = default;
};

struct CollectiveRecord {
  std::string axis;        ///< "data", ...
  std::string op;          ///< "all_reduce", "reduce_scatter", "all_gather", "broadcast", "send", "receive", "barrier"
  std::int64_t bytes = 0;  ///< payload of this rank: what it gives, or receives
  std::int64_t begin_ns = 0;  ///< CLOCK_MONOTONIC
  /// Of the operation, which may be before wait(). Over NCCL, of one whose result stays on the device, when the wait
  /// for it was queued there.
  std::int64_t end_ns = 0;
  CollectivePurpose purpose = CollectivePurpose::agreement;
  MessageLabel::What message = MessageLabel::What::tensor;  ///< of a "send" or "receive"
};

struct OpTraffic {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< payload
};

/// Of one group, which has one axis. A started call counts when it is waited for.
struct TrafficCounters {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< payload
  std::int64_t gradient_calls = 0;
  std::int64_t gradient_bytes = 0;
  std::map<std::string, OpTraffic> by_op;  ///< under the record's op
};

/// A call that a backend has begun.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Returns when the call has ended, or on a device when all that is queued later waits for its end: CLOCK_MONOTONIC
  /// of that moment. Throws CommError. Called once.
  virtual std::int64_t wait() = 0;
};

class Communicator;

/// A started call. Wait for it: one that is dropped may never end, and its tensors may be used until the group is gone.
class [[nodiscard]] Work {
 public:
  /// Nothing to wait for.
  Work() = default;
  /// Returns when the call has ended; at once from the second time on. The communicator must still live.
  void wait();

 private:
  friend class Communicator;
  struct Begun {
    Communicator* owner = nullptr;
    CollectiveRecord record;
    std::unique_ptr<PendingCall> call;  ///< null: it has ended
  };
  std::unique_ptr<Begun> begun_;
};

class Communicator {
 public:
  static constexpr CollectivePurpose unsaid = CollectivePurpose::agreement;

  virtual ~Communicator() = default;

  virtual std::int64_t rank() const = 0;  ///< in the group
  virtual std::int64_t size() const = 0;
  virtual std::string axis() const = 0;
  virtual std::string backend() const = 0;  ///< "shm", "gloo", "nccl", "single"

  /// In place, on contiguous tensors of equal shape and dtype on all ranks. Sums are taken in rank order by the shm
  /// backend.
  void all_reduce(at::Tensor& tensor, Reduce op = Reduce::sum, CollectivePurpose purpose = unsaid) {
    start_all_reduce(tensor, op, Waits::now, purpose).wait();
  }
  [[nodiscard]] Work start_all_reduce(at::Tensor& tensor, Reduce op = Reduce::sum, CollectivePurpose purpose = unsaid) {
    return start_all_reduce(tensor, op, Waits::later, purpose);
  }
  /// Their sum, counted as gradient traffic.
  void all_reduce_gradients(at::Tensor& flat) { all_reduce(flat, Reduce::sum, CollectivePurpose::gradients); }
  [[nodiscard]] Work start_all_reduce_gradients(at::Tensor& flat) {
    return start_all_reduce(flat, Reduce::sum, CollectivePurpose::gradients);
  }
  /// out: [D, ...], the rank-th of `size` equal pieces of the sum over in: [size * D, ...]; it may be that piece of in.
  void reduce_scatter(at::Tensor& out, const at::Tensor& in, CollectivePurpose purpose = unsaid) {
    start_reduce_scatter(out, in, Waits::now, purpose).wait();
  }
  [[nodiscard]] Work start_reduce_scatter(at::Tensor& out, const at::Tensor& in, CollectivePurpose purpose = unsaid) {
    return start_reduce_scatter(out, in, Waits::later, purpose);
  }
  /// The same, counted as gradient traffic.
  void reduce_scatter_gradients(at::Tensor& out, const at::Tensor& in) {
    reduce_scatter(out, in, CollectivePurpose::gradients);
  }
  [[nodiscard]] Work start_reduce_scatter_gradients(at::Tensor& out, const at::Tensor& in) {
    return start_reduce_scatter(out, in, CollectivePurpose::gradients);
  }
  /// out: [size, *in.shape], or [size * D, ...] for in: [D, ...]; in may be the rank-th piece of out.
  void all_gather(at::Tensor& out, const at::Tensor& in, CollectivePurpose purpose = unsaid) {
    start_all_gather(out, in, Waits::now, purpose).wait();
  }
  [[nodiscard]] Work start_all_gather(at::Tensor& out, const at::Tensor& in, CollectivePurpose purpose = unsaid) {
    return start_all_gather(out, in, Waits::later, purpose);
  }
  void broadcast(at::Tensor& tensor, std::int64_t root = 0, CollectivePurpose purpose = unsaid);
  /// To and from another rank of the group; equal shapes, dtypes and labels on both sides. Shared memory and Gloo
  /// compare them and throw CommError where they differ. The record counts inputs and gradients among the activations.
  void send(const at::Tensor& tensor, std::int64_t to, MessageLabel label = {}) {
    start_send(tensor, to, label).wait();
  }
  [[nodiscard]] Work start_send(const at::Tensor& tensor, std::int64_t to, MessageLabel label = {});
  void receive(at::Tensor& tensor, std::int64_t from, MessageLabel label = {}) {
    start_receive(tensor, from, label).wait();
  }
  [[nodiscard]] Work start_receive(at::Tensor& tensor, std::int64_t from, MessageLabel label = {});
  void barrier();
  /// Sends on what was started and may be held back to travel with the next call. One message each way that both sides
  /// start before they push travel together, so two ranks may send to each other then; afterwards they are as blocking
  /// calls.
  virtual void push() {}

  /// Memory in which gradients may live so that a reduction needs no copy (the shm mapping); an ordinary tensor
  /// elsewhere. Shapes: returns [numel], zeroed. Collective: the whole axis, in the same order.
  virtual at::Tensor shared_buffer(std::int64_t numel, at::ScalarType dtype);

  /// While it lives, the calls of this communicator on this rank wait for as long as their peers live: for work of
  /// unknown length between two collectives, such as rank 0 writing a file. A peer that ends or leaves still ends the
  /// call at once. Scopes nest; the scope must not outlive the communicator. Open it on every rank that waits.
  class UntimedScope {
   public:
    explicit UntimedScope(Communicator& owner) : owner_(owner) { owner_.add_untimed(1); }
    ~UntimedScope() { owner_.add_untimed(-1); }
    UntimedScope(const UntimedScope&) = delete;
    UntimedScope& operator=(const UntimedScope&) = delete;

   private:
    Communicator& owner_;
  };
  [[nodiscard]] UntimedScope untimed() { return UntimedScope(*this); }

  const TrafficCounters& traffic() const { return traffic_; }
  /// Called after each call with its record (sync events), for a started one in wait(); may be empty.
  void set_observer(std::function<void(const CollectiveRecord&)> observer) { observer_ = std::move(observer); }
  /// Called before each call begins (heartbeat's phase and sequence number); may be empty.
  void set_begin_observer(std::function<void()> observer) { begin_observer_ = std::move(observer); }
  /// Called when the caller begins to wait for a call, with the call's record, and when the wait is over, with null;
  /// may be empty. A wait that ends in an error is not followed by null.
  void set_wait_observer(std::function<void(const CollectiveRecord*)> observer) {
    wait_observer_ = std::move(observer);
  }

 protected:
  enum class Waits { now, later };  ///< now: the caller does nothing before it has waited

  // Each begins its call and keeps the tensors alive until its end. Null: the call has ended.
  virtual std::unique_ptr<PendingCall> do_all_reduce(at::Tensor tensor, Reduce op, Waits waits) = 0;
  virtual std::unique_ptr<PendingCall> do_reduce_scatter(at::Tensor out, at::Tensor in, Waits waits) = 0;
  virtual std::unique_ptr<PendingCall> do_all_gather(at::Tensor out, at::Tensor in, Waits waits) = 0;
  virtual std::unique_ptr<PendingCall> do_broadcast(at::Tensor tensor, std::int64_t root) = 0;
  virtual std::unique_ptr<PendingCall> do_send(at::Tensor tensor, std::int64_t to, MessageLabel label) = 0;
  virtual std::unique_ptr<PendingCall> do_receive(at::Tensor tensor, std::int64_t from, MessageLabel label) = 0;
  virtual std::unique_ptr<PendingCall> do_barrier() = 0;
  /// True: from here on calls wait without a deadline; false: the group's time-out holds again.
  virtual void do_set_untimed(bool /*untimed*/) {}

 private:
  friend class Work;
  Work start_all_reduce(at::Tensor& tensor, Reduce op, Waits waits, CollectivePurpose purpose);
  Work start_reduce_scatter(at::Tensor& out, const at::Tensor& in, Waits waits, CollectivePurpose purpose);
  Work start_all_gather(at::Tensor& out, const at::Tensor& in, Waits waits, CollectivePurpose purpose);
  void check_peer(const char* op, std::int64_t peer) const;
  void add_untimed(int scopes);
  void count(const CollectiveRecord& record);
  void waits_in(const CollectiveRecord* record) {
    if (wait_observer_) wait_observer_(record);
  }

  template <typename F>
  Work begin(const char* op, const at::Tensor* payload, CollectivePurpose purpose, F&& call,
             MessageLabel::What message = MessageLabel::What::tensor);

  int untimed_scopes_ = 0;
  TrafficCounters traffic_;
  std::function<void(const CollectiveRecord&)> observer_;
  std::function<void()> begin_observer_;
  std::function<void(const CollectiveRecord*)> wait_observer_;
};

}  // namespace accrue

// SPDX-License-Identifier: Apache-2.0
// A group of ranks and its collective calls. Every call is counted (calls and payload bytes), so tests and the sync
// strip read the same numbers. All ranks of the group must call collectives in the same order; messages between two
// ranks arrive in the order of sending.
//
// A start_...() begins a call and returns at once; its tensors belong to the call until wait() has returned. Started
// calls need no further help from this thread: two ranks may start to send to each other and wait afterwards. Two
// backends need more care. NCCL sends a message together with the next call on the group, or at the next push(): both
// sides must start the message before any other call on the group, and wait for it before they wait for anything else.
// A second message in the same direction between the same two ranks acts as a push() there. With several pending
// messages each side's order must also work with blocking calls. Over shared memory the time-out of a started
// collective runs from its start.
//
// Errors: a lost peer or a time-out throws CommError (caught at the rank's only seam). Exception: the first message
// between two ranks over NCCL waits for a lost peer until the process is ended. Afterwards memory is undefined and the
// group unusable. std::invalid_argument: mismatched tensors or ranks; nothing was begun. Thread: the training thread;
// one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "accrue/run/cost/rank_grid.h"
#include "accrue/run/events/collective_purpose.h"

namespace accrue {

struct CommError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Reduce { sum, max };  ///< a NaN on any rank is the maximum

/// Description of a message between stages; sender and receiver must pass equal labels.
struct MessageLabel {
  enum class What : std::int32_t { tensor, input, gradient, parameter };
  What what = What::tensor;
  std::int32_t part = 0;        ///< of the model: the part whose input it is, or whose output's gradient
  std::int64_t micro_step = 0;  ///< in the window, from 0
  /// Returns "input of part 3, micro-step 2".
  std::string text() const;
  bool operator==(const MessageLabel&) const = default;
};

struct CollectiveRecord {
  std::string axis;        ///< "data", ...
  std::string op;          ///< "all_reduce", "reduce_scatter", "all_gather", "broadcast", "send", "receive", "barrier"
  std::int64_t bytes = 0;  ///< payload of this rank: given or received
  std::int64_t begin_ns = 0;  ///< CLOCK_MONOTONIC
  /// End of the operation, which may precede wait(). Over NCCL, for a result that stays on the device: the time when
  /// the wait for it was queued.
  std::int64_t end_ns = 0;
  CollectivePurpose purpose = CollectivePurpose::agreement;
  MessageLabel::What message = MessageLabel::What::tensor;  ///< of a "send" or "receive"
};

struct OpTraffic {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< payload
};

/// Counters of one group, which has one axis. A started call counts when it is waited for.
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
  /// Returns when the call has ended, or on a device once all later queued work waits for its end. Returns the
  /// CLOCK_MONOTONIC of that moment. Throws CommError. Called once.
  virtual std::int64_t wait() = 0;
};

class Communicator;

/// A started call. Wait for it: a dropped one may never end, and its tensors may be used until the group is destroyed.
class [[nodiscard]] Work {
 public:
  /// An empty one, without anything to wait for.
  Work() = default;
  /// Returns when the call has ended; at once from the second call on. The communicator must still live.
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

  /// Reduces in place contiguous tensors of equal shape and dtype on all ranks. The shm backend sums in rank order.
  void all_reduce(at::Tensor& tensor, Reduce op = Reduce::sum, CollectivePurpose purpose = unsaid) {
    start_all_reduce(tensor, op, Waits::now, purpose).wait();
  }
  [[nodiscard]] Work start_all_reduce(at::Tensor& tensor, Reduce op = Reduce::sum, CollectivePurpose purpose = unsaid) {
    return start_all_reduce(tensor, op, Waits::later, purpose);
  }
  /// Sums, counted as gradient traffic.
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
  /// Does the same, counted as gradient traffic.
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
  /// Sends to or receives from another rank of the group, with equal shapes, dtypes and labels on both sides. Shared
  /// memory and Gloo compare them and throw CommError if they differ. The record counts inputs and gradients as
  /// activations.
  void send(const at::Tensor& tensor, std::int64_t to, MessageLabel label = {}) {
    start_send(tensor, to, label).wait();
  }
  [[nodiscard]] Work start_send(const at::Tensor& tensor, std::int64_t to, MessageLabel label = {});
  void receive(at::Tensor& tensor, std::int64_t from, MessageLabel label = {}) {
    start_receive(tensor, from, label).wait();
  }
  [[nodiscard]] Work start_receive(at::Tensor& tensor, std::int64_t from, MessageLabel label = {});
  void barrier();
  /// Sends started messages that may be waiting for the next call. If both sides start one message in each direction
  /// before they push, these travel together, so two ranks may send to each other. Otherwise messages behave like
  /// blocking calls.
  virtual void push() {}

  /// Returns memory for gradients whose reduction needs no copy (the shm mapping); with other backends an ordinary
  /// tensor. Shapes: [numel], zeroed. Collective: the whole axis, in the same order.
  virtual at::Tensor shared_buffer(std::int64_t numel, at::ScalarType dtype);

  /// While it lives, this rank's calls of the communicator wait as long as their peers live. Use it for work of unknown
  /// length between two collectives, such as rank 0 writing a file. A peer that ends or leaves still ends the call at
  /// once. Scopes nest; the scope must not outlive the communicator. Open it on every rank that waits.
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
  /// Sets a function that receives each call's record afterwards (sync events), for a started call in wait(); may be
  /// empty.
  void set_observer(std::function<void(const CollectiveRecord&)> observer) { observer_ = std::move(observer); }
  /// Sets a function that is called before each call begins (heartbeat's phase and sequence number); may be empty.
  void set_begin_observer(std::function<void()> observer) { begin_observer_ = std::move(observer); }
  /// Sets a function that is called with the call's record when the caller begins to wait, and with null when the wait
  /// is over; may be empty. A wait that ends in an error is not followed by null.
  void set_wait_observer(std::function<void(const CollectiveRecord*)> observer) {
    wait_observer_ = std::move(observer);
  }

 protected:
  enum class Waits { now, later };  ///< now: the caller waits at once

  // Each begins its call and keeps the tensors alive until its end. Null: the call has already ended.
  virtual std::unique_ptr<PendingCall> do_all_reduce(at::Tensor tensor, Reduce op, Waits waits) = 0;
  virtual std::unique_ptr<PendingCall> do_reduce_scatter(at::Tensor out, at::Tensor in, Waits waits) = 0;
  virtual std::unique_ptr<PendingCall> do_all_gather(at::Tensor out, at::Tensor in, Waits waits) = 0;
  virtual std::unique_ptr<PendingCall> do_broadcast(at::Tensor tensor, std::int64_t root) = 0;
  virtual std::unique_ptr<PendingCall> do_send(at::Tensor tensor, std::int64_t to, MessageLabel label) = 0;
  virtual std::unique_ptr<PendingCall> do_receive(at::Tensor tensor, std::int64_t from, MessageLabel label) = 0;
  virtual std::unique_ptr<PendingCall> do_barrier() = 0;
  /// If true, calls wait without a deadline from here on; if false, the group's time-out applies again.
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
